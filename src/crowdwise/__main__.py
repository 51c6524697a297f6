"""`python -m crowdwise` is the command `crowdwise`."""

from .cli import main

main()
