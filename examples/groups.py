"""Groups of annotators: who errs alike, found with and without features, and what to take without worker ids."""

import polars as pl

import crowdwise as cw

try:
    import sklearn  # noqa: F401
except ImportError:
    raise SystemExit("this example needs scikit-learn: pip install 'crowdwise[learn]'") from None

# experts, inexperts and spammers label 1200 points, five answers each; 600 further points have no answers
crowd = cw.simulate.triangle(workers=150, tasks=1200, fresh=600, seed=1)
X, tasks, truth = crowd.features, crowd.truth["task"], crowd.truth["label"]

# by answers alone
result = cw.aggregate(crowd.answers, "groups")
print(result.groups)
print(result.group_confusion(1))
told = cw.divergence(result, confusions=crowd.confusions)
print(f"groups found: {cw.rand_index(result, crowd.workers):.2f} (1 is all), matrices off by {told.individual:.4f} bits")


def right(labels: pl.DataFrame) -> float:
    both = labels.join(crowd.truth, on="task", suffix="_true")
    return float((both["label"] == both["label_true"]).mean())


# with a classifier, which could be "mlp", a network: cw.Groups() finds labels first, "groups" is fitted together with it
sides = {"votes": "soft-vote", "groups first": cw.Groups(), "tied": "tied", "groups": "groups"}
for name, workers in sides.items():
    model = cw.CrowdClassifier("logistic", workers).fit(X, crowd.answers, tasks=tasks)
    new = model.score(X[1200:], truth[1200:])
    print(f"{name:12}  labels right {right(model.result_.labels):.1%}, new points {new:.1%}")

# workers whom the fit has not met, by what they say of other points
later = cw.simulate.triangle(workers=20, tasks=200, fresh=0, seed=2)
found = model.assign(later.features, later.answers, tasks=later.truth["task"])
print(found.workers.join(later.workers, on="worker", suffix="_true").head(4))

# an export without ids: one matrix for all, one truth a task
nobody = cw.Labels(crowd.answers.frame().drop("worker"), anonymous="each")
tied = cw.CrowdClassifier("logistic", "tied").fit(X, nobody, tasks=tasks)
print(f"without ids   labels right {right(tied.result_.labels):.1%}, new points {tied.score(X[1200:], truth[1200:]):.1%}")
