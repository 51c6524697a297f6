"""Find objects from the clicks of many workers: their number and positions, worker reliability, and accuracy."""

import numpy as np
import polars as pl

import crowdwise as cw

# three images with nine spots each; of twelve workers, the first is less precise and the last three hardly look
rng = np.random.default_rng(1)
clicks, jobs, spots = [], [], []
for image in ("a", "b", "c"):
    places = rng.uniform(30, 470, (9, 2))
    spots += [(image, *place) for place in places]
    for number in range(12):
        worker, careful = f"w{number + 1:02d}", number < 9
        jobs.append((image, worker))
        seen = places[rng.random(9) < (0.9 if careful else 0.4)]
        near = seen + rng.normal(0, 4 if number else 10, seen.shape)
        stray = rng.uniform(0, 500, (rng.poisson(1 if careful else 6), 2))
        clicks += [(image, worker, *click) for click in np.vstack([near, stray]).clip(0, 500)]
truth = pl.DataFrame(spots, schema=["image", "x", "y"], orient="row")

points = cw.Points(
    pl.DataFrame(clicks, schema=["image", "worker", "x", "y"], orient="row"),
    jobs=pl.DataFrame(jobs, schema=["image", "worker"], orient="row"),  # all views, even without a click
    box=(0, 0, 500, 500),  # the extent of every image
)
result = cw.aggregate(points)  # the first fit on a machine compiles for about twenty seconds
print(result)
print(result.of("a").select("object", "x", "y", "probability", "supporters", "jobs"))
print(result.workers.select("worker", "answers", "skill", "low", "high", "hit_rate", "spread"))  # skill: reliability
print(f"clicks on no object: {result.clicks['object'].null_count()} of {points.n_clicks}")

# doubtful objects, and the report page
doubtful = result.objects.filter(pl.col("probability") < 0.9)
print(f"doubtful objects: {doubtful.height}")
print(f"wrote {result.report('clicks.html')}")

# the paper's EM on data as in the paper: one image, ten objects, 20 workers who may click an object repeatedly
crowd = cw.simulate.clicks("E", seed=2)
for name, settings in (("merging", {}), ("the paper's EM", {"method": "paper"})):
    found = cw.aggregate(crowd.points, **settings)
    error = (found.workers["skill"] - crowd.workers["reliability"]).abs().mean()
    print(f"{name}: {found.objects.height} objects of 10, mean error of reliabilities {error:.2f}")

try:
    matched = cw.match_objects(result, truth, within=10)
except cw.errors.MissingError as missing:
    raise SystemExit(str(missing)) from None
print(matched)
