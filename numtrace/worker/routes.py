"""The ways to compile one dispatch again, so that a fault of the code can be told from the code's rounding.

Each route leaves out one thing that the variant's own code relies on; the route by which an error goes away says
where it comes from. Flags that replace code are left out of all but the variant's own.
"""

from __future__ import annotations

from collections.abc import Iterable, Sequence
from dataclasses import dataclass

#: Flags (by prefix) that put other code in the place of what the compiler makes of the IR.
REPLACING = (
    "--iree-hal-substitute-executable-",
    "--iree-llvmcpu-debug-patch-func-ops",
    "--iree-codegen-debug-patched-func-ops-file-name",
    "--iree-codegen-transform-dialect-library",
    "--iree-codegen-tuning-spec-path",
    "--iree-link-bitcode",
)
#: Those, and the flags that choose a target or a CPU.
_TARGET = (
    *REPLACING,
    "--iree-hal-target-",
    "--iree-hal-local-",
    "--iree-llvmcpu-target-cpu",
    "--iree-llvmcpu-target-vector-width",
)


@dataclass(frozen=True, slots=True)
class Route:
    """One way to compile a dispatch: the variant's flags without those that begin with ``drops``, and ``adds``.

    ``for_backend``: the route changes that backend's code, and says nothing of a variant for another.
    ``to_backend``: the backend that the route changes to. ``plain``: the encodings (data tiling) are taken out of
    the IR first; ``for_encoded``: the route says nothing of a dispatch without any. ``pipeline``: of IREE's CPU
    codegen, in place of the one that it would choose. ``run_flags`` are for iree-run-module.
    """

    name: str
    why: str
    drops: tuple[str, ...] = REPLACING
    adds: tuple[str, ...] = ()
    for_backend: str | None = None
    to_backend: str | None = None
    plain: bool = False
    for_encoded: bool = False
    pipeline: str | None = None
    run_flags: tuple[str, ...] = ()

    def flags(self, given: Sequence[str]) -> list[str]:
        """The flags of this route for a variant that is compiled with ``given``."""
        return override([flag for flag in given if not flag.startswith(self.drops)], self.adds)

    def unfit(self, given: Sequence[str], encoded: bool) -> str | None:
        """Why it says nothing of a dispatch of a variant that is compiled with ``given``; None when it does."""
        backend = backends(given)
        if self.for_encoded and not encoded:
            return "its tensors have no encodings"
        if self.for_backend not in (None, backend):
            return f"it changes the code of {self.for_backend}, the variant's is for {backend or 'another target'}"
        if self.to_backend == backend == "vmvx":
            return "the variant is compiled for it already"
        return None


OWN = Route("own", "the variant's own flags, the dispatch alone", drops=())

ROUTES = (
    Route(
        "vmvx",
        "another backend: IREE's bytecode interpreter, no LLVM and no vectors",
        drops=_TARGET,
        adds=("--iree-hal-target-backends=vmvx",),
        to_backend="vmvx",
        plain=True,
    ),
    Route(
        "generic-cpu",
        "LLVM for a CPU without vector extensions of its own",
        drops=_TARGET,
        adds=(
            "--iree-hal-target-backends=llvm-cpu",
            "--iree-llvmcpu-target-cpu=generic",
            # Tiles made for wide vectors are too large for it, which IREE takes for an error.
            "--iree-llvmcpu-fail-on-large-vector=false",
        ),
        to_backend="llvm-cpu",
    ),
    Route(
        "no-vectors",
        "neither tiled nor vectorised: plain loops on the same CPU",
        adds=(
            "--iree-llvmcpu-loop-vectorization=false",
            "--iree-llvmcpu-slp-vectorization=false",
            # What is not tiled lies on the stack as a whole: IREE's limit is 32 KiB, that of its threads 128 KiB.
            "--iree-llvmcpu-stack-allocation-limit=8388608",
        ),
        for_backend="llvm-cpu",
        plain=True,
        pipeline="#iree_cpu.pipeline<Default>",
        run_flags=("--task_worker_stack_size=16777216",),
    ),
    Route("no-data-tiling", "its tensors row-major instead of tiled", plain=True, for_encoded=True),
    Route(
        "no-ukernels",
        "without hand-written microkernels",
        drops=(*REPLACING, "--iree-llvmcpu-enable-llvm-ukernels"),
        adds=("--iree-llvmcpu-enable-ukernels=none",),
        for_backend="llvm-cpu",
    ),
    Route(
        "in-order",
        "reductions summed in the order of the IR",
        adds=("--iree-llvmcpu-reassociate-fp-reductions=false",),
        for_backend="llvm-cpu",
    ),
    Route(
        "reassociated",
        "reductions summed in whatever order is fast",
        adds=("--iree-llvmcpu-reassociate-fp-reductions=true",),
        for_backend="llvm-cpu",
    ),
)


def override(flags: Iterable[str], later: Sequence[str]) -> list[str]:
    """``flags`` and ``later``, without what ``later`` gives again: the compiler takes most flags only once."""
    names = {_name(flag) for flag in later}
    return [*(flag for flag in flags if _name(flag) not in names), *later]


def backends(flags: Iterable[str]) -> str:
    """The backends that the flags name, joined by commas; empty when they name none."""
    names = ("--iree-hal-target-backends", "--iree-hal-local-target-device-backends")
    return ",".join(flag.partition("=")[2] for flag in flags if _name(flag) in names)


def _name(flag: str) -> str:
    return flag.partition("=")[0]
