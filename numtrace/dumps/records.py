"""What a worker sent of sites and outputs, as parts of the report document."""

from __future__ import annotations

from typing import Any

import msgspec

from numtrace.dumps import schema


def site_record(record: dict[str, Any]) -> schema.Site:
    return msgspec.convert(record, schema.Site)


def output_record(record: dict[str, Any], torch_error: float | None) -> schema.Output:
    return msgspec.convert(record | {"torch_same_dtype_max_abs": torch_error}, schema.Output)


def coverage(sites: list[dict[str, Any]]) -> schema.Coverage:
    counts = {state: sum(site["match"] == state for site in sites) for state in
              ("verified", "moved", "differs", "ambiguous", "unmatched", "uncovered")}  # fmt: skip
    return schema.Coverage(
        sites=len(sites),
        evaluated=len(sites) - counts["uncovered"],
        tainted=sum(site["tainted"] for site in sites),
        unbounded=sum(site.get("code") == "unbounded" for site in sites),
        **counts,
    )
