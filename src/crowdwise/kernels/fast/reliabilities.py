"""How sure it is how reliable a worker is, on a grid."""

from __future__ import annotations

import math

import numpy as np

from .blocks import jit


@jit
def posterior(alpha, ptr, p, grid, prior, tail, out):
    """The `tail` and 1 - `tail` quantiles of each worker's share of clicks on objects, into out (W, 2). alpha are
    chances of clicks, by worker, found with the shares p: what a click says itself are its odds against those of p."""
    G = len(grid)
    logs, product = np.empty(G), np.empty(G)
    for w in range(len(ptr) - 1):
        odds = p[w] / (1.0 - p[w])
        for g in range(G):
            logs[g], product[g] = prior[g], 1.0
        for i in range(ptr[w], ptr[w + 1]):
            ratio = min(alpha[i] / max(1.0 - alpha[i], 1e-15) / odds, 1e15)
            scale = 1.0 / (1.0 + ratio)
            for g in range(G):
                product[g] *= (grid[g] * ratio + 1.0 - grid[g]) * scale
            if (i - ptr[w]) % 16 == 15:
                for g in range(G):
                    logs[g] += math.log(max(product[g], 1e-300))
                    product[g] = 1.0
        top, total = -np.inf, 0.0
        for g in range(G):
            logs[g] += math.log(max(product[g], 1e-300))
            top = max(top, logs[g])
        for g in range(G):
            logs[g] = math.exp(logs[g] - top)
            total += logs[g]
        below, half = 0.0, 0.5 / G
        out[w, 0], out[w, 1] = -1.0, -1.0
        for g in range(G):
            now = below + logs[g] / total
            if out[w, 0] < 0 and now >= tail:
                out[w, 0] = max(0.0, grid[g] - half + 2 * half * (tail - below) / max(now - below, 1e-300))
            if out[w, 1] < 0 and now >= 1 - tail:
                out[w, 1] = min(1.0, grid[g] - half + 2 * half * (1 - tail - below) / max(now - below, 1e-300))
            below = now
        if out[w, 1] < 0:
            out[w, 1] = 1.0
