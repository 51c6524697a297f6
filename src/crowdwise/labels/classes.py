"""The truth side of models whose classes may be learnt or taken as equally common."""

from __future__ import annotations

import numpy as np

from ..engine.model import one_of
from ..kernels.layout import Floats

PREVALENCE = one_of("learnt", "uniform")
PREVALENCE_IS = "Class shares: learnt from the answers, or uniform."


def class_shares(mode: str, shares: Floats) -> Floats:
    """(K,) prior of the classes: Dirichlet(2) around the expected shares, or all alike."""
    K = len(shares)
    return (shares + 1) / (shares.sum() + K) if mode == "learnt" else np.full(K, 1 / K)


def class_log_prior(mode: str, rho: Floats) -> float:
    """What `class_shares` adds to the objective."""
    return float(np.log(rho).sum()) if mode == "learnt" else 0.0
