"""Groups of annotators: who errs alike, found with and without features, and what to take without worker ids."""

import crowdwise as cw

try:
    import sklearn  # noqa: F401
except ImportError:
    raise SystemExit("this example needs scikit-learn: pip install 'crowdwise[learn]'") from None

# experts, inexperts and spammers label 800 points, five answers each; 400 further points have no answers
crowd = cw.simulate.triangle(workers=100, tasks=800, fresh=400, seed=1)
X, tasks, truth = crowd.features, crowd.truth["task"], crowd.truth["label"]

# by answers alone
result = cw.aggregate(crowd.answers, "groups")
print(result.groups)
print(result.group_confusion(1))
apart = cw.divergence(result, confusions=crowd.confusions)
found = cw.rand_index(result, crowd.workers)
print(f"groups found: {found:.2f} (1 is all), matrices off by {apart.individual:.4f} bits")


def say(name: str, model: cw.CrowdClassifier) -> None:
    both = model.result_.labels.join(crowd.truth, on="task", suffix="_true")
    right = (both["label"] == both["label_true"]).mean()
    print(f"{name:12}  labels right {right:.1%}, new points {model.score(X[800:], truth[800:]):.1%}")


# with a classifier ("mlp" is a network): cw.Groups() finds labels first, "groups" is fitted together with it
sides = {"votes": "soft-vote", "groups first": cw.Groups(), "tied": "tied", "groups": "groups"}
for name, workers in sides.items():
    model = cw.CrowdClassifier("logistic", workers).fit(X, crowd.answers, tasks=tasks)
    say(name, model)

# workers whom the fit does not know, by their answers about other points
later = cw.simulate.triangle(workers=20, tasks=200, fresh=0, seed=2)
new = model.assign(later.features, later.answers, tasks=later.truth["task"])
print(new.workers.join(later.workers, on="worker", suffix="_true").head(4))

# an export without ids: one matrix for all, one truth per task
nobody = cw.Labels(crowd.answers.frame().drop("worker"), anonymous="each")
tied = cw.CrowdClassifier("logistic", "tied").fit(X, nobody, tasks=tasks)
say("without ids", tied)
