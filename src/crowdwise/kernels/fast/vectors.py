"""Short vectors of doubles that compiled kernels keep in registers.

numba would keep a small array in memory, and its loops over ten classes are not vectorised well. Here a vector is a
value: a few registers of at most `LANES` numbers each. All functions are called in compiled code only. Tables are
C-ordered 2-d arrays of single or double precision, `size` is known at compile time, and arithmetic is double.
"""

from __future__ import annotations

from typing import Any

from llvmlite import ir
from numba.core import cgutils, types
from numba.extending import intrinsic as _intrinsic
from numba.extending import models, register_model

LANES = 4  # numbers in a register of 256 bits
DOUBLE, SINGLE, INDEX, WORD = ir.DoubleType(), ir.FloatType(), ir.IntType(32), ir.IntType(64)
ANY_ORDER = ("nnan", "nsz")  # there are no NaNs, and the sign of zero does not matter
intrinsic: Any = _intrinsic  # compiled code calls intrinsics without their first parameter
EXPONENT_BITS, EXPONENT_ONE = 52, 1023  # place and value of the exponent of 1.0 in the bits of a double


def widths(size: int) -> list[int]:
    """Return the lengths of the registers of a vector, powers of two."""
    parts = [LANES] * (size // LANES)
    return parts + [width for width in (2, 1) if size % LANES & width]


class Vector(types.Type):
    """The type of a vector of `size` doubles."""

    def __init__(self, size: int) -> None:
        self.size = size
        super().__init__(f"Vector({size})")


@register_model(Vector)
class _Registers(models.PrimitiveModel):
    def __init__(self, manager: Any, kind: Any) -> None:
        super().__init__(manager, kind, ir.LiteralStructType([ir.VectorType(DOUBLE, n) for n in widths(kind.size)]))


def _parts(builder, vector):
    return [builder.extract_value(vector, n) for n in range(len(vector.type.elements))]


def _joined(builder, parts):
    vector = ir.Constant(ir.LiteralStructType([part.type for part in parts]), ir.Undefined)
    for n, part in enumerate(parts):
        vector = builder.insert_value(vector, part, n)
    return vector


def _spread(builder, number, width):
    """Return a register with the number in every lane."""
    undefined = ir.Constant(ir.VectorType(number.type, width), ir.Undefined)
    first = builder.insert_element(undefined, number, INDEX(0))
    return builder.shuffle_vector(first, undefined, ir.Constant(ir.VectorType(INDEX, width), [0] * width))


def _places(context, builder, signature, args, size):
    """Yield a pointer to each register of the vector at table[row, column:], its type, and its alignment in bytes.
    Under NUMBA_BOUNDSCHECK, its first and last numbers must be in the table."""
    if signature.args[0].layout != "C":
        raise TypeError("vectors are loaded from and stored to C-ordered tables only")
    table, row, column = signature.args[:3]
    item = SINGLE if table.dtype.bitwidth == 32 else DOUBLE
    array = context.make_array(table)(context, builder, args[0])
    row_at = context.cast(builder, args[1], row, types.intp)
    column_at = context.cast(builder, args[2], column, types.intp)
    start = 0
    for width in widths(size):
        place = _place(context, builder, table, array, row_at, column_at, start)
        if context.enable_boundscheck:
            _place(context, builder, table, array, row_at, column_at, start + width - 1)
        kind = ir.VectorType(item, width)
        yield builder.bitcast(place, kind.as_pointer()), kind, table.dtype.bitwidth // 8
        start += width


def _place(context, builder, table, array, row, column, offset):
    """Return a pointer to table[row, column + offset]."""
    at = [row, builder.add(column, ir.Constant(column.type, offset))]
    return cgutils.get_item_pointer(context, builder, table, array, at, boundscheck=context.enable_boundscheck)


@intrinsic(prefer_literal=True)
def load(typing, table, row, column, size):
    """Return `size` numbers of the table from table[row, column] on."""

    def code(context, builder, signature, args):
        parts = []
        for place, kind, align in _places(context, builder, signature, args, size.literal_value):
            part = builder.load(place, align=align)
            wide = ir.VectorType(DOUBLE, kind.count)
            parts.append(part if kind.element is DOUBLE else builder.fpext(part, wide))
        return _joined(builder, parts)

    return Vector(size.literal_value)(table, row, column, size), code


@intrinsic
def store(typing, table, row, column, vector):
    """Write a vector to the table, from table[row, column] on, in the precision of the table."""

    def code(context, builder, signature, args):
        places = _places(context, builder, signature, args, vector.size)
        for part, (place, kind, align) in zip(_parts(builder, args[3]), places, strict=True):
            builder.store(part if kind.element is DOUBLE else builder.fptrunc(part, kind), place, align=align)
        return context.get_dummy_value()

    return types.void(table, row, column, vector), code


@intrinsic(prefer_literal=True)
def filled(typing, number, size):
    """Return a vector with the same number everywhere."""

    def code(context, builder, signature, args):
        value = context.cast(builder, args[0], signature.args[0], types.float64)
        return _joined(builder, [_spread(builder, value, width) for width in widths(size.literal_value)])

    return Vector(size.literal_value)(number, size), code


def _elementwise(operation):
    """Return an intrinsic that applies operation(builder, *registers) to the registers of its vectors."""

    @intrinsic
    def of_two(typing, a, b):
        def code(context, builder, signature, args):
            pairs = zip(_parts(builder, args[0]), _parts(builder, args[1]), strict=True)
            return _joined(builder, [operation(builder, x, y) for x, y in pairs])

        return a(a, b), code

    return of_two


def _of_one(operation):
    @intrinsic
    def of_one(typing, a):
        def code(context, builder, signature, args):
            return _joined(builder, [operation(builder, x) for x in _parts(builder, args[0])])

        return a(a), code

    return of_one


def _larger(builder, x, y):
    return builder.select(builder.fcmp_ordered(">", x, y, flags=ANY_ORDER), x, y)


def _words(builder, x):
    return builder.bitcast(x, ir.VectorType(WORD, x.type.count))


def _splat(kind, value):
    return ir.Constant(kind, [value] * kind.count)


def _single(builder, x):
    return builder.fpext(builder.fptrunc(x, ir.VectorType(SINGLE, x.type.count)), x.type)


def _exponent(builder, x):
    words = _words(builder, x)
    shifted = builder.lshr(words, _splat(words.type, EXPONENT_BITS))
    return builder.sitofp(builder.sub(shifted, _splat(words.type, EXPONENT_ONE)), x.type)


def _mantissa(builder, x):
    words = _words(builder, x)
    kept = builder.and_(words, _splat(words.type, (1 << EXPONENT_BITS) - 1))
    one = builder.or_(kept, _splat(words.type, EXPONENT_ONE << EXPONENT_BITS))
    zero = builder.fcmp_ordered("==", x, _splat(x.type, 0.0))
    return builder.select(zero, x, builder.bitcast(one, x.type))


def _power(builder, x):
    kind = ir.VectorType(WORD, x.type.count)
    words = builder.add(builder.fptosi(x, kind), _splat(kind, EXPONENT_ONE))
    return builder.bitcast(builder.shl(words, _splat(kind, EXPONENT_BITS)), x.type)


times: Any = _elementwise(lambda builder, x, y: builder.fmul(x, y))
plus: Any = _elementwise(lambda builder, x, y: builder.fadd(x, y))
minus: Any = _elementwise(lambda builder, x, y: builder.fsub(x, y))
larger: Any = _elementwise(_larger)
single: Any = _of_one(_single)  # rounded to single precision
exponent: Any = _of_one(_exponent)  # e of x = m * 2**e with 1 <= m < 2; x > 0 is not denormal
mantissa: Any = _of_one(_mantissa)  # m, or 0 if x is 0
power: Any = _of_one(_power)  # 2**e for whole numbers -1022 <= e <= 1023


def _fold(operation, neutral):
    """Return an intrinsic that reduces a vector to one number, in an order that is fixed by its size."""

    @intrinsic
    def fold(typing, vector):
        def code(context, builder, signature, args):
            parts = _parts(builder, args[0])
            width = parts[0].type.count
            parts = [_widened(builder, part, width, neutral) for part in parts]
            while len(parts) > 1:
                pairs = [parts[n : n + 2] for n in range(0, len(parts), 2)]
                parts = [operation(builder, *pair) if len(pair) == 2 else pair[0] for pair in pairs]
            whole = parts[0]
            while width > 1:
                width //= 2
                halves = [_lanes(builder, whole, range(start, start + width)) for start in (0, width)]
                whole = operation(builder, *halves)
            return builder.extract_element(whole, INDEX(0))

        return types.float64(vector), code

    return fold


def _lanes(builder, part, lanes):
    return builder.shuffle_vector(part, part, ir.Constant(ir.VectorType(INDEX, len(lanes)), list(lanes)))


def _widened(builder, part, width, neutral):
    count = part.type.count
    lanes = ir.Constant(ir.VectorType(INDEX, width), [min(lane, count) for lane in range(width)])
    return builder.shuffle_vector(part, _splat(part.type, neutral), lanes)


total: Any = _fold(lambda builder, x, y: builder.fadd(x, y), 0.0)
largest: Any = _fold(_larger, float("-inf"))


@intrinsic
def meet(typing, a, x, b, y):
    """Return whether a is x and b is y at some place."""

    def code(context, builder, signature, args):
        found = ir.Constant(ir.IntType(1), 0)
        for part, other in zip(_parts(builder, args[0]), _parts(builder, args[2]), strict=True):
            width = part.type.count
            first = builder.fcmp_ordered("==", part, _spread(builder, args[1], width))
            second = builder.fcmp_ordered("==", other, _spread(builder, args[3], width))
            lanes = builder.bitcast(builder.and_(first, second), ir.IntType(width))
            found = builder.or_(found, builder.icmp_unsigned("!=", lanes, ir.Constant(lanes.type, 0)))
        return found

    return types.boolean(a, types.float64, b, types.float64), code
