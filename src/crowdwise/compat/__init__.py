"""Look-alikes for users of other libraries."""

from . import crowdkit

__all__ = ["crowdkit"]
