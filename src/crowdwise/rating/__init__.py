"""How good each worker is, and why anyone should look at one: plain arithmetic on answers and a posterior.

This room stands below results, so that `Result.workers` can hold all of it.
"""

from .skills import wilson
from .workers import COLUMNS, Fit, rate

__all__ = ["COLUMNS", "Fit", "rate", "wilson"]
