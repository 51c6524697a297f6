"""Confusion matrices with Dirichlet priors, and the digamma and log-gamma functions that they need, compiled."""

from __future__ import annotations

import math

import numpy as np
from numpy.typing import DTypeLike

from .. import TINY
from ..layout import Floats, Ints, RowTable
from ..memory import empty
from ..special import trigamma
from ..threads import run
from .blocks import by_workers, jit
from .loops import EXPONENT_AT, MANTISSA, ONE, WORD, ZERO, exp_minus, log_all

SMALLEST = 1e-300  # a positive number whose inverse is finite
STRIP = 2048  # numbers that a loop takes at a time: they stay in the nearest cache


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
def _gamma_parts(x, y, tail, product, trigamma, n):
    """Write the parts of psi(x) = log(y) - tail and log Gamma(x) = stirling(y) - log(product), and the trigamma."""
    for i in range(n):
        value, slope, bend, shifted = x[i], 1.0, 0.0, x[i]  # bend is half the second derivative of the product
        for step in range(1, 6):
            bend = bend * (value + step) + slope
            slope = slope * (value + step) + shifted
            shifted *= value + step
        top = value + 6.0
        inverse = 1.0 / (top * shifted)
        one, of_product = shifted * inverse, top * inverse
        two = one * one
        sums = slope * of_product  # of 1 / (x + i)
        y[i], product[i] = top, shifted
        tail[i] = (
            sums + 0.5 * one + two * (1 / 12 - two * (1 / 120 - two * (1 / 252 - two * (1 / 240 - two / 132))))
        )  # fmt: skip
        trigamma[i] = (
            sums * sums - 2 * bend * of_product
            + 0.5 * two + one * (1 + two * (1 / 6 - two * (1 / 30 - two * (1 / 42 - two / 30))))
        )  # fmt: skip


@jit
def _stirlings(y, log_y, out, n):
    """Write log Gamma plus the logarithm of the product of the shift; out may be log_y."""
    for i in range(n):
        out[i] = _stirling(y[i], log_y[i], 1.0 / y[i])


@jit
def _multiply(product, rows, mantissas, exponents):
    """Multiply K numbers, as mantissas and exponents, by rows of products: their logarithms are taken at the end."""
    K, bits = len(mantissas), mantissas.view(WORD)
    for r in range(rows):
        for k in range(K):
            mantissas[k] *= product[r * K + k]
        for k in range(K):
            exponents[k] += bits[k] >> EXPONENT_AT
            bits[k] = (bits[k] & MANTISSA) | ONE


@jit
def _add_logs(sign, mantissas, exponents, rows, out):
    """Add the logarithms of the products of `rows` rows, times `sign`, to out (K,), and reset the products."""
    for k in range(len(out)):
        power = np.float64(exponents[k]) - 1023.0 * rows
        out[k] += sign * (math.log(mantissas[k]) + power * 0.6931471805599453)
        mantissas[k], exponents[k] = 1.0, ZERO


@jit
def _with_prior(row_label, C, by_label, first, last, x):
    """Write C + a of the rows first:last, one after the other; by_label is the transpose of a. Return their number."""
    K = C.shape[1]
    for r in range(first, last):
        prior = by_label[row_label[r]]
        for k in range(K):
            x[(r - first) * K + k] = C[r, k] + prior[k]
    return (last - first) * K


@jit
def _scratch(n):
    return np.empty(n), np.empty(n), np.empty(n), np.empty(n), np.empty(n), np.empty(n)


@jit
def _strip(row_label, C, by_label, first, last, scratch, mantissas, exponents):
    """Write the parts of the gamma functions of C + a of the rows first:last, and multiply their products; return how
    many numbers these are. Scratch then holds log Gamma without the products, y, tail, product, log(y), trigamma."""
    x, y, tail, product, logs, trigamma = scratch
    n = _with_prior(row_label, C, by_label, first, last, x)
    _gamma_parts(x, y, tail, product, trigamma, n)
    log_all(y, logs, x, n)
    _stirlings(y, logs, x, n)
    _multiply(product, last - first, mantissas, exponents)
    return n


@jit
def _dirichlet(worker_ptr, row_worker, row_label, same, C, by_label, above, base, P, totals, fit, start, stop):
    """Return the sum of C times the expected log of the workers start:stop, and add their evidence to fit (K,);
    base[l, k] = gammaln(a[k, l]), and same (W,) is 0."""
    K = C.shape[1]
    strip = max(1, STRIP // K)
    scratch = _scratch(strip * K)
    x, y, tail, product, logs, spare = scratch
    mantissas, exponents = np.ones(K), np.zeros(K, WORD)
    expected, scale = np.zeros(K), np.empty((stop - start, K))  # scale: exp of minus psi of the totals
    _sum_rows(worker_ptr, C, totals, start, stop)
    for first in range(start, stop, strip):
        last = min(first + strip, stop)
        n = _strip(same, totals, above, first, last, scratch, mantissas, exponents)
        exp_minus(tail, product, spare, n)
        for j in range(first, last):
            for k in range(K):
                i = (j - first) * K + k
                scale[j - start, k] = 1.0 / max(y[i] * product[i], SMALLEST)
                expected[k] -= totals[j, k] * (logs[i] - tail[i])
                fit[k] -= x[i]
    _add_logs(1.0, mantissas, exponents, stop - start, fit)
    for k in range(K):
        fit[k] += (stop - start) * _lgamma(above[0, k])
    for first in range(worker_ptr[start], worker_ptr[stop], strip):
        last = min(first + strip, worker_ptr[stop])
        n = _strip(row_label, C, by_label, first, last, scratch, mantissas, exponents)
        exp_minus(tail, product, spare, n)
        for r in range(first, last):
            own, below = scale[row_worker[r] - start], base[row_label[r]]
            for k in range(K):
                i = (r - first) * K + k
                P[r, k] = max(y[i] * product[i] * own[k], TINY)
                expected[k] += C[r, k] * (logs[i] - tail[i])
                fit[k] += x[i] - below[k]
    _add_logs(-1.0, mantissas, exponents, worker_ptr[stop] - worker_ptr[start], fit)
    return expected.sum()


@jit
def _sum_rows(worker_ptr, C, totals, start, stop):
    """Add the rows of each worker to totals."""
    for j in range(start, stop):
        for r in range(worker_ptr[j], worker_ptr[j + 1]):
            for k in range(C.shape[1]):
                totals[j, k] += C[r, k]


def dirichlet_rows(
    layout: RowTable, counts: Floats, a: Floats, dtype: DTypeLike, threads: int
) -> tuple[Floats, Floats, float, Floats]:
    P, totals = empty(counts.shape, dtype), np.zeros((layout.n_workers, counts.shape[1]))
    bounds = by_workers(layout)
    expected, fit = np.zeros(len(bounds) - 1), np.zeros((len(bounds) - 1, counts.shape[1]))
    rows = (layout.worker_ptr, layout.row_worker, layout.row_label, _same(layout))
    parts = (*rows, counts, *_transposed(a, gammaln(a)), P, totals)

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
def _slopes(rows, C, totals, by_label, above, base, psi, trigamma, top, below, curve, fit, start, stop):
    """Add to top (K, K) by label and class, below, curve and fit; base, psi and trigamma (K, K) are gammaln and its
    derivatives of `by_label`, the transpose of a; the last of `rows` is 0 for every worker."""
    worker_ptr, row_label, same = rows
    K = C.shape[1]
    strip = max(1, STRIP // K)
    scratch = _scratch(strip * K)
    x, _, tail, _, logs, bend = scratch
    mantissas, exponents = np.ones(K), np.zeros(K, WORD)
    for first in range(start, stop, strip):
        last = min(first + strip, stop)
        _strip(same, totals, above, first, last, scratch, mantissas, exponents)
        for j in range(last - first):
            for k in range(K):
                i = j * K + k
                below[k] += logs[i] - tail[i]
                curve[k] -= above[0, k] * above[0, k] * bend[i]
                fit[k] -= x[i]
    _add_logs(1.0, mantissas, exponents, stop - start, fit)
    for k in range(K):
        total = above[0, k]
        below[k] -= (stop - start) * _psi(total)
        curve[k] += (stop - start) * total * total * _trigamma(total)
        fit[k] += (stop - start) * _lgamma(total)
    for first in range(worker_ptr[start], worker_ptr[stop], strip):
        last = min(first + strip, worker_ptr[stop])
        _strip(row_label, C, by_label, first, last, scratch, mantissas, exponents)
        for r in range(first, last):
            label = row_label[r]
            for k in range(K):
                i = (r - first) * K + k
                prior = by_label[label, k]
                top[label, k] += logs[i] - tail[i] - psi[label, k]
                curve[k] += prior * prior * (bend[i] - trigamma[label, k])
                fit[k] += x[i] - base[label, k]
    _add_logs(-1.0, mantissas, exponents, worker_ptr[stop] - worker_ptr[start], fit)


def dirichlet_slopes(
    layout: RowTable, counts: Floats, totals: Floats, a: Floats, threads: int
) -> tuple[Floats, Floats, Floats, Floats]:
    K = counts.shape[1]
    bounds = by_workers(layout)
    top, below, curve, fit = (np.zeros((len(bounds) - 1, *shape)) for shape in ((K, K), (K,), (K,), (K,)))
    tables = _transposed(a, gammaln(a), digamma(a), trigamma(a))
    rows = (layout.worker_ptr, layout.row_label, _same(layout))

    def work(b: int, start: int, stop: int) -> None:
        _slopes(rows, counts, totals, *tables, top[b], below[b], curve[b], fit[b], start, stop)

    run(work, bounds, threads)
    return np.ascontiguousarray(top.sum(0).T), below.sum(0), curve.sum(0), fit.sum(0)


def _transposed(a: Floats, *others: Floats) -> list[Floats]:
    """Return a by label and class, its row sums (1, K), and the others by label and class."""
    return [np.ascontiguousarray(a.T), a.sum(1)[None], *(np.ascontiguousarray(each.T) for each in others)]


def _same(layout: RowTable) -> Ints:
    """Return 0 for every worker: all totals have the same prior."""
    return np.zeros(layout.n_workers, layout.row_label.dtype)
