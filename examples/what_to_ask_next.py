"""Buy further answers where they help most, in rounds, and measure the gain in accuracy."""

import numpy as np
import polars as pl

import crowdwise as cw

crowd = cw.simulate.crowd("one-coin", tasks=200, workers=20, classes=3, per_task=3, seed=4)
truth = dict(crowd.truth.rows())
number = {name: j for j, name in enumerate(crowd.workers["worker"])}
classes = crowd.answers.classes.to_list()
rng = np.random.default_rng(4)


def ask(task: str, worker: str) -> tuple[str, str, str]:
    """Simulate the answer of a worker to a task."""
    row = crowd.confusions[number[worker], classes.index(truth[task])]
    return task, worker, str(rng.choice(classes, p=row))


def accuracy(result: cw.LabelsResult) -> float:
    return sum(truth[task] == label for task, label in result.labels.select("task", "label").rows()) / len(truth)


frame = crowd.answers.frame()
result = cw.aggregate(frame)
curve = cw.cost_curve(result)
print(curve.points.filter(pl.col("answers") <= 400))
print(cw.expected_accuracy(result))
print(cw.review(result, 3).select("task", "label", "probability", "votes", "gain", "others"))

print(f"{frame.height} answers: {accuracy(result):.1%} of the labels are right")
for _ in range(4):
    bought = []
    for task, many, names in cw.next_tasks(result, 50).select("task", "ask", "workers").rows():
        asked = set(frame.filter(pl.col("task") == task)["worker"])
        wanted = names.split("; ") if names else []
        others = [name for name in number if name not in asked and name not in wanted]
        bought += [ask(task, name) for name in [*wanted, *rng.permutation(others).tolist()][:many]]
    frame = pl.concat([frame, pl.DataFrame(bought, schema=frame.columns, orient="row")])
    result = cw.aggregate(frame)
    print(f"{frame.height} answers: {accuracy(result):.1%} of the labels are right")
