"""From the options of the command line, and a pasted iree-compile line, to one request."""

from __future__ import annotations

from collections.abc import Sequence
from dataclasses import dataclass
from pathlib import Path
from typing import Any

from numtrace import models
from numtrace.dumps import known as known_findings
from numtrace.dumps.schema import Tolerance
from numtrace.errors import UsageError
from numtrace.instrument.parameters import parse_scope
from numtrace.passes import commandline, probe, registry
from numtrace.passes.model import Pass
from numtrace.passes.variants import MODES, parse_modes
from numtrace.targets import device_for, with_target

#: The device of a command that runs nothing on any.
DEVICE = "local-task"


@dataclass(frozen=True)
class Request:
    """What the user asked for; the fields are the options of ``numtrace run``."""

    model: str = models.DEFAULT
    passes: tuple[Pass, ...] = ()
    flags: tuple[str, ...] = ()
    params: tuple[tuple[str, Path], ...] = ()
    inputs: tuple[str, ...] = ()
    expected: tuple[Path, ...] = ()
    function: str | None = None
    attention: str | None = None
    seed: int = 0
    seeds: int = 1
    modes: frozenset[str] = frozenset(MODES)
    device: str = DEVICE
    reference_device: str = "cpu"
    threads: int = 0
    python: str | None = None
    out: Path | None = None
    tolerance: Tolerance | None = None
    accepted: known_findings.KnownFile | None = None
    compile_timeout: float = 1800.0
    run_timeout: float = 3600.0
    notices: tuple[str, ...] = ()


def make_request(
    *, model: str, passes: Sequence[str], command: str, arguments: Sequence[str], **options: Any
) -> Request:
    """The request for ``numtrace run``; options are those of the command line by name, and ``runs``: false for a
    command that runs no code of the target, which may then be one that this host has no device for.

    What a pasted command says comes first, an option given besides it wins.

    Raises:
        UsageError: a flag, pass, scope or combination cannot be used.
    """
    if command and arguments:
        raise UsageError("compiler flags were given after -- and in --command; give them in one place")
    python = options["python"] or None
    # Asking the compiler for its flags takes a moment, and is of use only to read a command line.
    known = probe.compiler_flags(python) if command or arguments else None
    pasted = commandline.parse(command, known) if command else commandline.parse_arguments(arguments, known)
    if model and pasted.model and model != pasted.model:
        raise UsageError(f"two models were given: {model} and, in the command line, {pasted.model}; give one")
    flags = with_target(pasted.flags, options["target"])
    given = [parse_scope(text) for text in (options["params"] or pasted.params)]
    expected = options["expected"] or [Path(text.removeprefix("@")) for text in pasted.expected]
    return Request(
        model=model or pasted.model or models.DEFAULT,
        passes=tuple(_passes(passes, pasted.pipeline, python)),
        flags=flags,
        params=tuple(given),
        inputs=tuple(options["inputs"] or pasted.inputs),
        expected=tuple(expected),
        function=options["function"] or pasted.function or None,
        attention=_attention(options["attention"]),
        seed=options["seed"],
        seeds=_seeds(options["seeds"], options["inputs"] or pasted.inputs),
        modes=parse_modes(options["modes"]),
        device=device_for(flags, options["device"] or pasted.device) if options["runs"] else DEVICE,
        reference_device=options["reference_device"],
        threads=options["threads"],
        python=python,
        out=options["out"],
        tolerance=_tolerance(options),
        accepted=known_findings.read(options["known"]) if options.get("known") else None,
        compile_timeout=options["compile_timeout"],
        run_timeout=options["run_timeout"],
        notices=(*registry.registered().notices, *pasted.notices),
    )


def _passes(names: Sequence[str], pipeline: Sequence[str], python: str | None) -> list[Pass]:
    found = registry.get_all(names, python)
    from_command = [registry.named(element) for element in pipeline]
    return registry.distinct([*from_command, *found])


def _attention(form: str) -> str | None:
    if form and form not in models.ATTENTION_FORMS:
        raise UsageError(f"--attention {form} is not known; it is one of {', '.join(models.ATTENTION_FORMS)}")
    return form or None


def _seeds(count: int, inputs: Sequence[str]) -> int:
    if count > 1 and inputs:
        raise UsageError("--seeds makes random inputs, --input gives them; use one of the two")
    return count


def _tolerance(options: dict[str, Any]) -> Tolerance | None:
    atol, rtol, psnr, image = (options[name] for name in ("atol", "rtol", "psnr", "image"))
    if atol is None and rtol is None and psnr is None and not image:
        return None
    return Tolerance(atol=atol, rtol=rtol, psnr_db=psnr, image=image)
