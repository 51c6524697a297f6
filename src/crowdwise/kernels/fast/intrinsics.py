"""One machine instruction that numba does not expose: ask for a cache line before it is needed."""

from __future__ import annotations

from llvmlite import ir
from numba.core import cgutils, types
from numba.extending import intrinsic


@intrinsic
def prefetch(typingctx, table, row, column):
    """Start loading the cache line of an element of a C-ordered 2-d array, some time before it is used."""

    def codegen(context, builder, signature, args):
        array = context.make_array(signature.args[0])(context, builder, args[0])
        index = context.cast(builder, args[1], signature.args[1], types.intp)
        place = context.cast(builder, args[2], signature.args[2], types.intp)
        at = cgutils.get_item_pointer(context, builder, signature.args[0], array, [index, place])
        byte, word = ir.IntType(8).as_pointer(), ir.IntType(32)
        kind = ir.FunctionType(ir.VoidType(), [byte, word, word, word])
        fetch = cgutils.get_or_insert_function(builder.module, kind, "llvm.prefetch.p0")
        # to read, to be kept in all cache levels, data
        builder.call(fetch, [builder.bitcast(at, byte), word(0), word(3), word(1)])
        return context.get_dummy_value()

    return types.void(table, row, column), codegen
