"""Fits on Apache Spark: answers that are spread over the machines of a cluster, or too large for one process.

import crowdwise as cw

result = cw.spark.aggregate(frame, "dawid-skene")  # a Spark DataFrame
result.labels.show(), result.workers
"""

from .aggregate import aggregate

__all__ = ["aggregate"]
