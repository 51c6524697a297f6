"""Known labels (gold): models keep them, estimate worker skills better from them, and label sets are made from them."""

import crowdwise as cw

crowd = cw.simulate.crowd("hammer-spammer", tasks=400, workers=30, per_task=5, spammers=0.7, accuracy=0.85, seed=3)
truth = dict(zip(crowd.truth["task"], crowd.truth["label"], strict=True))
known = {task: truth[task] for task in list(truth)[::3]}

without_gold = cw.aggregate(crowd.answers)
with_gold = cw.aggregate(cw.Labels(crowd.answers.frame(), gold=known))

unknown = [task for task in truth if task not in known]
for name, result in (("without gold", without_gold), ("with gold for a third", with_gold)):
    labels = dict(zip(result.labels["task"], result.labels["label"], strict=True))
    accuracy = sum(labels[task] == truth[task] for task in unknown) / len(unknown)
    print(f"{name}: {accuracy:.1%} of the other tasks are right")

sets = cw.label_sets(with_gold)  # contain the true label of 90 % of the tasks
inside = sum(truth[task] == label for task, label in sets.select("task", "label").rows() if task in unknown)
sizes = sets.unique("task")["size"]
print(f"label sets: {inside / len(unknown):.1%} contain the true label, {sizes.mean():.2f} labels on average")
