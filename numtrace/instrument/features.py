"""What a target CPU asks for and what this host has, both from the compiler's own tables."""

from __future__ import annotations

import re
import tempfile
from collections.abc import Sequence
from pathlib import Path

from numtrace.errors import CompileError, TargetError, UsageError
from numtrace.instrument.compiler import compile_file

_PROBE = (
    "util.func public @probe(%arg0: tensor<4xf32>) -> tensor<4xf32> { util.return %arg0 : tensor<4xf32> }\n"
)
_FEATURES = re.compile(r'cpu_features = "([^"]*)"')
_CPU = re.compile(r'[{ ]cpu = "([^"]*)"')
_HOST = "--iree-llvmcpu-target-cpu=host"
_TARGET_FLAGS = ("--iree-llvmcpu-target-cpu", "--iree-llvmcpu-target-cpu-features")


def target_cpu(flags: Sequence[str], timeout: float | None = None) -> tuple[str, frozenset[str]]:
    """The CPU and the features that a compilation with ``flags`` targets; ("", none) for targets without.

    Raises:
        UsageError: the compiler refuses the flags.
        CompileError: it crashed, or took longer than ``timeout`` seconds.
    """
    with tempfile.TemporaryDirectory() as folder:
        source, target = Path(folder, "probe.mlir"), Path(folder, "probe.flow.mlir")
        source.write_text(_PROBE)
        try:
            compile_file(source, target, [*flags, "--compile-to=flow"], timeout=timeout)
        except CompileError as error:
            if error.kind != "compiler-error":
                raise
            # The probe is as simple as a program can be: it is the flags.
            raise UsageError(f"iree-compile cannot compile with these flags: {error}") from None
        text = target.read_text()
    cpu, features = _CPU.search(text), _FEATURES.search(text)
    plus = [f[1:] for f in features[1].split(",") if f.startswith("+")] if features else []
    return (cpu[1] if cpu else ""), frozenset(plus)


def require_host(flags: Sequence[str], timeout: float | None = None) -> str:
    """The CPU that ``flags`` target, once it is sure that this host can run code for it.

    Raises:
        TargetError: the host lacks features, which are named. Running would end in an illegal instruction.
    """
    cpu, wanted = target_cpu(flags, timeout)
    others = [flag for flag in flags if not flag.startswith(_TARGET_FLAGS)]
    _, present = target_cpu([*others, _HOST], timeout) if wanted else ("", frozenset())
    missing = sorted(wanted - present)
    if missing:
        raise TargetError(
            f"the target {cpu or 'of these flags'} needs what this host lacks: {', '.join(missing)}; "
            "compile for this host with --iree-llvmcpu-target-cpu=host, or run numtrace on such a machine"
        )
    return cpu
