"""What the walk beside a run finds beyond its sites."""

from __future__ import annotations

from dataclasses import dataclass, field

from torch import Tensor

from numtrace.attribute.scalars import Rounded


@dataclass(slots=True)
class Summary:
    """Filled while the program runs. ``outputs`` lie on the reference trajectory, ``exact_outputs`` were not reset."""

    outputs: list[Tensor] = field(default_factory=list)
    exact_outputs: list[Tensor] = field(default_factory=list)
    differing: list[frozenset[str]] = field(
        default_factory=list
    )  # per output: sites whose difference it carries
    constants: dict[Rounded, list[str]] = field(default_factory=dict)
    places: dict[str, None] = field(default_factory=dict)  # source ops whose index arithmetic was rounded
    origin: tuple[str, str] | None = None
    disagrees: bool = False  # whether the reference is finite at the origin
    amended: dict[str, str] = field(default_factory=dict)
    unbounded: dict[str, str] = field(default_factory=dict)  # by entry point: why it has no error bound
    tainted_outputs: bool = False
    near_ties: int = 0
    unsure: int = 0  # elements of outputs that no site accounts for, and noise does
