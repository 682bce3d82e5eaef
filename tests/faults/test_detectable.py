"""The rule by which a fault counts as one that must be found."""

from __future__ import annotations

import numpy as np
import pytest

from faults.detectable import truncated, verdict


@pytest.mark.parametrize(
    ("relative", "expected"),
    [
        # 100 terms: 2·100·2^-24 is 1.19e-5; λ = √(2·ln(2·2^30)) is 6.55, and 2·6.55·10·2^-24 is 7.8e-6.
        (1.3e-5, "codegen-bug"),
        (1.1e-5, "codegen-suspect"),
        (8.0e-6, "codegen-suspect"),
        (7.6e-6, None),
    ],
)
def test_verdict(relative: float, expected: str | None) -> None:
    right = np.array([3.0])
    assert verdict(right, right * (1 + relative), np.abs(right), 100) == expected


def test_truncated() -> None:
    assert truncated(1.0 - 2.0**-10, 8) == 1.0 - 2.0**-8
    assert truncated(-0.75, 2) == -0.75
    assert truncated(-0.8125, 3) == -0.75
