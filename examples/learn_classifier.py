"""Train a classifier on features from crowd answers, compare it with votes, and write a report page."""

import polars as pl

import crowdwise as cw

try:
    import sklearn  # noqa: F401
except ImportError:
    raise SystemExit("this example needs scikit-learn: pip install 'crowdwise[learn]'") from None

# five experts label 600 points and err more where the two classes overlap; 600 more points have no answers
crowd = cw.simulate.experts(tasks=600, fresh=600, seed=1)
X, tasks, truth = crowd.features, crowd.truth["task"], crowd.truth["label"]

fitted = {}
for workers in ("majority-vote", "soft-vote", "two-coin", "adaptive"):
    model = cw.CrowdClassifier("logistic", workers).fit(X, crowd.answers, tasks=tasks)
    both = model.result_.labels.join(crowd.truth, on="task", suffix="_true")
    error = cw.expertise(model.result_, crowd.truth).select((pl.col("estimated") - pl.col("true")).abs().mean()).item()
    print(
        f"{workers:13}  truth {(both['label'] == both['label_true']).mean():.1%}, "
        f"AUC {cw.auc(model.result_, crowd.truth):.3f}, error of skills {error:.3f}, "
        f"new points {model.score(X[600:], truth[600:]):.1%}"
    )
    fitted[workers] = model

best = fitted["adaptive"]
print(best.result_.tasks.sort("difficulty", descending=True).head(3))
print(best.predictions(X[600:], tasks[600:]).head(3))

page = best.report("classifier.html", truth=crowd.truth, rivals=[fitted["majority-vote"], fitted["two-coin"]])
print(f"wrote {page}, with ROC curves and skills of the workers")

best.save("classifier")
assert (cw.learn.load("classifier").predict(X) == best.predict(X)).all()
