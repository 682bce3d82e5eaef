import pytest

from numtrace.errors import UsageError
from numtrace.passes.model import Pass
from numtrace.passes.variants import parse_modes, variants

A, B, C = (Pass(name, "", "", pipelines=(f"iree-{name}",)) for name in "abc")


def names(passes, modes="alone,pairs,all"):
    return [v.name for v in variants(passes, parse_modes(modes))]


def test_no_combination_comes_twice():
    assert names([]) == ["baseline"]
    assert names([A]) == ["baseline", "a"]
    assert names([A, B]) == ["baseline", "a", "b", "a+b"]
    assert names([A, B, C]) == ["baseline", "a", "b", "c", "a+b", "a+c", "b+c", "a+b+c"]


def test_the_order_is_that_of_the_command_line():
    assert names([B, A]) == ["baseline", "b", "a", "b+a"]
    assert names([C, A, B])[4:] == ["c+a", "c+b", "a+b", "c+a+b"]


def test_modes():
    assert names([A, B, C], "alone") == ["baseline", "a", "b", "c"]
    assert names([A, B, C], "pairs") == ["baseline", "a+b", "a+c", "b+c"]
    assert names([A, B, C], "all") == ["baseline", "a+b+c"]
    assert names([A], "pairs") == ["baseline"]
    assert names([A], "") == ["baseline"]


def test_a_pass_given_twice_counts_once():
    same_as_a = Pass("raw", "", "", pipelines=("builtin.module(util.func(iree-a))",))
    assert names([A, A]) == ["baseline", "a"]
    assert names([A, B, A, same_as_a]) == ["baseline", "a", "b", "a+b"]


def test_an_unknown_mode_is_named():
    assert parse_modes(" alone, all ") == {"alone", "all"}
    with pytest.raises(UsageError, match="'triples' is not one of alone, pairs, all"):
        parse_modes("alone,triples")
