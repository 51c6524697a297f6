"""Every model on the same answers: labels that differ, likelihood of hidden answers, accuracy where gold is given."""

import crowdwise as cw

crowd = cw.simulate.crowd("confusion", tasks=200, workers=20, classes=3, per_task=5, seed=2)
answers = cw.Labels(crowd.answers.frame(), gold=crowd.truth)
print(cw.models("labels").select("name", "description"))
print(cw.compare(answers, folds=2).sort("held_out", descending=True))
