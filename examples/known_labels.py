"""Some truth is known: models obey it and learn the workers better from it."""

import crowdwise as cw

crowd = cw.simulate.crowd("hammer-spammer", tasks=400, workers=30, per_task=5, spammers=0.7, accuracy=0.85, seed=3)
truth = dict(zip(crowd.truth["task"], crowd.truth["label"], strict=True))
known = {task: truth[task] for task in list(truth)[::3]}

blind = cw.aggregate(crowd.answers)
led = cw.aggregate(cw.Labels(crowd.answers.frame(), gold=known))

unknown = [task for task in truth if task not in known]
for name, result in (("without gold", blind), ("with gold for a third", led)):
    labels = dict(zip(result.labels["task"], result.labels["label"], strict=True))
    right = sum(labels[task] == truth[task] for task in unknown) / len(unknown)
    print(f"{name}: {right:.1%} of the other tasks are right")
