"""What the report says of a variant's outputs: their error, and whose it is."""

from __future__ import annotations

from typing import Any

import numpy as np
from torch import Tensor

from numtrace.attribute.agreement import agrees
from numtrace.attribute.folded import Folded
from numtrace.attribute.magnitude import largest, sizes
from numtrace.attribute.outputs import largest_gap, output_record, worst_first
from numtrace.attribute.summary import Summary
from numtrace.errors import CompileError
from numtrace.evaluate.op import walk
from numtrace.evaluate.overflow import Watch
from numtrace.evaluate.program import Program
from numtrace.evaluate.torch_conversion import with_sign
from numtrace.evaluate.types import tensor_type
from numtrace.instrument.dtypes import to_numpy
from numtrace.instrument.runtime import Outcome
from numtrace.worker.compilation import Variant
from numtrace.worker.exact import baseline_outputs, outputs_as_stored, watched
from numtrace.worker.golden import expected_outputs, golden_gap, golden_record


def outcome_fields(
    variant: Variant,
    flow: Program,
    outcome: Outcome,
    summary: Summary,
    tables: dict[str, Folded],
    expected: list[Tensor],
    params,
    inputs,
) -> dict[str, Any]:
    """The parts of the report that speak of the outputs."""
    job = variant.job
    types = [type_[1] for type_ in job["results"]]
    if len(outcome.outputs) != len(expected):
        raise CompileError(
            f"the compiled program returned {len(outcome.outputs)} tensors, "
            f"the source returns {len(expected)}"
        )
    compiled = _as_returned(outcome.outputs, types)
    expected = _as_returned(
        [value.reshape(out.shape) for value, out in zip(expected, compiled, strict=True)], types
    )
    golden = expected_outputs(variant, len(types))
    records = [
        output_record(out, want, dtype=type_, golden=gold, tolerance=job["tolerance"])
        for out, want, type_, gold in zip(compiled, expected, types, golden, strict=True)
    ]

    def like_outputs(values: list[Tensor]) -> list[Tensor]:
        shaped = [value.reshape(want.shape) for value, want in zip(values, expected, strict=True)]
        return _as_returned(shaped, types)

    exact = like_outputs(summary.exact_outputs)
    for index, value in enumerate(exact):
        np.save(variant.folder / f"exact{index}.npy", to_numpy(value.double()))
    for index, value in enumerate(expected if job["is_baseline"] else ()):
        np.save(variant.folder / f"reference{index}.npy", to_numpy(value.double()))
    stored = outputs_as_stored(variant, flow, summary, tables, params, inputs)
    stored = None if stored is None else like_outputs(stored)
    base = exact if job["is_baseline"] else baseline_outputs(variant, params, inputs)
    base = None if base is None else like_outputs(base)
    split = _split(job.get("baseline_constant"), compiled, exact, expected, stored, base)
    split["elsewhere"] = _elsewhere(like_outputs(summary.outputs), exact, expected)
    watch = Watch()
    if None in (split["semantic"]["max_abs"], split["semantic"]["pass"]) or _has_dynamic_reshapes(flow):
        watch = watched(flow, job["function"], params, inputs)
    return {
        "outputs": records,
        "output": worst_first(records),
        "output_size": max((largest(value) for value in expected), default=0.0),
        "execution_disagreeing": sum(
            output_record(made, value, dtype="f64")["disagreeing"]
            for made, value in zip(compiled, exact, strict=True)
        ),
        "split": split,
        "beyond_float64": sorted(watch.beyond_float64),
        "misfits": [
            {"op": variant.table[stamps[0]]["name"] if stamps else "(compiler)", "read": read, "of": of}
            for stamps, (read, of) in watch.misfits.items()
        ],
        "constants": [
            {
                "op": ops[0],
                "ops": ops,
                "source": r.source,
                "stored": r.stored,
                "rel": r.rel,
                "beyond_half_ulp": r.beyond_half_ulp,
            }
            for r, ops in summary.constants.items()
        ],
        "places": [*summary.places],
        "folded": [
            {"op": variant.table[table.stamp]["name"], "max_abs": table.max_abs}
            for table in tables.values()
            if job["is_baseline"]  # as the constants: a lowering's, said once
        ],
        "nonfinite_origin": None
        if summary.origin is None
        else {"site": summary.origin[0], "op": summary.origin[1]},
        "amended": summary.amended,
        "tainted": summary.tainted_outputs,
        "unsure": summary.unsure,
        "golden_max_abs": golden_gap(golden, expected),
        "golden": golden_record(golden, expected, types, job["tolerance"], records),
        "reference": job["reference"],
    }


def _as_returned(values: list[Tensor], types: list[str]) -> list[Tensor]:
    """Integers with the signs that the function's results have; below the torch dialect they have none."""
    return [with_sign(value, element) for value, element in zip(values, types, strict=True)]


def _has_dynamic_reshapes(flow: Program) -> bool:
    return any(
        op.name == "flow.tensor.reshape" and None in tensor_type(op.result_types[0])[0]
        for op in walk([flow.body])
    )


def semantic_gap(a: list[Tensor], b: list[Tensor]) -> float | None:
    """Between exact values: None where one is NaN or Inf and the other is not, 0 where all are so alike."""
    records = [output_record(x, y.reshape(x.shape), dtype="f64") for x, y in zip(a, b, strict=True)]
    if any(record["disagreeing"] for record in records):
        return None
    return max((record["max_abs"] or 0.0 for record in records), default=0.0)


def _rel_l2(a: list[Tensor], b: list[Tensor]) -> float | None:
    """The worst relative L2 over the outputs; None where one of ``b`` is all zero, and ``a`` is not."""
    norms = [output_record(x, y.reshape(x.shape), dtype="f64")["rel_l2"] for x, y in zip(a, b, strict=True)]
    return None if None in norms else max(norms, default=0.0)


def _split(
    constant: float | None,
    compiled: list[Tensor],
    exact: list[Tensor],
    expected: list[Tensor],
    stored: list[Tensor] | None,
    base: list[Tensor] | None,
) -> dict[str, Any]:
    """What of the output's error is whose: the pass's, the lowering's, the rounded constants'.

    Args:
        constant: what the baseline's rounded constants are worth, where this is not the baseline.
        stored: exact outputs with the constants as they are stored.
        base: the baseline's exact outputs.
    """
    if stored is not None:
        constant = largest_gap(stored, exact)
    semantic = {
        "max_abs": semantic_gap(exact, expected),
        "pass": None if base is None else semantic_gap(exact, base),
        "lowering": None if base is None else semantic_gap(base, expected),
    }
    norms = {
        "max_abs": _rel_l2(exact, expected),
        "pass": None if base is None else _rel_l2(exact, base),
        "lowering": None if base is None else _rel_l2(base, expected),
    }
    relative = {
        "max_abs": relative_gap(exact, expected, expected),
        "pass": None if base is None else relative_gap(exact, base, expected),
        "lowering": None if base is None else relative_gap(base, expected, expected),
    }
    return {
        "semantic": semantic | {"constant": constant or 0.0},
        "relative": relative,
        "rel_l2": norms,
        "execution_max_abs": largest_gap([c.double() for c in compiled], exact),
        "baseline_known": base is not None,
    }


def _elsewhere(set_back: list[Tensor], exact: list[Tensor], expected: list[Tensor]) -> dict[str, Any]:
    """What of the outputs' semantic difference no site accounts for.

    ``set_back`` are the outputs when every site that differs is set back to the source's value. Where the exact
    output is right, what was set back was a rewritten program's own, and says nothing.
    """
    wrong = [index for index, value in enumerate(exact) if not agrees(value, expected[index])]
    back, want = ([values[index] for index in wrong] for values in (set_back, expected))
    return {"max_abs": semantic_gap(back, want), "relative": relative_gap(back, want, want)}


def relative_gap(a: list[Tensor], b: list[Tensor], expected: list[Tensor]) -> float | None:
    """The semantic gap of each output over the size of its reference's elements, the worst of them.

    A reference that is all zero has no size of its own: the largest of the other outputs' stands for it, or 1.
    """
    other = max((largest(value) for value in expected), default=0.0) or 1.0
    worst = 0.0
    for x, y, want in zip(a, b, expected, strict=True):
        gap = semantic_gap([x], [y])
        if gap is None:
            return None
        top, rest, edge = sizes(want)
        worst = max(worst, gap / (top or other))
        if rest != top and gap:
            small = want.abs() <= edge
            worst = max(worst, (semantic_gap([x[small]], [y.reshape(x.shape)[small]]) or 0.0) / rest)
    return worst
