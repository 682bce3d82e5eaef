"""Texts of small programs with one public function, ``main``, and data of every magnitude for them."""

from __future__ import annotations

import random
from collections.abc import Sequence
from dataclasses import dataclass

import torch
from torch import Tensor

TORCH = {
    "f32": torch.float32,
    "f16": torch.float16,
    "bf16": torch.bfloat16,
    "i8": torch.int8,
    "i32": torch.int32,
    "i1": torch.bool,
}


@dataclass(frozen=True)
class Drawn:
    """A program, the shape and element type of each operand, and the flags that it is compiled with."""

    text: str
    operands: list[tuple[tuple[int, ...], str]]
    flags: tuple[str, ...] = ()


def tensor(shape: Sequence[int], element: str) -> str:
    return f"tensor<{''.join(f'{size}x' for size in shape)}{element}>"


def filled(name: str, shape: Sequence[int], element: str, value: str | None = None) -> str:
    """An op for ``%name``: a tensor of ``value``, of zeros without one."""
    type_, zero = tensor(shape, element), "0" if element.startswith("i") else "0.0"
    return f"""
  %{name}_c = arith.constant {value or zero} : {element}
  %{name}_e = tensor.empty() : {type_}
  %{name} = linalg.fill ins(%{name}_c : {element}) outs(%{name}_e : {type_}) -> {type_}"""


def named(op: str, a: Sequence[int], b: Sequence[int], c: Sequence[int], types: str, bias: str = "") -> str:
    """A named contraction; ``types`` is ``f16,f16,f32``: of its two operands and of the result."""
    left, right, out = types.split(",")
    ta, tb, tc = tensor(a, left), tensor(b, right), tensor(c, out)
    start = filled("init", c, out, bias or None)
    return f"""
func.func @main(%a: {ta}, %b: {tb}) -> {tc} {{{start}
  %y = linalg.{op} ins(%a, %b : {ta}, {tb}) outs(%init : {tc}) -> {tc}
  return %y : {tc}
}}
"""


def matmul(m: int, k: int, n: int, types: str, bias: str = "") -> str:
    return named("matmul", (m, k), (k, n), (m, n), types, bias)


def convolution(layout: str, channels: int, filters: int, side: int, types: str) -> Drawn:
    """A 3x3 convolution over an image of ``side``² in ``nchw`` or ``nhwc``."""
    image, kernel, result = (
        (1, channels, side, side),
        (filters, channels, 3, 3),
        (1, filters, side - 2, side - 2),
    )
    op = "conv_2d_nchw_fchw"
    if layout == "nhwc":
        op, image, kernel = "conv_2d_nhwc_hwcf", (1, side, side, channels), (3, 3, channels, filters)
        result = (1, side - 2, side - 2, filters)
    a, b, _ = types.split(",")
    return Drawn(named(op, image, kernel, result, types), [(image, a), (kernel, b)])


def generic(
    results: str, maps: Sequence[str], kinds: Sequence[str], ins: str, outs: str, arguments: str, body: str
) -> str:
    """A ``linalg.generic`` with one result, of type ``results``."""
    return f"""linalg.generic {{
      indexing_maps = [{", ".join(f"affine_map<{m}>" for m in maps)}],
      iterator_types = [{", ".join(f'"{k}"' for k in kinds)}]}} ins({ins}) outs({outs}) {{
  ^bb0({arguments}):
{body}
  }} -> {results}"""


def elementwise(body: str, count: int, element: str, arguments: str = "ab") -> str:
    """``body`` computes %r from %a, %b, …, all of type ``element``; in place of ``E`` stands that type."""
    type_ = tensor((count,), element)
    lines = body.replace("E", element) + f"\n    linalg.yield %r : {element}"
    made = generic(
        type_,
        ["(i) -> (i)"] * (len(arguments) + 1),
        ["parallel"],
        f"{', '.join(f'%{x}_' for x in arguments)} : {', '.join([type_] * len(arguments))}",
        f"%e : {type_}",
        ", ".join(f"%{x}: {element}" for x in [*arguments, "o"]),
        lines,
    )
    return f"""
func.func @main({", ".join(f"%{x}_: {type_}" for x in arguments)}) -> {type_} {{
  %e = tensor.empty() : {type_}
  %y = {made}
  return %y : {type_}
}}
"""


def chain(seed: int, count: int, element: str, steps: int, functions: bool = True) -> str:
    """A random fused chain of ``steps`` elementwise ops on two tensors."""
    draw = random.Random(seed)
    binary = ["addf", "subf", "mulf", "divf", "maximumf", "minimumf"]
    unary = ["sqrt", "exp", "tanh", "negf", "absf", "rsqrt", "select"] if functions else ["negf", "absf"]
    values, lines = ["%a", "%b"], []
    for i in range(steps):
        result = "%r" if i == steps - 1 else f"%v{i}"
        recent = values[-3:]
        x, y = draw.choice(recent), draw.choice(values)
        kind = draw.choice(binary if draw.random() < 0.65 else unary)
        if kind in binary:
            lines.append(f"    {result} = arith.{kind} {x}, {y} : E")
        elif kind == "negf":
            lines.append(f"    {result} = arith.negf {x} : E")
        elif kind == "select":
            lines.append(f"    %c{i} = arith.cmpf ogt, {x}, {y} : E")
            lines.append(f"    {result} = arith.select %c{i}, {x}, {y} : E")
        elif kind in ("sqrt", "rsqrt"):
            lines.append(f"    %p{i} = math.absf {x} : E")
            lines.append(f"    {result} = math.{kind} %p{i} : E")
        else:
            lines.append(f"    {result} = math.{kind} {x} : E")
        values.append(result)
    return elementwise("\n".join(lines), count, element)


def reduction(rows: int, columns: int, element: str, kind: str = "sum", inner: str | None = None) -> str:
    """Over the last dimension: ``sum``, ``mean``, ``max``, ``variance``; in ``inner`` if given."""
    inner = inner or element
    x, y, z = tensor((rows, columns), element), tensor((rows,), inner), tensor((rows,), element)
    widened = inner != element
    read = "%w" if widened else "%p"
    wide = f"    %w = arith.extf %p : {element} to {inner}\n" if widened else ""
    vector, matrix = "(i) -> (i)", "(i, j) -> (i, j)"
    kinds, row = ["parallel", "reduction"], "(i, j) -> (i)"

    def each(name: str, source: str, given: str, to: str, made: str, body: str) -> str:
        """One op on every element of ``source``."""
        read_type, made_type = (type_.removesuffix(">").rpartition("x")[2] for type_ in (given, made))
        return f"%{name}_e = tensor.empty() : {made}\n  %{name} = " + generic(
            made, [vector, vector], ["parallel"], f"{source} : {given}", f"%{name}_e : {made}",
            f"%p: {read_type}, %q: {made_type}", f"    %d = {body}\n    linalg.yield %d : {to}",
        )  # fmt: skip

    start = filled("init", (rows,), inner, "0xFF800000" if kind == "max" and inner == "f32" else None)
    join = "maximumf" if kind == "max" else "addf"
    body = f"{wide}    %s = arith.{join} %q, {read} : {inner}\n    linalg.yield %s : {inner}"
    arguments = f"%p: {element}, %q: {inner}"
    steps = [f"%s0 = {generic(y, [matrix, row], kinds, f'%x : {x}', f'%init : {y}', arguments, body)}"]
    result = "%s0"
    if kind in ("mean", "variance"):
        steps.append(f"%n = arith.constant {columns}.0 : {inner}")
        steps.append(each("m", "%s0", y, inner, y, f"arith.divf %p, %n : {inner}"))
        result = "%m"
    if kind == "variance":
        body = (
            f"{wide}    %t = arith.subf {read}, %k : {inner}\n    %u = arith.mulf %t, %t : {inner}\n"
            f"    %s = arith.addf %q, %u : {inner}\n    linalg.yield %s : {inner}"
        )
        arguments = f"%p: {element}, %k: {inner}, %q: {inner}"
        ins = f"%x, %m : {x}, {y}"
        steps.append(f"%v = {generic(y, [matrix, row, row], kinds, ins, f'%init : {y}', arguments, body)}")
        result = "%v"
    if widened:
        steps.append(each("z", result, y, element, z, f"arith.truncf %p : {inner} to {element}"))
        result = "%z"
    lines = "\n  ".join(steps)
    return f"func.func @main(%x: {x}) -> {z} {{{start}\n  {lines}\n  return {result} : {z}\n}}\n"


def softmax(rows: int, columns: int, element: str) -> str:
    t = tensor((rows, columns), element)
    return f"""
func.func @main(%x: {t}) -> {t} {{
  %e = tensor.empty() : {t}
  %y = linalg.softmax dimension(1) ins(%x : {t}) outs(%e : {t}) -> {t}
  return %y : {t}
}}
"""


def attention(
    batch: int, queries: int, keys: int, inner: int, width: int, element: str, scale: float, mask: str = ""
) -> str:
    """Attention over one group of heads; ``mask`` is the type of a mask over queries and keys, if there is one."""
    q, k, v, o = (
        tensor(shape, element)
        for shape in (
            (batch, queries, inner), (batch, keys, inner), (batch, keys, width), (batch, queries, width),
        )
    )  # fmt: skip
    m = tensor((batch, queries, keys), mask)
    operand, operand_type = (", %mask", f", {m}") if mask else ("", "")
    maps = ["(b, m, k1)", "(b, k2, k1)", "(b, k2, n)", "()", *["(b, m, k2)"] * bool(mask), "(b, m, n)"]
    text = ", ".join(f"affine_map<(b, m, n, k1, k2) -> {form}>" for form in maps)
    return f"""
func.func @main(%q: {q}, %k: {k}, %v: {v}{f", %mask: {m}" if mask else ""}) -> {o} {{
  %scale = arith.constant {scale} : {element}
  %e = tensor.empty() : {o}
  %y = iree_linalg_ext.attention <{{indexing_maps = [{text}]}}>
      ins(%q, %k, %v, %scale{operand} : {q}, {k}, {v}, {element}{operand_type}) outs(%e : {o}) {{
  ^bb0(%s: f32):
    iree_linalg_ext.yield %s : f32
  }} -> {o}
  return %y : {o}
}}
"""


#: The kinds of data that :func:`data` knows.
KINDS = (
    "normal", "large", "small", "tiny", "denormal", "mixed", "positive", "sparse", "cancelling", "constant",
    "narrow", "integers", "uniform", "skewed",
)  # fmt: skip


def data(kind: str, shape: Sequence[int], element: str, seed: int = 0) -> Tensor:
    """Numbers of one kind; in f16 the magnitudes are those that it has."""
    g = torch.Generator().manual_seed(seed)
    normal = torch.randn(*shape, generator=g, dtype=torch.float64)
    if element == "i1":
        return normal > -0.5
    if element.startswith("i"):
        return torch.randint(-128, 128, tuple(shape), generator=g).to(TORCH[element])
    half = element == "f16"
    value = {
        "normal": lambda: normal,
        "large": lambda: normal * (100.0 if half else 1e15),
        "small": lambda: normal * (1e-2 if half else 1e-15),
        "tiny": lambda: normal * (1e-4 if half else 1e-30),
        "denormal": lambda: normal * (3e-6 if half else 1e-38),
        "mixed": lambda: normal * 10.0 ** (torch.rand(*shape, generator=g) * (4 if half else 12) - 3),
        "positive": lambda: normal.abs(),
        "sparse": lambda: normal * (torch.rand(*shape, generator=g) < 0.1),
        "cancelling": lambda: _cancelling(normal),
        "constant": lambda: torch.full(tuple(shape), 0.1, dtype=torch.float64),
        "narrow": lambda: normal.bfloat16().double(),
        "integers": lambda: torch.randint(-8, 9, tuple(shape), generator=g).double(),
        "uniform": lambda: torch.rand(*shape, generator=g, dtype=torch.float64),
        "skewed": lambda: normal + 100.0,
    }[kind]()
    return value.to(TORCH[element])


def _cancelling(value: Tensor) -> Tensor:
    """The second half of the last dimension is the negative of the first, but for one part in 10^5."""
    half = value.shape[-1] // 2
    if half:
        value[..., half : 2 * half] = -value[..., :half] * (1 + 1e-5)
    return value
