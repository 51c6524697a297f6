"""How good each worker is, and why anyone should look at one: plain arithmetic on answers and a posterior.

This room stands below results, so that `Result.workers` can hold all of it.
"""

from .skills import wilson
from .table import WORKER_COLUMNS
from .workers import COLUMNS, rate

__all__ = ["COLUMNS", "WORKER_COLUMNS", "rate", "wilson"]
