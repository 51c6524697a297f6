"""Drop-in replacements for classes of other libraries."""

from . import crowdkit

__all__ = ["crowdkit"]
