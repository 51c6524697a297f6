"""Choose worker side, classifier and features without known labels, by the likelihood of held-out answers."""

import polars as pl

import crowdwise as cw

try:
    from sklearn.model_selection import GridSearchCV
    from sklearn.pipeline import make_pipeline
    from sklearn.preprocessing import PolynomialFeatures
except ImportError:
    raise SystemExit("this example needs scikit-learn: pip install 'crowdwise[learn]'") from None

crowd = cw.simulate.experts(tasks=300, workers=12, per_task=5, seed=2)
X, rows = crowd.features, crowd.answers.by_row(crowd.truth["task"])

# one row of answers per row of X, so that cross-validation splits both alike
search = GridSearchCV(
    make_pipeline(PolynomialFeatures(include_bias=False), cw.CrowdClassifier()),
    {
        "polynomialfeatures__degree": [1, 3],
        "crowdclassifier__workers": ["soft-vote", "confusion", "adaptive", cw.learn.Adaptive(ridge=1.0)],
    },
    cv=3,
).fit(X, rows)

table = pl.DataFrame(
    {
        "degree": search.cv_results_["param_polynomialfeatures__degree"].tolist(),
        "workers": [getattr(side, "name", side) for side in search.cv_results_["param_crowdclassifier__workers"]],
        "ridge": [getattr(side, "ridge", None) for side in search.cv_results_["param_crowdclassifier__workers"]],
        "score": search.cv_results_["mean_test_score"],
    }
)
print(table.sort("score", descending=True))

# the crowd is simulated, so the choice can be checked against the truth
best = search.best_estimator_
print(f"chosen: {best[-1].workers}; {best.score(X, crowd.truth['label']):.1%} of the points are predicted right")
