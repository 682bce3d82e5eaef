"""``numtrace doctor``: versions, devices, CPU features, and what will not work here."""

from __future__ import annotations

from rich.console import Console
from rich.text import Text

from numtrace.errors import NumtraceError


def print_doctor(console: Console) -> bool:
    """Prints what there is; True when a run can work."""
    problems: list[str] = []
    rows: list[tuple[str, str]] = []
    for label, ask in (
        ("packages", _versions),
        ("iree-compile", _compiler),
        ("devices", _devices),
        ("host CPU", _host),
        ("cache", _cache),
        ("passes", _passes),
    ):
        try:
            text, problem = ask()
        except (NumtraceError, ImportError, OSError, RuntimeError) as error:
            text, problem = "not usable", str(error)
        rows.append((label, text))
        if problem:
            problems.append(f"{label}: {problem}")
    for label, text in rows:
        console.print(Text.assemble((f"{label:14}", "bold"), text))
    for problem in problems:
        console.print(Text(f"will not work: {problem}", style="red"))
    if not problems:
        console.print(Text("all that a run needs is here", style="green"))
    return not problems


def _versions() -> tuple[str, str]:
    from importlib.metadata import version

    names = ("numtrace", "iree-base-compiler", "iree-base-runtime", "torch", "numpy", "ml-dtypes")
    compiler, runtime = version("iree-base-compiler"), version("iree-base-runtime")
    differ = f"compiler {compiler} and runtime {runtime} are of different releases; install the same of both"
    return ", ".join(f"{name} {version(name)}" for name in names), "" if compiler == runtime else differ


def _compiler() -> tuple[str, str]:
    from numtrace.passes import probe

    return probe.compiler_path(None), ""


def _devices() -> tuple[str, str]:
    from numtrace.instrument.devices import devices

    found = devices()
    usable = [name for name, why in found.items() if not why]
    text = "; ".join(
        [", ".join(usable) or "none", *(f"not {name}: {why}" for name, why in found.items() if why)]
    )
    return text, "" if usable else "no device can be opened"


def _host() -> tuple[str, str]:
    from numtrace.instrument.features import target_cpu

    cpu, features = target_cpu(["--iree-hal-target-backends=llvm-cpu", "--iree-llvmcpu-target-cpu=host"])
    notable = [
        f
        for f in ("avx2", "fma", "avx512f", "avx512bf16", "avx512vnni", "amx-bf16", "neon", "bf16")
        if f in features
    ]
    return f"{cpu} with {len(features)} features, among them {', '.join(notable) or 'none of the usual'}", ""


def _cache() -> tuple[str, str]:
    import os

    from numtrace.models.cache import cache_directory

    path = cache_directory()
    existing = next(parent for parent in (path, *path.parents) if parent.exists())
    writable = os.access(existing, os.W_OK)
    return str(path), "" if writable else f"{existing} is not writable; set NUMTRACE_CACHE_DIR"


def _passes() -> tuple[str, str]:
    from numtrace.passes import probe, registry

    found = registry.registered().passes.values()
    missing = [p.name for p in found if not probe.available(p)[0]]
    text = f"{len(found) - len(missing)} of {len(found)} are available"
    return text + (f"; not in this IREE: {', '.join(missing)}" if missing else ""), ""
