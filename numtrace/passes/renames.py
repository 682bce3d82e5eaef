"""Flags and pass names of older IREE releases, and what became of them; and what an unknown flag says.

A flag that the compiler at hand still knows is left alone, so that an older IREE gets its own flags.
"""

from __future__ import annotations

import re
from collections.abc import Collection
from dataclasses import dataclass
from itertools import pairwise

from numtrace.passes import pipeline


@dataclass(frozen=True)
class Renamed:
    """An old flag: the flags that replace it (none: dropped), and for a dropped one, why that is right.

    ``{value}`` in a new flag takes the old one's value; otherwise the value follows the new name.
    """

    flags: tuple[str, ...]
    why: str = ""


def _moved(old: str, new: str, names: str) -> dict[str, Renamed]:
    return {old + name: Renamed((new + name,)) for name in names.split()}


FLAGS: dict[str, Renamed] = {
    # dispatch formation left the flow dialect in 2024
    **_moved(
        "--iree-flow-",
        "--iree-dispatch-creation-",
        "enable-fuse-padding-into-linalg-consumer-ops enable-fuse-padding-into-linalg-producer-ops "
        "enable-aggressive-fusion enable-fuse-horizontal-contractions element-wise-fuse-multi-reduction "
        "fuse-multi-use split-matmul-reduction topk-split-reduction",
    ),
    **dict.fromkeys(
        ("--iree-flow-collapse-reduction-dims", "--iree-dispatch-creation-collapse-reduction-dims"),
        Renamed((), "IREE always collapses dimensions of a dispatch now (its pull request 20829)"),
    ),
    "--iree-flow-enable-data-tiling": Renamed(("--iree-dispatch-creation-data-tiling",)),
    "--iree-dispatch-creation-experimental-data-tiling": Renamed(("--iree-dispatch-creation-data-tiling",)),
    "--iree-flow-pad-factor": Renamed((), "encodings get their padding from the target now"),
    # conversions of whole programs moved to the input stage
    **_moved(
        "--iree-flow-",
        "--iree-input-",
        "demote-f32-to-f16 demote-f64-to-f32 demote-i64-to-i32 promote-f16-to-f32 promote-bf16-to-f32",
    ),
    "--iree-global-opt-enable-demote-contraction-inputs-to-bf16": Renamed(
        (
            "--iree-global-opt-demote-contraction-inputs-type=bf16",
            "--iree-global-opt-demote-contraction-inputs-operations={value}",
        )
    ),
    # the LLVM CPU target got its prefix in 2023
    **_moved("--iree-llvm-", "--iree-llvmcpu-", "target-cpu target-cpu-features target-triple"),
    **_moved("--iree-llvm-", "--iree-llvmcpu-", "loop-unrolling loop-vectorization slp-vectorization"),
    "--iree-llvmcpu-enable-microkernels": Renamed(("--iree-llvmcpu-enable-ukernels=all",)),
    "--iree-mlir-to-vm-bytecode-module": Renamed((), "it is what iree-compile does anyway"),
}

# an old name without options -> today's text; options given with the old name are put through OPTIONS
_DEMOTE = "iree-global-opt-demote-contraction-inputs"
_CONV_1X1 = "convert-1x1-filter-conv2d-to-matmul"
PASSES: dict[str, str] = {
    f"{_DEMOTE}-to-bf16": f"{_DEMOTE}{{type=bf16 operation=all}}",
    "iree-preprocessing-convert-conv2d-to-img2col": "iree-global-opt-convert-conv2d-to-img2col",
    "iree-flow-convert-conv2d-to-img2col": "iree-global-opt-convert-conv2d-to-img2col",
    f"iree-flow-{_CONV_1X1}": f"iree-preprocessing-{_CONV_1X1}",
    f"iree-global-opt-{_CONV_1X1}": f"iree-preprocessing-{_CONV_1X1}",
    "iree-flow-detach-elementwise-from-named-ops": "iree-global-opt-detach-elementwise-from-named-ops",
    "iree-linalg-ext-convert-conv2d-to-im2col-op": "iree-linalg-ext-convert-conv-to-im2col-op",
}
OPTIONS = {"demote-only": "operation"}


def modern_flag(flag: str, known: Collection[str] | None = None) -> tuple[tuple[str, ...], str | None]:
    """The flags that ``--flag[=value]`` is today, and a notice when that is not the flag itself.

    ``known``: the flags of the compiler at hand; those are left alone.
    """
    name, equals, value = flag.partition("=")
    entry = FLAGS.get(name)
    if entry is None or (known is not None and name in known):
        return (flag,), None
    if not entry.flags:
        return (), f"{name} was dropped: {entry.why}"
    fixed = any(
        "=" in new for new in entry.flags
    )  # the old flag was a switch, the new ones say what it chose
    if fixed and value.lower() in ("false", "0"):
        return (), f"{name}={value} was dropped: it switched off what is off by default"
    chosen = "all" if value.lower() in ("", "true", "1") else value
    flags = tuple(new.replace("{value}", chosen) if fixed else f"{new}{equals}{value}" for new in entry.flags)
    return flags, f"{name} is {' '.join(flags if fixed else entry.flags)} in current IREE: that is used"


def modern_element(text: str) -> tuple[str, str | None]:
    """Today's text of one pipeline element, and a notice when that is not the text itself."""
    (element,) = pipeline.parse(text)
    notices: list[str] = []
    new = str(_modern(element, notices))
    return (new, "; ".join(notices)) if notices else (text, None)


def _modern(element: pipeline.Element, notices: list[str]) -> pipeline.Element:
    if element.children is not None:
        children = tuple(_modern(child, notices) for child in element.children)
        name = element.name
        if name == "func.func":  # no function is one when preprocessing runs, so nothing would happen
            name = pipeline.FUNCTION
            notices.append("passes nested on func.func run on util.func in current IREE")
        return pipeline.Element(name, children=children)
    if element.name not in PASSES:
        return element
    (today,) = pipeline.parse(PASSES[element.name])
    options = dict(_option(o) for o in today.options) | dict(_option(o) for o in element.options)
    notices.append(f"pass {element.name} is {today.name} in current IREE")
    return pipeline.Element(today.name, tuple(f"{k}={v}" if v else k for k, v in options.items()))


def _option(text: str) -> tuple[str, str]:
    key, _, value = text.partition("=")
    return OPTIONS.get(key, key), value


def unknown_flag(stderr: str) -> str | None:
    """What ``iree-compile`` said of a command line it refused, in one sentence; None when it accepted it.

    Covers an unknown flag (with the compiler's suggestion) and a known one with a wrong or missing value.
    """
    sentences = []
    lines = stderr.splitlines()
    for line, following in pairwise([*lines, ""]):
        if found := re.match(r"\S+: Unknown command line argument '(.*?)'\.", line):
            near = re.match(r"\S+: (?:Did|did) you mean '(.*)'\?", following)
            hint = f"; iree-compile suggests {near[1]}" if near else "; see iree-compile --help"
            sentences.append(f"iree-compile does not know the flag {found[1]}{hint}")
        elif found := re.match(r"\S+: for the (\S+) option: (.*?)!?(?: Try .*)?$", line):
            sentences.append(f"iree-compile does not take the flag {found[1]}: {found[2]}")
    return "; ".join(sentences) or None
