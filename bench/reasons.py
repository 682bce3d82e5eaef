"""Why a case of a suite is not right: tables with one reason for each such case, and for no more.

A table is a TOML file of ``[[reason]]``: the ``cases`` it is for (names, or patterns as of file names), the ``kind`` to
count it by, ``because`` and ``checked`` for who reads it, and what must have been found of a case. What that is the
suite knows: a case of which something else is found has no reason.
"""

from __future__ import annotations

import tomllib
from collections import Counter
from collections.abc import Callable, Mapping
from dataclasses import dataclass, field
from fnmatch import fnmatchcase
from pathlib import Path
from typing import Any

Reason = dict[str, Any]


@dataclass
class Explained:
    """Of the cases that are not right: how many have a reason, by its kind, and the names of those that have none.
    ``stale`` are names and patterns that gave no case its reason."""

    kinds: Counter[str] = field(default_factory=Counter)
    unexplained: list[str] = field(default_factory=list)
    stale: list[str] = field(default_factory=list)

    def __str__(self) -> str:
        return f"explained {self.kinds.total()} ({counts(self.kinds)}), not {len(self.unexplained)}"


def read(table: str) -> list[Reason]:
    """The reasons of the table with this name, from beside this file."""
    text = Path(__file__).with_name(table).read_text(encoding="utf-8")
    return tomllib.loads(text).get("reason", [])


def explained(
    reasons: list[Reason], wrong: Mapping[str, Any], holds: Callable[[Reason, Any], bool]
) -> Explained:
    """The reasons of ``wrong``, by name what was found; ``holds`` tells whether a reason is one for that."""
    made = Explained()
    used = set()
    for name, found in wrong.items():
        for reason in reasons:
            pattern = _pattern(reason, name)
            if pattern is not None and holds(reason, found):
                made.kinds[reason["kind"]] += 1
                used.add((id(reason), pattern))
                break
        else:
            made.unexplained.append(name)
    made.stale = [
        pattern for reason in reasons for pattern in reason["cases"] if (id(reason), pattern) not in used
    ]
    return made


def _pattern(reason: Reason, name: str) -> str | None:
    """Which of a reason's names and patterns a case's name is of."""
    return next((pattern for pattern in reason["cases"] if fnmatchcase(name, pattern)), None)


def counts(found: Counter[str]) -> str:
    return ", ".join(f"{name} {count}" for name, count in found.most_common()) or "none"
