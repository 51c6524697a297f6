"""What was climbed: the objective and the number of objects after every sweep."""

from __future__ import annotations

import numpy as np

from ..engine import Run, Step
from ..errors import Interrupted
from ..kernels.layout import Floats


class Trace:
    """Grows while a fit runs, and tells who watches."""

    def __init__(self, name: str) -> None:
        self.name = name
        self.rows: list[tuple[float, int]] = []

    def extend(self, rows: Floats) -> None:
        """Sweeps that were made elsewhere."""
        self.rows += [(float(objective), int(objects)) for objective, objects in rows]

    def add(self, objective: float, objects: int, run: Run, max_iter: int) -> None:
        """One more sweep."""
        self.rows.append((float(objective), int(objects)))
        if run.watch is not None:
            run.watch(Step(len(self.rows), max_iter, float(objective), objects, 0.0))

    def ask(self, run: Run) -> None:
        """Break off if that is wanted."""
        if run.stop is not None and run.stop():
            raise Interrupted(f"{self.name} was stopped after {len(self.rows)} sweeps; nothing is kept of it")

    def array(self) -> Floats:
        return np.array(self.rows, np.float64).reshape(-1, 2)
