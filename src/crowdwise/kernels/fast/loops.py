"""Logarithms and exponentials of arrays, written so that the compiler turns their loops into vector instructions.

It does not do so for the functions of the standard library. Errors are a few units in the last place. All arrays are
1-d arrays of doubles; the first n numbers are used, and `spare` is overwritten.
"""

from __future__ import annotations

import math

import numpy as np

from .blocks import jit

WORD = np.uint64
EXPONENT_AT = WORD(52)  # place of the exponent in the bits of a double
MANTISSA, ONE, ZERO = WORD((1 << 52) - 1), WORD(1023 << 52), WORD(0)  # bits of a mantissa, and of 1.0
OFFSET = 1024  # added to exponents, so that they are not negative
HALF_ROOT = np.array([math.sqrt(0.5)]).view(WORD)[0]
SHIFTED = WORD(OFFSET << 52) - HALF_ROOT
ROUNDER = 1.5 * 2.0**52  # the last bits of this plus an integer are the integer
ROUNDER_BITS = np.array([ROUNDER]).view(WORD)[0] - WORD(OFFSET)
OFFSET_BITS = WORD(OFFSET)
LOG_2_HIGH, LOG_2_LOW = 6.93147180369123816490e-01, 1.90821492927058770002e-10  # their sum is log 2
LARGEST = 700.0  # exp of minus this is a normal double


@jit
def log_all(x, out, spare, n):
    """out = log(x) for x > 0: x = 2^e m with m between sqrt(1/2) and sqrt(2), log m = 2 artanh((m - 1) / (m + 1))."""
    bits, parts, exponents = x.view(WORD), spare.view(WORD), out.view(WORD)
    for i in range(n):
        e = (bits[i] + SHIFTED) >> EXPONENT_AT
        parts[i] = bits[i] - ((e - OFFSET_BITS) << EXPONENT_AT)
        exponents[i] = e + ROUNDER_BITS
    for i in range(n):
        e = out[i] - ROUNDER
        s = (spare[i] - 1.0) / (spare[i] + 1.0)
        z = s * s
        # 2 artanh(s) / s - 2
        p = 1 / 7 + z * (1 / 9 + z * (1 / 11 + z * (1 / 13 + z * (1 / 15 + z * (1 / 17 + z / 19)))))
        p = z * (1 / 3 + z * (1 / 5 + z * p))
        out[i] = e * LOG_2_HIGH + (2.0 * s + (2.0 * s * p + e * LOG_2_LOW))


@jit
def exp_minus(x, out, spare, n):
    """out = exp(-x) for x >= 0: -x = e log 2 + r with |r| <= log(2) / 2, and a Taylor series for exp(r)."""
    bits, exponents = out.view(WORD), spare.view(WORD)
    for i in range(n):
        t = -min(x[i], LARGEST)
        shifted = t * 1.4426950408889634 + ROUNDER
        e = shifted - ROUNDER
        r = (t - e * LOG_2_HIGH) - e * LOG_2_LOW
        p = 1 / 5040 + r * (1 / 40320 + r * (1 / 362880 + r * (1 / 3628800 + r * (1 / 39916800 + r / 479001600))))
        out[i] = 1 + r * (1 + r * (1 / 2 + r * (1 / 6 + r * (1 / 24 + r * (1 / 120 + r * (1 / 720 + r * p))))))
        spare[i] = shifted
    for i in range(n):
        bits[i] += exponents[i] << EXPONENT_AT
