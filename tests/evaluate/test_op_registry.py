from pathlib import Path

import pytest

from numtrace.errors import UncoveredOp
from numtrace.evaluate.registry import covered, evaluates, lookup, without


def test_a_second_function_for_an_op_is_an_error():
    with pytest.raises(ValueError, match=r"two evaluations of arith\.addf"):
        evaluates("arith.addf")(lambda op, machine, a, b: a)
    assert lookup("arith.addf").__module__ == "numtrace.evaluate.arith"


def test_an_unknown_op_is_uncovered():
    with pytest.raises(UncoveredOp, match=r"dialect\.nonsense") as caught:
        lookup("dialect.nonsense")
    assert caught.value.op == "dialect.nonsense"


def test_a_family_covers_what_has_no_function_of_its_own():
    assert lookup("torch.aten.mul.Tensor").__module__ == "numtrace.evaluate.torch_dialect"


def test_without_takes_exactly_one_op_out_and_puts_it_back():
    before = covered()
    put_back = without("arith.mulf")
    try:
        assert before - covered() == {"arith.mulf"}
        with pytest.raises(UncoveredOp):
            lookup("arith.mulf")
        assert lookup("arith.muli")
    finally:
        put_back()
    assert covered() == before


def test_each_op_is_named_in_a_test():
    """Where it is named its value is asserted, found by hand or by a way that does not use the evaluator."""
    tests = Path(__file__).parents[1]
    text = "\n".join(file.read_text() for kind in ("py", "mlir") for file in tests.rglob(f"*.{kind}"))
    assert sorted(name for name in covered() if name not in text and not _family(name, text)) == []


def _family(name: str, text: str) -> bool:
    """Whether a test puts ``name`` together, of the dialect and a quoted rest."""
    dialect, _, rest = name.partition(".")
    return any(f"{dialect}.{{{what}}}" in text for what in ("name", "op")) and f'"{rest}"' in text
