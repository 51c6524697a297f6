"""Pandas in, pandas out; users of crowd-kit change one import."""

import crowdwise as cw
from crowdwise.compat.crowdkit import DawidSkene

try:
    import pandas as pd
except ImportError:
    raise SystemExit("this example needs pandas") from None

frame = pd.DataFrame(
    {
        "task": ["t1", "t1", "t1", "t2", "t2", "t2"],
        "worker": ["ann", "bob", "cyd"] * 2,
        "label": ["cat", "cat", "dog", "dog", "dog", "dog"],
    }
)
print(cw.aggregate(frame).to_pandas()["labels"])
print(DawidSkene(n_iter=50).fit_predict(frame))
