"""The search along a row of meanings: which steps are found, and from how few evaluations."""

from __future__ import annotations

from math import ceil, log2

import pytest
from hypothesis import given
from hypothesis import strategies as st

from numtrace.attribute.steps import Step, find_steps


class Row:
    """Meanings by position, one letter each; ``?`` cannot be told. Counts what was asked."""

    def __init__(self, letters: str):
        self.letters, self.asked = letters, []

    def __call__(self, position: int) -> int | None:
        assert position not in self.asked, "evaluated twice"
        self.asked.append(position)
        letter = self.letters[position]
        return None if letter == "?" else ord(letter)


def search(letters: str, **options):
    row = Row(letters)
    return find_steps(len(letters), row, **options), row


@given(st.integers(1, 200), st.integers(1, 200))
def test_one_step_is_found_from_a_logarithmic_number_of_evaluations(good, bad):
    found, row = search("a" * good + "b" * bad)
    assert found.steps == [Step(good - 1, good)]
    assert not found.exhaustive
    assert len(row.asked) <= 2 + ceil(log2(good + bad))


def test_both_sides_of_the_step_were_evaluated():
    found, row = search("aaaaabbb")
    assert {4, 5} <= set(row.asked)
    assert (found.known[4], found.known[5]) == (ord("a"), ord("b"))


def test_equal_ends_are_no_change_and_cost_two_evaluations():
    found, row = search("abba")
    assert (found.steps, row.asked) == ([], [0, 3])


def test_what_is_brought_in_and_repaired_is_found_by_looking_at_every_position():
    found, row = search("abba", every=True)
    assert found.steps == [Step(0, 1), Step(2, 3)]
    assert sorted(row.asked) == [0, 1, 2, 3]


def test_another_meaning_after_the_step_than_at_the_end_has_every_step_reported():
    """Bisection alone would have named one pass for the work of three."""
    found, _ = search("aabbbccac")
    assert found.steps == [Step(1, 2), Step(4, 5), Step(6, 7), Step(7, 8)]
    assert found.exhaustive


def test_a_third_meaning_met_beyond_the_step_has_every_step_reported():
    """The step a to c accounts for the end, but the middle that was met first was neither."""
    found, row = search("accbbbbcc")
    assert row.asked[2] == 4
    assert found.steps == [Step(0, 1), Step(2, 3), Step(6, 7)]
    assert found.exhaustive


@pytest.mark.parametrize(
    ("letters", "step"),
    [
        ("a?b", Step(0, 2)),
        ("aa?bb", Step(1, 3)),
        ("a??a??b??b", Step(3, 6)),
        ("a????b", Step(0, 5)),
        ("aaaa???b", Step(3, 7)),
        ("a???bbbb", Step(0, 4)),
    ],
)
def test_what_cannot_be_told_is_stepped_around_and_named_as_an_interval(letters, step):
    found, _ = search(letters)
    assert found.steps == [step]


@given(st.data())
def test_the_step_is_exact_whenever_its_two_sides_can_be_told(data):
    good, bad = data.draw(st.integers(1, 40)), data.draw(st.integers(1, 40))
    letters = [*("a" * good + "b" * bad)]
    hidden = data.draw(st.sets(st.integers(1, good + bad - 2)) if good + bad > 3 else st.just(set()))
    for position in hidden - {0, good - 1, good, good + bad - 1}:
        letters[position] = "?"
    found, _ = search("".join(letters))
    assert found.steps == [Step(good - 1, good)]


@given(st.text("abc?", min_size=1, max_size=30))
def test_every_reported_step_is_a_change_between_two_meanings_that_were_evaluated(middle):
    letters = f"a{middle}b"
    found, _ = search(letters)
    assert found.steps
    for step in found.steps:
        before, after = letters[step.before], letters[step.after]
        assert before != after
        assert "?" not in before + after
        assert set(letters[step.before + 1 : step.after]) <= {"?"}


@given(st.text("abc?", min_size=0, max_size=30))
def test_the_steps_of_every_position_lead_from_the_first_meaning_to_the_last(middle):
    letters = f"a{middle}c"
    found, _ = search(letters, every=True)
    at = "a"
    for step in found.steps:
        assert letters[step.before] == at
        at = letters[step.after]
    assert at == "c"
