"""A program of the corpus: a few lines of MLIR at the stage that preprocessing passes are given."""

from __future__ import annotations

import re
from collections.abc import Mapping, Sequence
from dataclasses import dataclass


@dataclass(frozen=True, slots=True)
class Program:
    """``text``: a module with one public function, ``main``, of tensors.

    ``data``: what its float arguments are filled with. ``whole``: whole numbers from -8 to 8 without 0, by which
    sums are exact in every type and no term vanishes. ``normal``: standard normal numbers, for functions.
    Integers are drawn from all that an 8-bit type holds, so that the sign matters.
    """

    name: str
    text: str
    data: str = "whole"


def tensor(sizes: Sequence[int | str], element: str) -> str:
    """``tensor<2x3xf32>``; a size may be ``?``."""
    return f"tensor<{'x'.join([*map(str, sizes), element])}>"


def element_of(type_: str) -> str:
    """The element type of a tensor type."""
    return type_.removeprefix("tensor<").removesuffix(">").rpartition("x")[2]


def function(arguments: Mapping[str, str], body: str, results: Mapping[str, str]) -> str:
    """A module of one function; ``arguments`` and ``results`` are types by name."""
    given = ", ".join(f"%{name}: {type_}" for name, type_ in arguments.items())
    names, types = ", ".join(f"%{name}" for name in results), ", ".join(results.values())
    return f"util.func public @main({given}) -> ({types}) {{\n  {body.strip()}\n  util.return {names} : {types}\n}}\n"


def structured(
    op: str, inputs: Mapping[str, str], init: tuple[str, str], result: str, attributes: str = ""
) -> str:
    """``%result = linalg.op {attributes} ins(…) outs(…)``; ``init`` is a name and a type, the result's too."""
    names, types = ", ".join(f"%{name}" for name in inputs), ", ".join(inputs.values())
    name, type_ = init
    extra = f" {attributes}" if attributes else ""
    return f"  %{result} = linalg.{op}{extra} ins({names} : {types}) outs(%{name} : {type_}) -> {type_}\n"


def filled(name: str, type_: str, value: str = "0.0") -> str:
    """``%name``: a tensor with ``value`` in all its elements."""
    element = element_of(type_)
    value = value if element[0] in "fb" else value.partition(".")[0]
    return (
        f"  %{name}_value = arith.constant {value} : {element}\n"
        f"  %{name}_empty = tensor.empty() : {type_}\n"
        f"  %{name} = linalg.fill ins(%{name}_value : {element}) outs(%{name}_empty : {type_}) -> {type_}\n"
    )


def transposed(result: str, source: str, from_: str, to: str, permutation: Sequence[int]) -> str:
    """``%result``, of type ``to``, with the dimensions of ``%source`` in another order."""
    return (
        f"  %{result}_empty = tensor.empty() : {to}\n"
        f"  %{result} = linalg.transpose ins(%{source} : {from_}) outs(%{result}_empty : {to}) "
        f"permutation = {list(permutation)}\n"
    )


def broadcast(result: str, source: str, from_: str, to: str, dimensions: Sequence[int]) -> str:
    """``%result``, of type ``to``: ``%source`` repeated along new ``dimensions``."""
    return (
        f"  %{result}_empty = tensor.empty() : {to}\n"
        f"  %{result} = linalg.broadcast ins(%{source} : {from_}) outs(%{result}_empty : {to}) "
        f"dimensions = {list(dimensions)}\n"
    )


def elementwise(result: str, inputs: Mapping[str, str], type_: str, body: str) -> str:
    """A generic of as many parallel loops as ``type_`` has; ``body`` yields ``%v`` from ``%a``, ``%b``, …"""
    rank = type_.count("x")
    return generic(result, [_letters(rank)] * (len(inputs) + 1), inputs, (None, type_), body)


def generic(
    result: str,
    maps: Sequence[str],
    inputs: Mapping[str, str],
    init: tuple[str | None, str],
    body: str,
    reduced: str = "",
    loops: str = "",
) -> str:
    """``%result = linalg.generic``. A map is a word of loop letters, or expressions of them.

    ``reduced``: the letters of reduction loops. ``body`` yields ``%v`` from ``%a``, ``%b``, … and the result's
    own element ``%o``. Without a name in ``init`` it begins with a tensor of its own that is not read.
    """
    loops = loops or "".join(dict.fromkeys("".join(maps)))
    given = f"ins({', '.join('%' + n for n in inputs)} : {', '.join(inputs.values())})"
    name, type_ = init
    made = "" if name else f"  %{result}_empty = tensor.empty() : {type_}\n"
    affine = ", ".join(
        f"affine_map<({', '.join(loops)}) -> ({m if not m.isalpha() else ', '.join(m)})>" for m in maps
    )
    kinds = ", ".join('"reduction"' if loop in reduced else '"parallel"' for loop in loops)
    elements = [element_of(t) for t in [*inputs.values(), type_]]
    names = [*"abcd"[: len(inputs)], "o"]
    block = ", ".join(f"%{n}: {e}" for n, e in zip(names, elements, strict=True))
    # Names of their own: the function may have an argument of the same.
    block, body = (re.sub(r"%(\w+)", r"%e_\1", text) for text in (block, body))
    return (
        f"{made}  %{result} = linalg.generic {{indexing_maps = [{affine}], iterator_types = [{kinds}]}}\n"
        f"      {given} outs(%{name or result + '_empty'} : {type_}) {{\n"
        f"  ^bb0({block}):\n    {body}\n    linalg.yield %e_v : {elements[-1]}\n  }} -> {type_}\n"
    )


def _letters(rank: int) -> str:
    return "ijkl"[:rank]
