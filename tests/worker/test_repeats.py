"""Programs that do not give the same values each time: bit-equality of the traced one is replaced by a bound."""

from __future__ import annotations

from pathlib import Path

import pytest
import torch
from programs import Bench, conv_program

from numtrace.attribute.verdict import judge
from numtrace.worker import variant
from numtrace.worker.repeats import repeats

PLAIN = torch.tensor([1.0, 2.0, 3.0])


def runs(*shifts: float):
    values = iter(shifts)
    return lambda: [PLAIN + next(values)]


def test_equal_runs_are_no_excuse():
    assert repeats(runs(0, 0, 0, 0), [PLAIN], [PLAIN + 1]) is None


@pytest.mark.parametrize(
    ("traced", "away", "within"), [(0.25, 0.0, True), (1.5, 1.0, True), (-1.25, 1.25, False)]
)
def test_the_bound_is_twice_what_runs_differ_by(traced, away, within):
    """Runs from 0 to 0.5 above the first allow 1 to either side."""
    found = repeats(runs(0.5, 0, 0.25, 0.5), [PLAIN], [PLAIN + traced])
    assert found == {"runs": 5, "spread": 0.5, "traced": away, "within": within}


def test_a_nan_in_one_of_them_is_within_nothing():
    found = repeats(runs(0.5, float("nan"), 0, 0), [PLAIN], [PLAIN])
    assert found is not None and found["spread"] is None and not found["within"]


@pytest.mark.parametrize(("noise", "verdict"), [(1e-6, "ok"), (0.0, "inconclusive")])
def test_a_device_whose_runs_differ(tmp_path: Path, monkeypatch, noise, verdict):
    """The plain program's outputs are shifted: by something else each time, or always by the same."""
    real, count = variant.run_module, iter(range(100))

    def run_module(vmfb, *arguments, **options):
        outcome = real(vmfb, *arguments, **options)
        if vmfb.name == "plain.vmfb":
            outcome.outputs[0].add_(1e-6 + noise * (next(count) % 3))
        return outcome

    monkeypatch.setattr(variant, "run_module", run_module)
    weights = torch.randn(8, 8, 3, 3, generator=torch.Generator().manual_seed(0)).numpy()
    bench = Bench(tmp_path / "bench", conv_program("0.5"), {"w": weights, "bias": weights[:, 0, 0, 0].copy()})
    ran = bench.run()
    assert ran.record["traced_equal"] is False
    assert (ran.record["repeats"] is None) == (noise == 0)
    told = judge(ran.record, ran.sites, is_baseline=True, baseline=None, tolerant=False)
    assert told.verdict == verdict, told.reason
