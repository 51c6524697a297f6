"""Groups of workers with similar errors, with and without features; and a model for data without worker ids."""

import crowdwise as cw

try:
    import sklearn  # noqa: F401
except ImportError:
    raise SystemExit("this example needs scikit-learn: pip install 'crowdwise[learn]'") from None

# experts, inexperts and spammers label 800 points, five answers per point; 400 more points have no answers
crowd = cw.simulate.triangle(workers=100, tasks=800, fresh=400, seed=1)
X, tasks, truth = crowd.features, crowd.truth["task"], crowd.truth["label"]

# from answers alone
result = cw.aggregate(crowd.answers, "groups")
print(result.groups)
print(result.group_confusion(1))
error = cw.divergence(result, confusions=crowd.confusions)
score = cw.rand_index(result, crowd.workers)
print(f"adjusted Rand index of groups: {score:.2f}, divergence of matrices: {error.individual:.4f} bits")


def show(name: str, model: cw.CrowdClassifier) -> None:
    both = model.result_.labels.join(crowd.truth, on="task", suffix="_true")
    accuracy = (both["label"] == both["label_true"]).mean()
    print(f"{name:12}  accuracy of labels {accuracy:.1%}, of new points {model.score(X[800:], truth[800:]):.1%}")


# with a classifier ("mlp" is a network): cw.Groups() estimates labels first, "groups" is fitted jointly with it
sides = {"votes": "soft-vote", "groups first": cw.Groups(), "tied": "tied", "groups": "groups"}
for name, workers in sides.items():
    model = cw.CrowdClassifier("logistic", workers).fit(X, crowd.answers, tasks=tasks)
    show(name, model)

# groups of new workers, from their answers about other points
later = cw.simulate.triangle(workers=20, tasks=200, fresh=0, seed=2)
new = model.assign(later.features, later.answers, tasks=later.truth["task"])
print(new.workers.join(later.workers, on="worker", suffix="_true").head(4))

# data without worker ids: one confusion matrix for all workers
anonymous = cw.Labels(crowd.answers.frame().drop("worker"), anonymous="each")
tied = cw.CrowdClassifier("logistic", "tied").fit(X, anonymous, tasks=tasks)
show("without ids", tied)
