"""What an error may be worth at the outputs before it is more than rounding, and what rounded constants are worth."""

from __future__ import annotations

from typing import Any

#: In torch's own errors and in units in the last place of f32 there: each is a unit or so off, as every operation of
#: torch's is. Stored tables have the same: the order of a sum is another, functions are approximated in other ways.
MARGIN = 8.0


def is_rounding(worth: float, torch_error: float, size: float) -> bool:
    """Whether an error of max abs ``worth`` at an output is no more than rounding makes there.

    ``torch_error`` is torch's own max abs there, ``size`` the largest element.
    """
    return worth <= MARGIN * (torch_error + size * 2.0**-23)


def costly_constants(record: dict[str, Any]) -> bool:
    """Whether the constants that the lowering rounded cost a variant's outputs far more than rounding.

    A scalar truncated from 4/7 to 0.571428537 moves an index from 2.0 to 1.9999999, and with it another pixel.
    """
    worth, torch_error = record["split"]["semantic"]["constant"], record["torch_same_dtype"]
    if not worth or not torch_error or torch_error["max_abs"] is None:
        return False
    return not is_rounding(worth, torch_error["max_abs"], record.get("output_size") or 0.0)
