"""Predict labels of new tasks from answers of workers whose skills were already estimated."""

import crowdwise as cw

crowd = cw.simulate.crowd("one-coin", tasks=500, workers=25, classes=2, per_task=4, seed=3)
frame = crowd.answers.frame()
tasks = crowd.answers.tasks
old = frame.filter(frame["task"].is_in(tasks[:400].implode()))
new = frame.filter(frame["task"].is_in(tasks[400:].implode()))

result = cw.aggregate(old, "dawid-skene")
prediction = result.predict(new)
joined = prediction.labels.join(crowd.truth, on="task", suffix="_true")
print(f"{(joined['label'] == joined['label_true']).mean():.1%} of the new tasks are right")
print(f"{prediction.unknown_workers} workers are unknown to the fit")
