"""What a result comes to: a summary of plain values first, its renderings second."""

from .summary import Summary, summarise

__all__ = ["Summary", "summarise"]
