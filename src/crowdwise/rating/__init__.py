"""Ratings of workers and the reasons for flags, computed from answers and a posterior.

This package is below `result`, so that `Result.workers` can use it.
"""

from .skills import wilson
from .table import WORKER_COLUMNS
from .workers import COLUMNS, rate

__all__ = ["COLUMNS", "WORKER_COLUMNS", "rate", "wilson"]
