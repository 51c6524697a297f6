"""Learn from answers as they come, and stop asking about a task when it is settled."""

import numpy as np

import crowdwise as cw

crowd = cw.simulate.crowd("one-coin", tasks=200, workers=20, classes=3, per_task=3, seed=4)
truth = dict(crowd.truth.rows())
number = {name: j for j, name in enumerate(crowd.workers["worker"])}
classes = crowd.answers.classes.to_list()
rng = np.random.default_rng(4)


def ask(task: str, worker: str) -> dict[str, str]:
    """Simulate the answer of a worker to a task."""
    row = crowd.confusions[number[worker], classes.index(truth[task])]
    return {"task": task, "worker": worker, "label": str(rng.choice(classes, p=row))}


def accuracy(stream: cw.LabelStream) -> float:
    return sum(truth[task] == label for task, label in stream.labels.select("task", "label").rows()) / len(truth)


stream = cw.LabelStream().update(crowd.answers)
print(f"{stream.n_answers} answers: {accuracy(stream):.1%} of the labels are right")
decisions: list[cw.Decision] = []
for _ in range(2):
    decisions = [stream.decide(task, 0.9) for task in truth]
    counted = {status: sum(each.status == status for each in decisions) for status in ("settled", "ask", "contested")}
    print(counted)
    bought = [ask(each.item, worker) for each in decisions for worker in each.of[: each.ask]]
    stream = stream.update(bought)
    print(f"{stream.n_answers} answers: {accuracy(stream):.1%} of the labels are right")
print(decisions[0].reason)
print(stream.result())
