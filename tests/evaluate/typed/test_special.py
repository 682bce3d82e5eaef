"""What NaN and infinities are certain, and which of them correct code need not make: worked out by hand."""

from __future__ import annotations

import math
from pathlib import Path

import pytest
import torch
from doubtful import number, step
from judged import Compiled, fault_free
from kernels import (
    attention,
    chain,
    convolution,
    data,
    elementwise,
    matmul,
    reduction,
    softmax,
)

from numtrace.attribute.codegen import distance
from numtrace.evaluate.typed.value import Typed

NAN, INF = math.nan, math.inf
ADD, SUBTRACT, MULTIPLY, DIVIDE, REMAINDER = (
    f"%r = arith.{name} %a, %b : E" for name in ("addf", "subf", "mulf", "divf", "remf")
)


def alike(a: float, b: float) -> bool:
    return a == b or (a != a and b != b)


#: Operands (with their bounds), and what all correct code makes of them.
CERTAIN = [
    (ADD, [(NAN, 0.0), (2.0, 0.5)], NAN),
    (ADD, [(NAN, 0.0), (2.0, INF)], NAN),  # whatever it is added to
    (ADD, [(INF, 0.0), (-5.0, 0.5)], INF),
    (ADD, [(INF, 0.0), (-INF, 0.0)], NAN),
    (SUBTRACT, [(INF, 0.0), (INF, 0.0)], NAN),
    (MULTIPLY, [(NAN, 0.0), (0.0, 0.5)], NAN),
    (MULTIPLY, [(0.0, 0.0), (INF, 0.0)], NAN),
    (MULTIPLY, [(-2.0, 0.5), (INF, 0.0)], -INF),
    (DIVIDE, [(0.0, 0.0), (0.0, 0.0)], NAN),
    (DIVIDE, [(1.0, 0.5), (0.0, 0.0)], INF),
    (DIVIDE, [(INF, 0.0), (INF, 0.0)], NAN),
    (REMAINDER, [(INF, 0.0), (2.0, 0.0)], NAN),
    ("%r = math.fma %a, %b, %b : E", [(0.0, 0.0), (INF, 0.0)], NAN),
    ("%r = math.fma %a, %b, %b : E", [(1.0, 0.5), (INF, 0.0)], INF),
    ("%r = arith.maximumf %a, %b : E", [(NAN, 0.0), (2.0, 0.5)], NAN),
    ("%r = arith.minimumf %a, %b : E", [(2.0, 0.0), (NAN, 0.0)], NAN),
    ("%r = math.sqrt %a : E", [(-1.0, 0.5)], NAN),
    ("%r = math.sqrt %a : E", [(NAN, 0.0)], NAN),
    ("%r = math.log %a : E", [(-1.0, 0.5)], NAN),
    ("%r = math.log %a : E", [(0.0, 0.0)], -INF),
    ("%r = math.exp %a : E", [(INF, 0.0)], INF),
    ("%r = math.tanh %a : E", [(NAN, 0.0)], NAN),
    ("%r = math.sin %a : E", [(INF, 0.0)], NAN),
    ("%r = math.asin %a : E", [(2.0, 0.5)], NAN),
    ("%r = math.floor %a : E", [(NAN, 0.0)], NAN),
    ("%t = arith.truncf %a : E to f16\n%r = arith.extf %t : f16 to E", [(NAN, 0.0)], NAN),
    ("%t = arith.truncf %a : E to bf16\n%r = arith.extf %t : bf16 to E", [(NAN, 0.0)], NAN),
    ("%c = arith.cmpf ogt, %a, %b : E\n%r = arith.select %c, %a, %b : E", [(2.0, 0.5), (NAN, 0.0)], NAN),
    # a rounding error on the way decides nothing
    ("%s = arith.addf %a, %b : E\n%r = arith.mulf %s, %a : E", [(3.0, 0.25), (NAN, 0.0)], NAN),
]  # fmt: skip

DOUBTFUL = [
    (MULTIPLY, [(0.0, 0.5), (INF, 0.0)]),  # a tiny number times infinity is infinite
    (MULTIPLY, [(2.0, INF), (NAN, INF)]),
    (SUBTRACT, [(INF, INF), (INF, 0.0)]),
    (DIVIDE, [(1.0, 0.0), (0.0, 0.5)]),
    (DIVIDE, [(0.0, 0.0), (0.0, 0.5)]),
    ("%r = math.sqrt %a : E", [(-1.0, 2.0)]),
    ("%r = math.sqrt %a : E", [(NAN, INF)]),
    ("%r = math.log %a : E", [(0.0, 0.5)]),
    ("%r = math.log %a : E", [(-1.0, 2.0)]),
    ("%r = math.asin %a : E", [(2.0, 8.0)]),
    ("%r = math.sin %a : E", [(INF, INF)]),
    ("%r = arith.maximumf %a, %b : E", [(NAN, INF), (2.0, 0.5)]),
    ("%t = arith.truncf %a : E to f16\n%r = arith.extf %t : f16 to E", [(NAN, INF)]),
    # in f32 infinite, in exact arithmetic a number
    (MULTIPLY, [(1e30, 0.0), (1e30, 0.0)]),
    ("%r = math.exp %a : E", [(100.0, 0.0)]),
]  # fmt: skip


def made_of(typed, body: str, operands: list[tuple[float, float]]) -> Typed:
    return step(typed, body, *(number(value, bound or None) for value, bound in operands))


@pytest.mark.parametrize(("body", "operands", "value"), CERTAIN)
def test_certain(typed, body: str, operands: list[tuple[float, float]], value: float) -> None:
    made = made_of(typed, body, operands)
    assert alike(made.typed.item(), value)
    assert distance(torch.tensor([value]), made, "f32").ratio == 0
    wrong = 1.0 if value != value else NAN
    found = distance(torch.tensor([wrong]), made, "f32")
    assert (found.ratio, found.over, found.free) == (INF, 1, 0)


@pytest.mark.parametrize(("body", "operands"), DOUBTFUL)
def test_doubtful(typed, body: str, operands: list[tuple[float, float]]) -> None:
    made = made_of(typed, body, operands)
    found = distance(torch.tensor([1.0]), made, "f32")
    assert (found.ratio, found.free) == (0, 1)


def test_a_maximum_of_numbers_does_not_see_a_nan(typed) -> None:
    made = made_of(typed, "%r = arith.maxnumf %a, %b : E", [(NAN, 0.0), (2.0, 0.5)])
    assert made.typed.item() == 2.0
    assert distance(torch.tensor([NAN]), made, "f32").ratio == INF


def test_code_may_assume_what_the_ir_allows_it_to(typed) -> None:
    for flags, operands in (("nnan", [NAN, 2.0]), ("ninf", [INF, 2.0]), ("fast", [NAN, 2.0])):
        given = [(value, 0.0) for value in operands]
        for body in (
            f"%r = arith.addf %a, %b fastmath<{flags}> : E",
            f"%r = arith.maximumf %a, %b fastmath<{flags}> : E",
        ):
            assert distance(torch.tensor([1.0]), made_of(typed, body, given), "f32").free == 1
    made = made_of(typed, "%r = arith.addf %a, %b fastmath<contract> : E", [(NAN, 0.0), (2.0, 0.0)])
    assert distance(torch.tensor([1.0]), made, "f32").ratio == INF
    finite = made_of(typed, "%r = arith.addf %a, %b fastmath<nnan> : E", [(1.0, 0.0), (2.0, 0.0)])
    assert distance(torch.tensor([9.0]), finite, "f32").ratio > 1


def test_a_maximum_over_a_row_may_assume_it_too(typed) -> None:
    text = reduction(2, 3, "f32", "max")
    x = torch.tensor([[1.0, NAN, 2.0], [1.0, 3.0, 2.0]])
    made = typed(text, x)
    assert distance(torch.tensor([2.0, 3.0]), made, "f32").ratio == INF
    free = typed(text.replace("arith.maximumf %q, %p", "arith.maximumf %q, %p fastmath<nnan>"), x)
    assert distance(torch.tensor([2.0, 3.0]), free, "f32").free == 2


def test_a_matmul_is_nan_in_the_rows_and_columns_of_a_nan(typed) -> None:
    a = torch.ones(3, 4)
    a[1, 2] = NAN
    b = torch.ones(4, 2)
    doubtful = Typed(a.double(), a, torch.full((3, 4), 0.5))
    for left in (a, doubtful):
        made = typed(matmul(3, 4, 2, "f32,f32,f32"), left, b)
        assert torch.isnan(made.typed).tolist() == [[False, False], [True, True], [False, False]]
        assert torch.isfinite(made.bound).all()
    columns = typed(matmul(3, 4, 2, "f32,f32,f32"), torch.zeros(3, 4), torch.tensor([[0.0, INF]] * 4))
    assert torch.isnan(columns.typed).tolist() == [[False, True]] * 3  # 0·∞
    assert torch.isfinite(columns.bound).all()


def test_an_infinite_sum_is_certain_unless_the_finite_part_overflows(typed) -> None:
    b = torch.ones(3, 1)
    text = matmul(1, 3, 1, "f32,f32,f32")
    assert typed(text, torch.tensor([[INF, 1.0, 1.0]]), b).bound.item() == 0
    # -2·3e38 may be taken first, and is -∞: with ∞ that is NaN
    assert typed(text, torch.tensor([[INF, -3e38, -3e38]]), b).bound.item() == INF
    doubtful = torch.tensor([[INF, 1.0, 1.0]])
    assert not math.isfinite(
        typed(text, Typed(doubtful.double(), doubtful, torch.full((1, 3), 0.5)), b).bound.item()
    )


def test_sums(typed) -> None:
    rows = torch.tensor(
        [[1.0, NAN, 2.0], [1.0, INF, 2.0], [INF, 1.0, -INF], [INF, -3e38, -3e38], [1.0, 2.0, 3.0]]
    )
    made = typed(reduction(5, 3, "f32"), rows)
    assert [math.isfinite(bound) for bound in made.bound.tolist()] == [True, True, True, False, True]
    wild = Typed(rows.double(), rows, torch.tensor([[0.0, 0.0, INF]] * 5))
    made = typed(reduction(5, 3, "f32"), wild)
    # Only the NaN stays one whatever it is added to.
    assert [math.isfinite(bound) for bound in made.bound.tolist()] == [True, False, False, False, False]


def test_a_cast_to_an_integer_is_undefined_beyond_its_range(typed) -> None:
    x = torch.tensor([NAN, INF, 3e9, 2.5])
    body = "    %i = arith.fptosi %a : E to i32\n    %r = arith.sitofp %i : i32 to E"
    text = elementwise(body, 4, "f32", "a")
    assert torch.isfinite(typed(text, x).error).tolist() == [False, False, False, True]


_CONVOLUTION = convolution("nchw", 4, 5, 8, "f16,f16,f32")
_FUNCTIONS = """    %l = math.log %a : E
    %s = math.sqrt %b : E
    %x = math.exp %l : E
    %t = math.tanh %x : E
    %r = arith.addf %t, %s : E"""
PROGRAMS = {
    "a chain": (chain(11, 100, "f32", 8), [((100,), "f32")] * 2),
    "a chain in bf16": (chain(5, 100, "bf16", 6), [((100,), "bf16")] * 2),
    "a matmul": (matmul(16, 33, 8, "f32,f32,f32"), [((16, 33), "f32"), ((33, 8), "f32")]),
    "a convolution": (_CONVOLUTION.text, _CONVOLUTION.operands),
    "a variance": (reduction(8, 65, "f32", "variance"), [((8, 65), "f32")]),
    "a maximum": (reduction(8, 65, "f32", "max"), [((8, 65), "f32")]),
    "a softmax": (softmax(8, 33, "f32"), [((8, 33), "f32")]),
    "an attention": (attention(1, 8, 8, 8, 8, "f32", 0.35), [((1, 8, 8), "f32")] * 3),
    "functions": (elementwise(_FUNCTIONS, 100, "f32"), [((100,), "f32")] * 2),
}


@pytest.mark.parametrize("name", PROGRAMS)
def test_irees_code_makes_what_is_certain(name: str, tmp_path: Path) -> None:
    text, operands = PROGRAMS[name]
    program = Compiled(text, tmp_path)
    for number_, (what, share) in enumerate(
        (([NAN], 0.03), ([INF], 0.03), ([NAN, INF, -INF, 0.0, -1.0], 0.2))
    ):
        draw = torch.Generator().manual_seed(number_)
        inputs = []
        for n, (shape, element) in enumerate(operands):
            value = data("normal", shape, element, n)
            planted = torch.tensor(what)[torch.randint(0, len(what), shape, generator=draw)].to(value.dtype)
            inputs.append(torch.where(torch.rand(shape, generator=draw) < share, planted, value))
        assert [found for site in program.run(*inputs) if (found := fault_free(site))] == []
