"""A few ops of a program, as they are right and as they are wrong, with the numbers that go in."""

from __future__ import annotations

import re
from collections.abc import Sequence
from dataclasses import dataclass

import numpy as np


@dataclass(frozen=True)
class Reader:
    """A correct matmul that reads a piece's result: what is wrong before it is none of its fault."""

    weight: str
    data: np.ndarray
    result: str

    def body(self, of: str) -> str:
        y = self.result
        return (
            filled("start", y)
            + f"%read = linalg.matmul ins(%out, %by : {of}, {self.weight}) outs(%start : {y}) -> {y}\n"
        )


@dataclass(frozen=True)
class Piece:
    """Ops that compute ``%out`` of the arguments.

    ``kind`` is what is wrong with ``wrong`` (for a correct piece: what makes its error large), ``op`` what it is
    done to. ``data`` is one array per argument, of its type. ``code`` is
    what the verdict must be at least when the compiled code is ``wrong`` and the IR ``right``, ``changed`` when a
    pass puts ``wrong`` in the place of ``right``.
    """

    kind: str
    op: str
    arguments: tuple[tuple[str, str], ...]
    data: tuple[np.ndarray, ...]
    result: str
    right: str
    wrong: str | None = None
    code: str | None = "codegen-bug"
    changed: str | None = "pass-bug"
    reader: Reader | None = None

    @property
    def inputs(self) -> list[tuple[str, str, np.ndarray]]:
        """Name, type and numbers of all that goes in."""
        given = [(name, type_, data) for (name, type_), data in zip(self.arguments, self.data, strict=True)]
        return given if self.reader is None else [*given, ("by", self.reader.weight, self.reader.data)]

    def body(self, prefix: str, *, wrong: bool = False) -> str:
        """The ops with names of their own."""
        text = self.wrong if wrong else self.right
        assert text is not None
        return _renamed(text, prefix)

    def __str__(self) -> str:
        return f"{self.kind} of {self.op}: {', '.join(type_ for _, type_ in self.arguments)} -> {self.result}"


def program(pieces: Sequence[Piece], planted: Sequence[int] = ()) -> tuple[str, list[range]]:
    """One function with every piece, each with a result; those in ``planted`` are wrong.

    Returns the text and the lines of each piece, counted from 1.
    """
    signature = ", ".join(
        f"%p{n}{name}: {type_}" for n, piece in enumerate(pieces) for name, type_, _ in piece.inputs
    )
    results = [
        (f"%p{n}out", piece.result) if piece.reader is None else (f"%p{n}read", piece.reader.result)
        for n, piece in enumerate(pieces)
    ]
    types = ", ".join(type_ for _, type_ in results)
    lines = [f"util.func public @main({signature}) -> ({types}) {{"]
    spans = []
    for n, piece in enumerate(pieces):
        first = len(lines) + 1
        lines += piece.body(f"p{n}", wrong=n in planted).strip("\n").split("\n")
        spans.append(range(first, len(lines) + 1))
        if piece.reader is not None:
            lines += _renamed(piece.reader.body(piece.result), f"p{n}").strip("\n").split("\n")
    lines += [f"util.return {', '.join(name for name, _ in results)} : {types}", "}", ""]
    return "\n".join(lines), spans


def _renamed(text: str, prefix: str) -> str:
    return re.sub(r"%(?=\w)", f"%{prefix}", text)


#: What a contraction does with its operands and its accumulator.
MULTIPLY_ADD = "%m = arith.mulf %a, %b : f32\n%r = arith.addf %o, %m : f32"


def tensor(*dims: int | str) -> str:
    """``tensor(4, 8, "f32")``."""
    return f"tensor<{'x'.join(map(str, dims))}>"


def filled(name: str, type_: str, value: str = "0.0") -> str:
    """``%name``: a tensor of ``value``."""
    element = type_.removesuffix(">").removeprefix("tensor<").rsplit("x", 1)[-1]
    return (
        f"%{name}c = arith.constant {value} : {element}\n%{name}e = tensor.empty() : {type_}\n"
        f"%{name} = linalg.fill ins(%{name}c : {element}) outs(%{name}e : {type_}) -> {type_}\n"
    )


def generic(
    name: str, maps: Sequence[str], ins: Sequence[tuple[str, str]], out: tuple[str, str], body: str
) -> str:
    """``%name = linalg.generic``; loops are one letter each, those that the last map lacks are summed over.

    ``maps`` such as ``"ij ik kj"``'s words, or ``(i+k, j)`` written out. The body's arguments are ``%a, %b, …`` of
    the inputs and ``%o`` of the output; its last line must define ``%r``, of the output's type.
    """
    spelled = [m if m.startswith("(") else f"({', '.join(m)})" for m in maps]
    # Those of the output first, as in the named ops.
    loops = list(dict.fromkeys(c for m in [spelled[-1], *spelled] for c in re.findall(r"[a-z]", m)))
    kinds = ['"parallel"' if loop in spelled[-1] else '"reduction"' for loop in loops]
    affine = ", ".join(f"affine_map<({', '.join(loops)}) -> {m}>" for m in spelled)
    elements = [type_.removesuffix(">").removeprefix("tensor<").rsplit("x", 1)[-1] for _, type_ in ins]
    result = out[1].removesuffix(">").removeprefix("tensor<").rsplit("x", 1)[-1]
    inputs = f"ins({', '.join(f'%{n}' for n, _ in ins)} : {', '.join(t for _, t in ins)}) " if ins else ""
    arguments = ", ".join(f"%{name}{'abcdefgh'[i]}: {e}" for i, e in enumerate(elements))
    arguments += (", " if ins else "") + f"%{name}o: {result}"
    inner = re.sub(r"%(?=[a-z]\d*\b)", f"%{name}", body).strip("\n")
    return (
        f"%{name} = linalg.generic {{indexing_maps = [{affine}], iterator_types = [{', '.join(kinds)}]}} "
        f"{inputs}outs(%{out[0]} : {out[1]}) {{\n^bb0({arguments}):\n{inner}\nlinalg.yield %{name}r : {result}\n"
        f"}} -> {out[1]}\n"
    )
