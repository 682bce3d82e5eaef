"""Built-in models: programs that numtrace exports, weighs and caches by itself.

`NAMES` and `DEFAULT` cost nothing; everything else is imported on first use, torch only when a file
has to be made.
"""

from __future__ import annotations

from typing import TYPE_CHECKING, Any

from numtrace.models.config import ATTENTION_FORMS, DEFAULT, NAMES

if TYPE_CHECKING:
    from numtrace.models.builtin import BuiltinModel, build

__all__ = ["ATTENTION_FORMS", "DEFAULT", "NAMES", "BuiltinModel", "build"]


def __getattr__(name: str) -> Any:
    if name in ("BuiltinModel", "build"):
        from numtrace.models import builtin

        return getattr(builtin, name)
    raise AttributeError(f"module {__name__!r} has no attribute {name!r}")
