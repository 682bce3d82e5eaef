"""When the code without a bound could carry the error that matters: worked out by hand."""

from __future__ import annotations

from typing import Any

import pytest
import torch

from numtrace.attribute.codegen import free_share
from numtrace.attribute.verdict import judge
from numtrace.evaluate.typed.value import Typed


def site(code: str, rel_l2: float | None, max_ulp: float | None = 40.0, **changes: Any) -> dict[str, Any]:
    """A site whose dispatch brought in ``rel_l2`` of its value."""
    off = 0.0 if rel_l2 == 0 else 1e-3
    term = {"max_abs": off, "rel_l2": rel_l2, "max_ulp": max_ulp, "nan": 0, "inf": 0}
    more = {"unbounded_reason": "no error bound is known"} if code == "unbounded" else {"codegen": term}
    return {
        "match": "verified", "tainted": False, "op": code, "code": code, "introduced": term,
        "made_by": [], "made_by_names": [],
    } | more | changes  # fmt: skip


def verdict(
    sites: list[dict[str, Any]],
    *,
    error: float = 1e-3,
    torch_error: float | None = None,
    tolerant: bool = False,
) -> tuple[str, str]:
    output = {"max_abs": error, "disagreeing": 0, "allclose": True if tolerant else None}
    part = {"max_abs": 0.0, "pass": 0.0, "lowering": 0.0}
    record = {
        "split": {"semantic": part | {"constant": 0.0}, "relative": part, "baseline_known": True},
        "findings": [], "tainted": False, "traced_equal": True, "changed": [], "no_longer_read": [],
        "output": output, "outputs": [output], "output_size": 1.0, "nonfinite_origin": None,
        "torch_same_dtype": None if torch_error is None else {"dtype": "f32", "max_abs": torch_error},
    }  # fmt: skip
    told = judge(record, sites, is_baseline=False, baseline={"differing": []}, tolerant=tolerant)
    return told.verdict, told.reason


def test_more_than_all_that_was_judged_together_is_inconclusive() -> None:
    # 4^2 < 3^2 + 3^2 < 5^2
    judged = [site("within", 3e-6), site("within", 3e-6)]
    assert verdict([*judged, site("unbounded", 4e-6)])[0] == "ok"
    told, reason = verdict([*judged, site("unbounded", 5e-6)])
    assert told == "inconclusive"
    assert "the code of unbounded has no error bound (no error bound is known)" in reason
    assert "up to 0.001 or 40 ulp" in reason
    assert "not known of 1 of 3 sites" in reason
    # two of them together
    assert verdict([*judged, site("unbounded", 4e-6), site("unbounded", 4e-6)])[0] == "inconclusive"


def test_what_is_exact_or_next_to_it_needs_no_bound() -> None:
    assert verdict([site("unbounded", 0.0, 0.0)])[0] == "ok"
    assert verdict([site("unbounded", 5e-8, 1.0)])[0] == "ok"
    assert verdict([site("unbounded", 5e-8, 1.5)])[0] == "inconclusive"


def test_a_wrong_index_has_no_ulp() -> None:
    assert verdict([site("within", 0.0), site("unbounded", 1e-9, None)])[0] == "inconclusive"
    assert verdict([site("within", 0.0), site("unbounded", 0.0, None)])[0] == "ok"


def test_an_error_as_torchs_own_is_rounding_whoever_made_it() -> None:
    sites = [site("unbounded", 1e-3)]
    assert verdict(sites, error=1e-3, torch_error=5e-4)[0] == "ok"
    assert verdict(sites, error=1e-3, torch_error=1e-6)[0] == "inconclusive"  # beyond 8 of it, and 8 ulp
    assert verdict(sites, error=0.0)[0] == "ok"


def test_within_a_given_tolerance_no_error_matters() -> None:
    assert verdict([site("unbounded", 1e-3)], tolerant=True)[0] == "ok"


def test_a_nan_that_no_bound_speaks_of() -> None:
    assert verdict([site("within", 1e-3), site("unbounded", 0.0, 0.0, disagreeing=1)])[0] == "inconclusive"


def test_what_the_types_ask_for_is_judged_though_every_element_is_in_doubt() -> None:
    """A sum of squares that leaves f16, say: the code makes what its types make, and that is far from exact."""
    as_typed = {"max_abs": 0.0, "rel_l2": 0.0, "max_ulp": 0.0, "nan": 0, "inf": 0}
    assert verdict([site("unbounded", 1.0, codegen=as_typed)])[0] == "ok"
    off = as_typed | {"max_abs": 0.5, "rel_l2": 0.8, "max_ulp": 1e3}
    assert verdict([site("unbounded", 1.0, codegen=off)])[0] == "inconclusive"  # 0.8^2 > 1 - 0.8^2


def test_of_a_site_that_is_free_in_part_that_part_is_not_judged() -> None:
    # of (5e-6)^2 the half, against the other half and (1e-6)^2
    sites = [site("within", 5e-6, free_share=0.5), site("within", 1e-6)]
    assert verdict(sites)[0] == "ok"
    assert verdict([site("within", 5e-6, free_share=0.6), site("within", 1e-6)])[0] == "inconclusive"


def test_the_free_part_of_an_error() -> None:
    """(3, 4) off, the second of them free: 16 of 25."""
    q = torch.zeros(3)
    value = Typed(q.double(), q, torch.tensor([1.0, float("inf"), 1.0]), False)
    assert free_share(torch.tensor([3.0, 4.0, 0.0]), value) == pytest.approx(16 / 25)
    assert free_share(torch.tensor([3.0, 4.0, 0.0]), value, torch.tensor([False, True, True])) == 1
    assert free_share(q, value) == 0
