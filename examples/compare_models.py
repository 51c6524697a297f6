"""Compare all models on the same answers: differing labels, likelihood of held-out answers, accuracy on gold."""

import crowdwise as cw

crowd = cw.simulate.crowd("confusion", tasks=200, workers=20, classes=3, per_task=5, seed=2)
answers = cw.Labels(crowd.answers.frame(), gold=crowd.truth)
print(cw.models("labels").select("name", "description"))
print(cw.compare(answers, folds=2).sort("held_out", descending=True))
