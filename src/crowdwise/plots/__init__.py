"""Charts of a result, one at a time: `result.plot("workers")` shows itself in a notebook and saves to a file.

`chart(kind, name)` makes a function a chart of a kind of answers: it takes a result and options, draws on the axes that
`canvas` gives it, and returns a `Chart`. Names of workers, classes and images come from strangers: show them by
`shown`. matplotlib (the extra `plot`) is imported when a chart is drawn.
"""

from .chart import Chart
from .registry import EVERY_KIND, chart, charts, plot
from .style import canvas
from .text import shown

__all__ = ["EVERY_KIND", "Chart", "canvas", "chart", "charts", "plot", "shown"]
