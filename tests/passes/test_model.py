import pytest

from numtrace.passes.model import Pass, Variant


def test_a_pass_has_either_pipelines_or_flags():
    with pytest.raises(ValueError, match="either pipelines or flags"):
        Pass("a", "", "")
    with pytest.raises(ValueError, match="either pipelines or flags"):
        Pass("a", "", "", pipelines=("a",), flags=("--a",))


@pytest.mark.parametrize("name", ["", "a+b", "a b", "a/b"])
def test_a_name_can_be_joined_and_be_a_folder(name):
    with pytest.raises(ValueError, match="pass name"):
        Pass(name, "", "", pipelines=("a",))


def test_variant_of():
    a = Pass("a", "", "", pipelines=("iree-a",))
    b = Pass("b", "", "", flags=("--b", "--c=1"))
    assert Variant.of(()).name == "baseline"
    assert Variant.of((a, b)).name == "a+b"
    assert Variant.of((a, b)).flags == ("--b", "--c=1")


def test_spellings_are_independent_of_nesting_and_order_of_options():
    assert Pass("a", "", "", pipelines=("x{a=1 b=2}",)).spellings() == {
        "builtin.module(util.func(x{a=1 b=2}))"
    }
    assert Pass("b", "", "", pipelines=("util.func(x{b=2 a=1})",)).spellings() == {
        "builtin.module(util.func(x{a=1 b=2}))"
    }
    assert Pass("c", "", "", flags=("--c",)).spellings() == {"--c"}
