"""The commands to compile and run a variant by hand, beside its files."""

from __future__ import annotations

from pathlib import Path
from typing import Any

from numtrace.dumps.rundir import RunDirectory, VariantFolder
from numtrace.passes.model import Variant


def write_commands(
    folder: VariantFolder, directory: RunDirectory, job: dict[str, Any], variant: Variant
) -> None:
    """The commands to compile and run this variant by hand, from the run directory."""
    import shlex

    top, inputs = directory.path.absolute(), f"model/inputs/{job['seed']}"
    flags = [*job["flags"]]
    if job["pipeline"]:
        flags.append(f"--iree-preprocessing-pass-pipeline={job['pipeline']}")
    compile_line = ["iree-compile", "model/source.mlir", *flags, "-o", f"{folder.relative}/by-hand.vmfb"]
    run_line = [
        "iree-run-module", f"--device={job['device']}", f"--module={folder.relative}/by-hand.vmfb",
        f"--function={job['function']}",
        *(f"--parameters={scope}={_relative(Path(path), top)}" for scope, path in job["params"]),
        *(f"--input={_by_hand(f'{inputs}/{i}', type_, top)}" for i, type_ in enumerate(job["arguments"])),
    ]  # fmt: skip
    text = f"# {variant.name}, from the run directory\n{shlex.join(compile_line)}\n{shlex.join(run_line)}\n"
    folder.write_text("commands.txt", text)


def _by_hand(stem: str, type_: dict[str, Any], top: Path) -> str:
    """A stored input as iree-run-module takes it: an npy, or raw bytes for a type that npy does not know."""
    if not (top / f"{stem}.bin").exists():
        return f"@{stem}.npy"
    return "x".join([*map(str, type_["shape"]), type_["dtype"]]) + f"=@{stem}.bin"


def _relative(path: Path, top: Path) -> Path:
    """``path`` from ``top`` when it lies inside, else as it is."""
    return path.relative_to(top) if path.is_relative_to(top) else path
