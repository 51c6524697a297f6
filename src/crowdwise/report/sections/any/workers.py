"""The table of workers."""

from __future__ import annotations

from ....result import BaseResult
from ...registry import ANY, section
from ...tables import Table, table_of
from ...text import many

MAX_WORKERS_SHOWN = 100


@section(ANY, "workers", order=900, title="Workers", terms=("skill",))
def workers(result: BaseResult) -> Table | None:
    table = result.workers.sort("rank", nulls_last=True)
    if table.is_empty():
        return None
    return table_of(table.head(MAX_WORKERS_SHOWN), f"{many(table.height, 'worker')}, the best first.", "Workers")
