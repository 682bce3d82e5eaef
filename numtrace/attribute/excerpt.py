"""The IR of one source op before and after a pass: only what changed, to be read."""

from __future__ import annotations

import re
from collections.abc import Iterator
from difflib import SequenceMatcher

from iree.compiler import ir

from numtrace.evaluate.program import stamps_of

_NAME = re.compile(r"%[\w$.#-]+")
#: Elements of a constant that are printed.
_ELEMENTS = 8
#: What MLIR prints for a value that it has not numbered.
_NAMELESS = "<<UNKNOWN SSA VALUE>>"
#: Ops that hold the program's ops rather than belong to one of them.
_HOLDERS = ("builtin.module", "func.func", "util.func", "util.initializer", "flow.executable")


def excerpts(before: str, after: str, stamps: set[int]) -> tuple[str, str]:
    """The ops of the source ops ``stamps`` in the modules' texts that are not in the other one, values' names aside.

    Which of its values an op's region uses where is no name: ``a - b`` is not ``b - a``. Where the ops differ in
    nothing but names, all of them.
    """
    old, new = _ops(before, stamps), _ops(after, stamps)
    plain_old, plain_new = ([_numbered(text) for text in texts] for texts in (old, new))
    same = SequenceMatcher(None, plain_old, plain_new, autojunk=False).get_matching_blocks()
    kept_old = [text for i, text in enumerate(old) if not any(b.a <= i < b.a + b.size for b in same)]
    kept_new = [text for i, text in enumerate(new) if not any(b.b <= i < b.b + b.size for b in same)]
    if not kept_old and not kept_new:
        kept_old, kept_new = old, new
    return "\n".join(kept_old), "\n".join(kept_new)


def _numbered(text: str) -> str:
    """An op with its values named in the order in which they appear."""
    numbers: dict[str, int] = {}
    return _NAME.sub(lambda name: f"%{numbers.setdefault(name[0], len(numbers))}", text)


def _ops(text: str, stamps: set[int]) -> list[str]:
    """The outermost ops of ``stamps``, without locations; names are those of the function that they are in."""
    module = ir.Module.parse(text, ir.Context())
    return [_text(op) for op in _walk(module.operation) if stamps.intersection(stamps_of(op.location))]


def _walk(op: ir.Operation) -> Iterator[ir.Operation]:
    for region in op.regions:
        for block in region.blocks:
            for view in block.operations:
                inner = view.operation
                if inner.name.startswith(_HOLDERS):
                    yield from _walk(inner)
                else:
                    yield inner


def _text(op: ir.Operation) -> str:
    text = op.get_asm(enable_debug_info=False, use_local_scope=True, large_elements_limit=_ELEMENTS)
    if _NAMELESS in text:  # an op that is isolated from what is around it is not numbered with it
        text = op.get_asm(enable_debug_info=False, large_elements_limit=_ELEMENTS)
    return text
