"""From a table of answers to labels, workers and tasks."""

import tempfile
from pathlib import Path

import crowdwise as cw

folder = Path(tempfile.mkdtemp())
crowd = cw.simulate.crowd("hammer-spammer", tasks=200, workers=20, classes=3, per_task=5, seed=1)
crowd.save(folder)

answers = cw.read(folder / "answers.csv")
result = cw.aggregate(answers)

print(result)
print(result.labels.head())
print(result.workers.sort("rank").head())
print(result.tasks.sort("entropy", descending=True).head())
print(result.explain("t001"))

result.save(folder / "results")
assert cw.load(folder / "results").labels.equals(result.labels)
