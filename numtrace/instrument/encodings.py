"""A program without the encodings (data tiling) of its tensors: the same mathematics in plain row-major tensors."""

from __future__ import annotations

import re

from iree.compiler import ir

from numtrace.errors import CompileError

#: The beginning of a tensor type that has an encoding; what follows, up to the closing ``>``, is the encoding.
_ENCODED = re.compile(r"tensor<((?:[0-9?]+x)*[A-Za-z][A-Za-z0-9]*), ")
#: Ops that change nothing but the encoding of their first operand.
_CASTS = ("iree_encoding.set_encoding", "iree_encoding.unset_encoding", "flow.tensor.encode")


def without_encodings(text: str) -> str:
    """``text`` (a module) with every encoding taken out of its types, and the ops that only change encodings.

    Raises:
        CompileError: the program makes no sense without them: an op asks for encoded tensors.
    """
    module = ir.Module.parse(text, ir.Context())
    casts: list[ir.Operation] = []

    def visit(op: ir.Operation) -> ir.WalkResult:
        if op.name in _CASTS:
            casts.append(op)
        return ir.WalkResult.ADVANCE

    module.operation.walk(visit, ir.WalkOrder.PRE_ORDER)
    for op in casts:
        op.results[0].replace_all_uses_with(op.operands[0])
        op.erase()
    # The types do not fit one another here: only the generic form can be printed.
    printed = module.operation.get_asm(print_generic_op_form=True, enable_debug_info=False)
    try:
        plain = ir.Module.parse(_stripped(printed), ir.Context())
    except ir.MLIRError as error:
        raise CompileError(f"the dispatch cannot be written without its encodings: {error}") from None
    return plain.operation.get_asm(enable_debug_info=False)


def _stripped(text: str) -> str:
    parts, at = [], 0
    for start in _ENCODED.finditer(text):
        if start.start() < at:
            continue  # inside of an encoding
        parts += [text[at : start.start()], f"tensor<{start[1]}>"]
        at = _closing(text, start.end()) + 1
    return "".join([*parts, text[at:]])


def _closing(text: str, at: int) -> int:
    """Where the ``>`` stands that closes the bracket which is open at ``at``."""
    depth = 1
    while depth:
        if text.startswith("->", at):
            at += 2
            continue
        depth += {"<": 1, ">": -1}.get(text[at], 0)
        at += 1
    return at - 1
