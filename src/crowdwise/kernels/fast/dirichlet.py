"""Confusion matrices with Dirichlet priors, and the digamma and log-gamma functions that they need, compiled."""

from __future__ import annotations

import math

import numpy as np
from numpy.typing import DTypeLike

from .. import TINY
from ..layout import Floats, RowTable
from ..memory import empty
from ..special import trigamma
from .blocks import by_workers, jit, run

MIN_PRODUCT, MAX_PRODUCT = 1e-150, 1e150  # a further factor neither underflows nor overflows


@jit(inline="always")
def _digamma_parts(x):
    """Return the parts of psi(x) = log(y) - tail: one division for the shift by 6, then the asymptotic series."""
    y = x + 6.0
    product = x
    slope = 1.0  # of the product: slope / product = sum of 1 / (x + i)
    for i in range(1, 6):
        slope = slope * (x + i) + product
        product *= x + i
    inverse = 1.0 / (y * product)
    one = product * inverse  # 1 / y
    two = one * one
    series = two * (1 / 12 - two * (1 / 120 - two * (1 / 252 - two * (1 / 240 - two / 132))))
    return y, slope * y * inverse + 0.5 * one + series, product, one


@jit
def _psi(x):
    y, tail, _, _ = _digamma_parts(x)
    return math.log(y) - tail


@jit(inline="always")
def _stirling(y, log_y, one):
    """Return log Gamma(x) plus the logarithm of the product of the shift."""
    two = one * one
    series = one * (1 / 12 - two * (1 / 360 - two * (1 / 1260 - two * (1 / 1680 - two / 1188))))
    return (y - 0.5) * log_y - y + 0.9189385332046727 + series


@jit
def _lgamma(x):
    y, _, product, one = _digamma_parts(x)
    return _stirling(y, math.log(y), one) - math.log(product)


@jit(inline="always")
def _trigamma(x):
    y, shifted = x + 6.0, 0.0
    for i in range(6):
        shifted += 1.0 / ((x + i) * (x + i))
    one = 1.0 / y
    two = one * one
    return shifted + 0.5 * two + one * (1 + two * (1 / 6 - two * (1 / 30 - two * (1 / 42 - two / 30))))


@jit
def _dirichlet(worker_ptr, row_label, C, a, above, base, P, totals, fit, start, stop):
    """Return the sum of C times the expected log of the workers start:stop, and add their evidence to fit (K,);
    base[k, l] = gammaln(a[k, l])."""
    K = C.shape[1]
    expected, none = 0.0, np.empty(K)
    for k in range(K):
        none[k] = _lgamma(above[k])
    for j in range(start, stop):
        for r in range(worker_ptr[j], worker_ptr[j + 1]):
            for k in range(K):
                totals[j, k] += C[r, k]
        for k in range(K):
            y, tail, product, one = _digamma_parts(totals[j, k] + above[k])
            log_total = math.log(y)
            psi_total = log_total - tail
            of_class = none[k] - _stirling(y, log_total, one)
            products = 1.0 / product  # one logarithm for the products of many numbers
            for r in range(worker_ptr[j], worker_ptr[j + 1]):
                c, prior = C[r, k], a[k, row_label[r]]
                y, tail, product, one = _digamma_parts(c + prior)
                log_y = math.log(y)
                elog = log_y - tail - psi_total
                P[r, k] = max(math.exp(elog), TINY)
                expected += c * elog
                of_class += _stirling(y, log_y, one) - base[k, row_label[r]]
                products *= product
                if products > MAX_PRODUCT or products < MIN_PRODUCT:
                    of_class -= math.log(products)
                    products = 1.0
            fit[k] += of_class - math.log(products)
    return expected


def dirichlet_rows(
    layout: RowTable, counts: Floats, a: Floats, dtype: DTypeLike, threads: int
) -> tuple[Floats, Floats, float, Floats]:
    P, totals = empty(counts.shape, dtype), np.zeros((layout.n_workers, counts.shape[1]))
    base = gammaln(a)
    above = a.sum(1)
    bounds = by_workers(layout)
    expected, fit = np.zeros(len(bounds) - 1), np.zeros((len(bounds) - 1, counts.shape[1]))
    parts = (layout.worker_ptr, layout.row_label, counts, a, above, base, P, totals)

    def work(b: int, start: int, stop: int) -> None:
        expected[b] = _dirichlet(*parts, fit[b], start, stop)

    run(work, bounds, threads)
    return P, totals, math.fsum(expected) - math.fsum(fit.ravel()), fit.sum(0)


@jit
def _psi_all(x, out):
    for n in range(len(x)):
        out[n] = _psi(x[n])


@jit
def _lgamma_all(x, out):
    for n in range(len(x)):
        out[n] = _lgamma(x[n])


def digamma(x: Floats) -> Floats:
    flat = np.ascontiguousarray(x, np.float64).ravel()
    out = np.empty_like(flat)
    _psi_all(flat, out)
    return out.reshape(np.shape(x))


def gammaln(x: Floats) -> Floats:
    flat = np.ascontiguousarray(x, np.float64).ravel()
    out = np.empty_like(flat)
    _lgamma_all(flat, out)
    return out.reshape(np.shape(x))


@jit
def _slopes(worker_ptr, row_label, C, totals, a, above, base, psi, trigamma, top, below, curve, fit, start, stop):
    """Add to top, below, curve and fit; base, psi and trigamma (K, K) are gammaln(a) and its derivatives."""
    K = C.shape[1]
    for k in range(K):
        first, second, none = _psi(above[k]), _trigamma(above[k]), _lgamma(above[k])
        for j in range(start, stop):
            y, tail, product, one = _digamma_parts(totals[j, k] + above[k])
            log_y = math.log(y)
            below[k] += log_y - tail - first
            curve[k] -= above[k] * above[k] * (_trigamma(totals[j, k] + above[k]) - second)
            of_worker = none - _stirling(y, log_y, one)
            products = 1.0 / product
            for r in range(worker_ptr[j], worker_ptr[j + 1]):
                label = row_label[r]
                prior = a[k, label]
                y, tail, product, one = _digamma_parts(C[r, k] + prior)
                log_y = math.log(y)
                top[k, label] += log_y - tail - psi[k, label]
                curve[k] += prior * prior * (_trigamma(C[r, k] + prior) - trigamma[k, label])
                of_worker += _stirling(y, log_y, one) - base[k, label]
                products *= product
                if products > MAX_PRODUCT or products < MIN_PRODUCT:
                    of_worker -= math.log(products)
                    products = 1.0
            fit[k] += of_worker - math.log(products)


def dirichlet_slopes(
    layout: RowTable, counts: Floats, totals: Floats, a: Floats, threads: int
) -> tuple[Floats, Floats, Floats, Floats]:
    K = counts.shape[1]
    bounds = by_workers(layout)
    top, below, curve, fit = (np.zeros((len(bounds) - 1, *shape)) for shape in ((K, K), (K,), (K,), (K,)))
    parts = (layout.worker_ptr, layout.row_label, counts, totals, a, a.sum(1), gammaln(a), digamma(a), trigamma(a))

    def work(b: int, start: int, stop: int) -> None:
        _slopes(*parts, top[b], below[b], curve[b], fit[b], start, stop)

    run(work, bounds, threads)
    return top.sum(0), below.sum(0), curve.sum(0), fit.sum(0)
