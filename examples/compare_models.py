"""Every model on the same answers: labels that differ, likelihood of hidden answers, accuracy where gold is given."""

import crowdwise as cw

crowd = cw.simulate.crowd("confusion", tasks=300, workers=30, classes=3, per_task=5, seed=2)
answers = cw.Labels(crowd.answers.frame(), gold=crowd.truth)
print(cw.compare(answers, folds=5).sort("held_out", descending=True))
