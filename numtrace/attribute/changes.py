"""Which source ops a pass changed: fingerprints of the IR by stamp."""

from __future__ import annotations

import hashlib
import re
from collections import Counter, defaultdict
from collections.abc import Mapping, Sequence

from numtrace.evaluate.dispatch import entry_point
from numtrace.evaluate.op import Block, Op, walk
from numtrace.evaluate.program import Program

_UNSTAMPED = "none"
#: Ops that are the same wherever they stand: what becomes of those of several source ops, and with which location, is
#: chance. What reads them has them in its own text.
_ANYWHERE = ("arith.constant", "tensor.empty")
_UNNAMED = re.compile(r"@[\w$.]+")


def fingerprints(program: Program) -> dict[str, str]:
    """For each source op a digest of the IR that carries its stamp: ops, attributes, types and how they connect."""
    parts: dict[str, list[str]] = defaultdict(list)
    values = _Values(program)
    for op in walk([program.body]):
        if op.name not in _ANYWHERE:
            parts[_key(op)].append(values.text(op))
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
    "func.func",
    "util.func",
)


def computing(stamps: Sequence[int], table: Sequence[Mapping[str, str]]) -> list[int]:
    """Of ``stamps`` those of source ops that compute something."""
    return [stamp for stamp in stamps if not table[stamp]["kind"].startswith(_PASSIVE)]


def _key(op: Op) -> str:
    return ",".join(map(str, op.stamps)) or _UNSTAMPED


class _Values:
    """What an operand is called in a fingerprint.

    A value of another source op is named by that op alone, so that only the op that was rewritten has changed
    and not its readers too; one of the same source op, or an argument, by its place; a constant by what it is.
    """

    def __init__(self, program: Program):
        self._names: dict[int, tuple[str, str]] = {}
        self._counts: dict[str, int] = defaultdict(int)
        self._blocks([program.body])

    def _blocks(self, blocks: Sequence[Block]) -> None:
        for block in blocks:
            for position, slot in enumerate(block.arguments):
                self._names[slot] = ("argument", str(position))
            for op in block.ops:
                key = _key(op)
                if op.name in _ANYWHERE:
                    self._names[op.results[0]] = (op.name, self.text(op))
                    continue
                for position, slot in enumerate(op.results):
                    self._names[slot] = (key, f"{self._counts[key]}.{position}")
                self._counts[key] += 1
                self._blocks(op.regions)

    def text(self, op: Op) -> str:
        attributes = [f"{name}={value}" for name, value in sorted(op.attributes.items())]
        types = [str(type_) for type_ in (*op.operand_types, *op.result_types)]
        return f"{op.name} {attributes} {[self._operand(op, slot) for slot in op.operands]} {types}"

    def _operand(self, op: Op, slot: int) -> str:
        key, place = self._names.get(slot, ("outside", ""))
        return f"{key} {place}" if key in ("argument", _key(op), *_ANYWHERE) else key


def dispatch_prints(program: Program) -> Counter[str]:
    """How often each dispatch body occurs, whatever its executable is called."""
    values = _Values(program)
    bodies = {
        name: hashlib.sha256(
            "\n".join(_UNNAMED.sub("@", values.text(op)) for op in walk(body.regions)).encode()
        )
        for name, body in program.executables.items()
    }
    dispatches = (op for op in walk([program.body]) if op.name == "flow.dispatch")
    return Counter(bodies[entry_point(op)].hexdigest() for op in dispatches)


def stage_digest(program: Program, flags: Sequence[str]) -> str:
    """A digest of a whole stage and the flags it goes on with: equal digests are the same program."""
    return hashlib.sha256("\n".join([*flags, program.text]).encode()).hexdigest()
