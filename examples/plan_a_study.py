"""Plan a study: how many answers per task, before the first answer and after a pilot with some known labels."""

import crowdwise as cw

before = cw.plan(0.9, accuracy=0.75, classes=3)
print(f"before the study: {before.answers} answers per task, {before.at_best} if workers share few errors")

crowd = cw.simulate.crowd("one-coin", tasks=100, workers=25, classes=3, per_task=3, seed=5)
pilot = cw.aggregate(crowd.answers)
print("pilot:", cw.plan(0.85, pilot=pilot).points.head(4))

truth = dict(crowd.truth.rows())
known = {task: truth[task] for task in list(truth)[:30]}
checked = cw.aggregate(cw.Labels(crowd.answers.frame(), gold=known))
for name, result in (("without known labels", pilot), ("with 30 known labels", checked)):
    expected = cw.expected_accuracy(result)
    print(f"{name}: {expected.value:.1%} right, {expected.low:.1%} to {expected.high:.1%}")
