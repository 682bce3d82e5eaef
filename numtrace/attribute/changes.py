"""Which source ops a pass changed: fingerprints of the IR by stamp."""

from __future__ import annotations

import hashlib
from collections import defaultdict
from collections.abc import Mapping, Sequence

from numtrace.evaluate.program import Op, Program, walk

_UNSTAMPED = "none"


def fingerprints(program: Program) -> dict[str, str]:
    """For each source op a digest of the IR that carries its stamp: ops, attributes, types and how they connect."""
    parts: dict[str, list[str]] = defaultdict(list)
    makers = {slot: op for op in walk([program.body]) for slot in op.results}
    for op in walk([program.body]):
        key = ",".join(map(str, op.stamps)) or _UNSTAMPED
        parts[key].append(_text(op, makers))
    return {key: hashlib.sha256("\n".join(lines).encode()).hexdigest() for key, lines in parts.items()}


def changed_stamps(before: Mapping[str, str], after: Mapping[str, str]) -> list[int]:
    """The stamps whose fingerprints differ, in the order of the source."""
    keys = [key for key in before.keys() | after.keys() if before.get(key) != after.get(key)]
    return sorted({int(stamp) for key in keys if key != _UNSTAMPED for stamp in key.split(",")})


#: Source ops that compute nothing: that one of them changed says that an op beside it did.
_PASSIVE = (
    "util.global",
    "torch.vtensor.literal",
    "arith.constant",
    "tensor.empty",
    "torch.constant",
    "torch.prim.",
    "torch_c.",
)


def computing(stamps: Sequence[int], table: Sequence[Mapping[str, str]]) -> list[int]:
    """Of ``stamps`` those of source ops that compute something."""
    return [stamp for stamp in stamps if not table[stamp]["kind"].startswith(_PASSIVE)]


def _text(op: Op, makers: Mapping[int, Op]) -> str:
    attributes = [f"{name}={value}" for name, value in sorted(op.attributes.items()) if name != "location"]
    # An operand is named by the source op it comes from, so that only the op that was rewritten has changed,
    # and not its neighbours too.
    operands = [str(makers[slot].stamps) if slot in makers else "argument" for slot in op.operands]
    return f"{op.name} {attributes} {operands} {[str(t) for t in op.operand_types]} {[str(t) for t in op.result_types]}"


def stage_digest(prints: Mapping[str, str], flags: Sequence[str]) -> str:
    """A digest of a whole stage and the flags it goes on with: equal digests are the same program."""
    lines = [*flags, *(f"{stamp} {digest}" for stamp, digest in sorted(prints.items()))]
    return hashlib.sha256("\n".join(lines).encode()).hexdigest()
