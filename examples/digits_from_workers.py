"""Cluster images that workers of unknown reliability contributed, and find the spoilt ones.

python examples/digits_from_workers.py
"""

import numpy as np
from sklearn.datasets import load_digits

import crowdwise as cw

digits = load_digits()
rng = np.random.default_rng(0)
reliability = np.array([0.95] * 15 + [0.75] * 3 + [0.25] * 2)
worker = rng.integers(20, size=len(digits.data))
spoilt = rng.random(len(worker)) > reliability[worker]
noise = spoilt[:, None] & (rng.random(digits.data.shape) < 0.5)
images = np.where(noise, rng.uniform(0, 16, digits.data.shape), digits.data)

result = cw.aggregate(cw.embed_points(images, worker))
print(result)
for row in result.workers.sort("skill").head(3).iter_rows(named=True):
    true = reliability[row["worker"]]
    print(f"worker {row['worker']}: reliability {row['skill']:.2f} [{row['low']:.2f}, {row['high']:.2f}], true {true}")

worst = result.clicks.sort("outlier", descending=True).head(100)["row"].to_numpy()
print(f"{spoilt[worst].mean():.0%} of the 100 most suspicious images are spoilt; {spoilt.mean():.0%} of all are")
