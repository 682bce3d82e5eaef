"""Dispatches that are really compiled alone, in every way there is, and run in processes of their own."""

from __future__ import annotations

import sys
from pathlib import Path

import pytest
import torch

sys.path.insert(0, str(Path(__file__).parent))  # of the module beside this one

from alone_programs import DYNAMIC, FLAGS, GATHER, TWO_RESULTS, flow, matmul

from numtrace.errors import CompileError, UsageError
from numtrace.instrument.compiler import phase
from numtrace.instrument.standalone import standalone
from numtrace.instrument.traces import dispatches
from numtrace.worker.alone import Alone, Setting
from numtrace.worker.routes import OWN, ROUTES, Route
from numtrace.worker.witness import same_bits, witness

# Whole numbers: every sum is exact in every order, so all routes make the same bits.
A = torch.arange(32.0).reshape(4, 8)
B = torch.arange(128.0).reshape(8, 16) - 60
WIDE = torch.arange(64.0 * 64).reshape(64, 64).remainder(7) - 3


def setting(*flags, timeout=60.0):
    return Setting([*FLAGS, *flags], "local-task", 2, timeout)


def worst(results, expected):
    return float((results[0].double() - expected.double()).abs().max())


def look(tmp_path, text, operands, expected, flags=(), site="main/0", **more):
    module = flow(text, tmp_path, flags)
    with Alone(module, site, operands, setting(*flags), tmp_path / "alone") as alone:
        return witness(alone, [expected], lambda results: {"gap": worst(results, expected)}, **more)


def some(*names):
    return [route for route in ROUTES if route.name in names]


def by_name(record):
    return {route["name"]: route for route in record["routes"]}


def test_every_route_of_a_matmul_makes_the_exact_product(tmp_path):
    record = look(tmp_path, matmul(4, 8, 16), [A, B], A @ B)
    routes = by_name(record)
    assert record["deterministic"] and record["as_traced"]
    assert list(routes) == ["own", *(route.name for route in ROUTES)]
    assert routes["no-data-tiling"]["status"] == "unfit"
    assert routes["in-order"]["status"] == "same-code"  # IREE's default
    for name in ("own", "vmvx", "generic-cpu", "no-vectors"):
        assert routes[name]["status"] == "ran", routes[name]
        assert routes[name]["measure"] == {"gap": 0.0}
    assert routes["vmvx"]["as_own"]


def test_operands_of_bf16_come_in_as_they_are(tmp_path):
    a, b = A.bfloat16(), B.bfloat16()  # whole numbers below 256: exact
    record = look(tmp_path, matmul(4, 8, 16, "bf16"), [a, b], A @ B, routes=[ROUTES[0]])
    assert [route["measure"] for route in record["routes"]] == [{"gap": 0.0}] * 2
    assert record["as_traced"]


def test_an_encoded_dispatch_runs_tiled_and_plain(tmp_path):
    module = flow(matmul(64, 64, 64), tmp_path, ["--iree-opt-data-tiling"])
    text = (tmp_path / "flow.mlir").read_text()
    ordinal = [line for line in text.splitlines() if "= flow.dispatch @" in line].index(
        next(line for line in text.splitlines() if "= flow.dispatch @" in line and "matmul" in line)
    )
    expected = WIDE @ WIDE
    with Alone(
        module, f"main/{ordinal}", [WIDE, WIDE], setting("--iree-opt-data-tiling"), tmp_path / "alone"
    ) as alone:
        assert alone.program.encoded
        tried = some("vmvx", "generic-cpu", "no-vectors", "no-data-tiling")
        record = witness(alone, [expected], lambda results: {"gap": worst(results, expected)}, routes=tried)
    routes = by_name(record)
    for name in ("own", "vmvx", "generic-cpu", "no-vectors", "no-data-tiling"):
        assert routes[name]["status"] == "ran", routes[name]
        assert routes[name]["measure"] == {"gap": 0.0}, routes[name]
    assert "encoding" in (tmp_path / "alone" / "dispatch.mlir").read_text()
    assert "encoding" not in (tmp_path / "alone" / "no-data-tiling" / "dispatch.mlir").read_text()


def test_both_results_of_a_dispatch_come_out(tmp_path):
    module = flow(TWO_RESULTS, tmp_path)
    x = torch.tensor([-1.0, 0.0, 2.0, float("nan")])
    with Alone(module, "main/0", [x], setting(), tmp_path / "alone") as alone:
        alone.compile(OWN, FLAGS)
        total, positive = alone.run(OWN)
    assert total[:3].tolist() == [0.0, 1.0, 3.0] and total[3].isnan()
    assert positive.tolist() == [False, False, True, False] and positive.dtype == torch.bool


def test_dynamic_sizes_are_given_and_not_compiled_in(tmp_path):
    module = flow(DYNAMIC, tmp_path)
    a, b = torch.full((3,), 2.0), torch.full((3,), 1.5)
    with pytest.raises(CompileError, match="its real inputs are needed"):
        standalone(module, "main/0")
    ((_, dispatch),) = dispatches(module)
    tensors = iter([a, b])
    operands = [
        next(tensors) if str(operand.type).startswith("tensor") else torch.tensor(3)
        for operand in dispatch.operands
    ]
    with Alone(module, "main/0", operands, setting(), tmp_path / "alone") as alone:
        assert "tensor<?xf32>" in alone.program.text
        alone.compile(OWN, FLAGS)
        (result,) = alone.run(OWN)
    assert result.shape == (3,) and bool((result == 3.0).all())


#: z² of complex numbers, however many.
SQUARED = """
func.func @main(%z: tensor<?xcomplex<f32>>) -> tensor<?xcomplex<f32>> {
  %c0 = arith.constant 0 : index
  %n = tensor.dim %z, %c0 : tensor<?xcomplex<f32>>
  %e = tensor.empty(%n) : tensor<?xcomplex<f32>>
  %r = linalg.generic {indexing_maps = [affine_map<(i) -> (i)>, affine_map<(i) -> (i)>],
      iterator_types = ["parallel"]}
      ins(%z : tensor<?xcomplex<f32>>) outs(%e : tensor<?xcomplex<f32>>) {
  ^bb0(%a: complex<f32>, %o: complex<f32>):
    %s = complex.mul %a, %a : complex<f32>
    linalg.yield %s : complex<f32>
  } -> tensor<?xcomplex<f32>>
  return %r : tensor<?xcomplex<f32>>
}
"""


def test_complex_numbers_come_in_and_out_as_pairs(tmp_path):
    z = torch.tensor([1 + 2j, 3 - 1j, 2j])
    expected = torch.tensor([-3 + 4j, 8 - 6j, -4 + 0j])
    module = flow(SQUARED, tmp_path)
    (dispatch,) = (op for _, op in dispatches(module))
    operands = [z if "tensor" in str(value.type) else torch.tensor(3) for value in dispatch.operands]
    with Alone(module, "main/0", operands, setting(), tmp_path / "alone") as alone:
        found = witness(alone, [expected], lambda results: {"made": results[0].tolist()}, routes=[])
    assert found["routes"][0]["measure"]["made"] == torch.view_as_real(expected).tolist(), found
    assert found["as_traced"] and found["deterministic"]


def test_a_wrong_executable_is_seen_through_by_every_other_route(tmp_path):
    """The flow IR is right; a flag of IREE puts another body in its place."""
    module = flow(matmul(4, 8, 16), tmp_path)
    dumped = tmp_path / "sources"
    phase(
        tmp_path / "flow.mlir", tmp_path / "x.vmfb", "flow", None,
        [*FLAGS, f"--iree-hal-dump-executable-sources-to={dumped}"],
    )  # fmt: skip
    (source,) = dumped.glob("*.mlir")
    wrong = tmp_path / "wrong.mlir"
    body = source.read_text()
    assert body.count("constant 0.000000e+00") == 1
    wrong.write_text(body.replace("constant 0.000000e+00", "constant 1.000000e+00"))
    name = source.stem.removeprefix("module_")
    flag = f"--iree-hal-substitute-executable-source={name}={wrong}"
    expected = A @ B
    traced = expected + 1
    with Alone(module, "main/0", [A, B], setting(flag), tmp_path / "alone") as alone:
        tried = some("vmvx", "no-vectors", "no-ukernels", "in-order")
        record = witness(alone, [traced], lambda results: {"gap": worst(results, expected)}, routes=tried)
    routes = by_name(record)
    assert record["as_traced"] and record["deterministic"]  # alone it is as wrong as in the program
    assert routes["own"]["measure"] == {"gap": 1.0}
    for name in ("vmvx", "no-vectors", "no-ukernels", "in-order"):
        assert routes[name]["status"] == "ran", routes[name]
        assert routes[name]["measure"] == {"gap": 0.0}
        assert routes[name]["as_own"] is False


def test_a_route_that_dies_is_only_that(tmp_path):
    module = flow(GATHER, tmp_path)
    ((_, dispatch),) = dispatches(module)
    far = {"tensor<9xf32>": torch.zeros(9), "tensor<4xi64>": torch.full((4,), 1 << 40)}
    operands = [far[str(operand.type)] for operand in dispatch.operands]
    with Alone(module, "main/0", operands, setting(), tmp_path / "alone") as alone:
        record = witness(alone, [torch.zeros(4)], lambda results: {}, routes=[Route("again", "the same")])
    own, again = record["routes"]
    assert own["status"] == "run-failed" and own["kind"] == "crash" and "SIGSEGV" in own["reason"]
    assert again["status"] == "run-failed" and again["measure"] is None
    assert record["deterministic"] is None and record["as_traced"] is None


def test_a_route_that_does_not_compile_says_why(tmp_path):
    routes = [Route("strange", "", adds=("--iree-no-such-flag",))]
    record = look(tmp_path, matmul(4, 8, 16), [A, B], A @ B, routes=routes)
    assert record["routes"][1]["status"] == "compile-failed"
    assert "--iree-no-such-flag" in record["routes"][1]["reason"]
    assert record["as_traced"]


def test_inputs_do_not_stay_behind(tmp_path):
    with Alone(flow(matmul(4, 8, 16), tmp_path), "main/0", [A, B], setting(), tmp_path / "alone") as alone:
        assert [path.stat().st_size for _, path in alone.inputs] == [4 * 32, 4 * 128]
    assert not list((tmp_path / "alone").iterdir())


def test_no_such_dispatch(tmp_path):
    with pytest.raises(UsageError, match="no dispatch main/7; it has main/0"):
        standalone(flow(matmul(4, 8, 16), tmp_path), "main/7")


def test_bits_are_compared_where_they_are_defined():
    a = torch.tensor([0.0, 1.0])
    b = torch.tensor([-0.0, 1.0])
    assert same_bits([a], [a.clone()], None)
    assert not same_bits([a], [b], None)  # equal numbers, other bits
    assert same_bits([a], [b], [torch.tensor([False, True])])
    assert not same_bits([a], [a.double()], None)
    assert not same_bits(None, [a], None)
