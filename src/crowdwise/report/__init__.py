"""What a result comes to: a summary of plain values first, its renderings second."""

from .inspection import Inspection, inspect
from .summary import Summary, summarise

__all__ = ["Inspection", "Summary", "inspect", "summarise"]
