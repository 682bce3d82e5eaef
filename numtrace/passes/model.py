"""What a pass and a variant are."""

from __future__ import annotations

from dataclasses import dataclass

from numtrace.passes import pipeline


@dataclass(frozen=True)
class Pass:
    """A named step: pipeline text for the installed IREE, or compiler flags; one of the two.

    ``pipelines`` are candidates, since names and options change between releases: the first one that the
    installed IREE parses is used. Each is one element of ``builtin.module(util.func(…))``, or a complete
    ``builtin.module(…)``.
    """

    name: str
    summary: str
    ops: str  # the ops touched, for the listing
    pipelines: tuple[str, ...] = ()
    flags: tuple[str, ...] = ()

    def __post_init__(self) -> None:
        if not self.name or any(c in "+/\\" or c.isspace() for c in self.name):
            raise ValueError(f"pass name {self.name!r} is empty or holds a space, a slash or '+'")
        if bool(self.pipelines) == bool(self.flags):
            raise ValueError(f"pass {self.name}: give either pipelines or flags, not both and not neither")

    def spellings(self) -> frozenset[str]:
        """What the pass does, spelling aside: two passes that share a spelling are the same one."""
        return frozenset(pipeline.canonical(text) for text in self.pipelines) | (
            {" ".join(self.flags)} if self.flags else frozenset()
        )


@dataclass(frozen=True)
class Variant:
    """The model compiled with some passes, in command-line order; ``baseline`` has none."""

    name: str
    passes: tuple[Pass, ...] = ()

    @classmethod
    def of(cls, passes: tuple[Pass, ...]) -> Variant:
        """The variant of these passes, named after them."""
        return cls("+".join(p.name for p in passes) or "baseline", passes)

    @property
    def flags(self) -> tuple[str, ...]:
        """The compiler flags of the flag passes, in order."""
        return tuple(flag for p in self.passes for flag in p.flags)
