"""What ``numtrace rerun`` found, on a terminal: the dispatch's value in the run and by every route, each judged."""

from __future__ import annotations

import shlex
from pathlib import Path
from typing import Any

from rich.console import Console
from rich.text import Text

from numtrace.dumps.code import Code
from numtrace.report.code_view import lowering_lines
from numtrace.report.figures import bound_share, count, near, number, op_names, tensor_type, ulps
from numtrace.report.layout import Column, heading, labelled, paragraph, table
from numtrace.report.terminal import show_lines, width_of


def print_rerun(record: dict[str, Any], code: Code | None, console: Console) -> None:
    """Print the record of :func:`numtrace.rerun.rerun`; ``code``: what the run knows of the dispatch's code."""
    show_lines(rerun_lines(record, code, width_of(console)), console)


def rerun_lines(record: dict[str, Any], code: Code | None, width: int) -> list[Text]:
    """Identity, how the dispatch behaves alone, one row per way to compile it, and how it was lowered."""
    lines = [heading(f"{record['site']} of {record['variant']}, alone", width)]
    for label, text in (
        ("ops", op_names(record["op"], record["ops"])),
        ("dispatch", record["entry"]),
        ("inputs", ", ".join(record["inputs"]) or "none"),
        ("result", tensor_type(record["shape"], record["dtype"])),
        ("flags", shlex.join(record["flags"])),
        ("added", shlex.join(record["more"])),
        ("alone", _behaviour(record)),
        (
            "no figures",
            f"there is no exact value to compare with: {record['exact']}" if record["exact"] else "",
        ),
    ):
        lines += labelled(label, text, width)
    lines += [Text(), *_rows(record, width), Text()]
    if code is not None:
        lines += lowering_lines(code, width)
    return lines + labelled("kept", near(Path(record["folder"])), width)


def _behaviour(record: dict[str, Any]) -> str:
    own = record["routes"][0]
    if own["status"] != "ran":
        return f"{own['status']}: {own['reason']}"
    same = (
        "the same value as in the run, bit for bit"
        if record["as_traced"]
        else "another value than in the run"
    )
    runs = "two runs are equal" if record["deterministic"] else "two runs differ: it is not deterministic"
    return f"{same}; {runs}"


def _rows(record: dict[str, Any], width: int) -> list[Text]:
    titles = ("max abs", "rel L2", "max ulp", "NaN", "Inf", "of bound")
    columns = [Column("error of"), *(Column(title, right=True) for title in titles), Column("", shrinks=True)]
    rows = [("in the run", record["in_run"], "")]
    rows += [(_name(route), _figures(route, record), _remark(route)) for route in record["routes"]]
    for name, figures, remark in rows:
        cells = [number(figures.get(key)) for key in ("max_abs", "rel_l2")]
        cells.append(ulps(figures.get("max_ulp"), record["dtype"]))
        cells += [count(figures.get(key)) for key in ("nan", "inf")]
        cells.append(bound_share(figures.get("code"), figures.get("bound_ratio")))
        for column, cell in zip(columns, [name, *cells, remark], strict=True):
            column.add(cell)
    head, body = table(columns, width, indent=2)
    failed = [
        line
        for route in record["routes"][1:]
        if route["status"].endswith("failed")
        for line in paragraph(f"{_name(route)}: {route['status']}: {route['reason']}", width, indent=2)
    ]
    return [head, *body, *failed]


def _name(route: dict[str, Any]) -> str:
    return {"own": "alone", "given": "alone, with what was added"}.get(route["name"], route["name"])


def _figures(route: dict[str, Any], record: dict[str, Any]) -> dict[str, Any]:
    if route["status"] == "same-code":
        return record["routes"][0]["measure"] or {}
    return route["measure"] or {}


def _remark(route: dict[str, Any]) -> str:
    match route["status"]:
        case "ran":
            same = "; the same values as alone" if route["as_own"] else ""
            return f"{route['why']}{same}"
        case "unfit":
            return f"not tried: {route['reason']}"
        case "same-code":
            return f"{route['why']}; the same machine code as alone"
    return route["status"]
