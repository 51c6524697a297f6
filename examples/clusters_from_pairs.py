"""Clusters from same/different answers, with and without features; worker skills, next pairs, and new items."""

import polars as pl

import crowdwise as cw

# 300 items in five clusters; 20 workers compare pairs of 100 of them, and the last three workers nearly guess
crowd = cw.simulate.pinwheel(per_cluster=60, alpha=[0.95] * 10 + [0.85] * 7 + [0.55] * 3, seed=1)
ids, X = crowd.features
print(crowd.pairs)

result = cw.aggregate(crowd.pairs, features=(ids, X))
print(result)
print(result.sizes)
print(result.workers.sort("rank").select("worker", "answers", "skill", "low", "high", "weight").tail(4))

# doubtful items, and which pairs to ask about next
doubtful = result.clusters.filter(pl.col("probability") < 0.95)
print(f"items below 95 %: {doubtful.height}, {(doubtful['answers'] == 0).sum()} of them without an answer")
print(cw.next_pairs(result, 3))

# clusters of new items, and the report page
print(result.assign([[0.0, 5.0], [5.0, 0.0]], ["new 1", "new 2"]))
print(f"wrote {result.report('pairs.html')}")

# the same answers without features: only items in a pair are clustered, and there are too many clusters
print(cw.aggregate(crowd.pairs))

try:
    for found in (result, cw.aggregate(crowd.pairs, "k-means-items", features=(ids, X), clusters=5)):
        scores = cw.match_clusters(found, crowd.truth)
        print(f"{found.model.name:13}  {scores['clusters']} clusters, {scores['accuracy']:.1%} of the items right")
except cw.errors.MissingError as missing:
    raise SystemExit(str(missing)) from None
