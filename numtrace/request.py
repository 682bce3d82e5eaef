"""From the options of the command line, and a pasted iree-compile line, to one request."""

from __future__ import annotations

from collections.abc import Sequence
from pathlib import Path
from typing import Any

from numtrace import models
from numtrace.dumps.schema import Tolerance
from numtrace.errors import UsageError
from numtrace.instrument.parameters import parse_scope
from numtrace.passes import commandline, probe, registry
from numtrace.passes.model import Pass
from numtrace.passes.variants import parse_modes
from numtrace.session import Request


def make_request(
    *, model: str, passes: Sequence[str], command: str, arguments: Sequence[str], **options: Any
) -> Request:
    """The request for ``numtrace run``; options are those of the command line by name.

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
    given = [parse_scope(text) for text in (options["params"] or pasted.params)]
    expected = options["expected"] or [Path(text.removeprefix("@")) for text in pasted.expected]
    return Request(
        model=model or pasted.model or models.DEFAULT,
        passes=tuple(_passes(passes, pasted.pipeline, python)),
        flags=pasted.flags,
        params=tuple(given),
        inputs=tuple(options["inputs"] or pasted.inputs),
        expected=tuple(expected),
        function=options["function"] or pasted.function or None,
        attention=_attention(options["attention"]),
        seed=options["seed"],
        seeds=_seeds(options["seeds"], options["inputs"] or pasted.inputs),
        modes=parse_modes(options["modes"]),
        device=pasted.device or options["device"],
        threads=options["threads"],
        python=python,
        out=options["out"],
        tolerance=_tolerance(options),
        compile_timeout=options["compile_timeout"],
        run_timeout=options["run_timeout"],
        notices=(*registry.registered().notices, *pasted.notices),
    )


def _passes(names: Sequence[str], pipeline: Sequence[str], python: str | None) -> list[Pass]:
    found = registry.get_all(names, python)
    from_command = [registry.named(element) for element in pipeline]
    return registry.distinct([*from_command, *found])


def _attention(form: str) -> str:
    if form not in models.ATTENTION_FORMS:
        raise UsageError(f"--attention {form} is not known; it is one of {', '.join(models.ATTENTION_FORMS)}")
    return form


def _seeds(count: int, inputs: Sequence[str]) -> int:
    if count > 1 and inputs:
        raise UsageError("--seeds makes random inputs, --input gives them; use one of the two")
    return count


def _tolerance(options: dict[str, Any]) -> Tolerance | None:
    atol, rtol, psnr, image = (options[name] for name in ("atol", "rtol", "psnr", "image"))
    if atol is None and rtol is None and psnr is None and not image:
        return None
    return Tolerance(atol=atol, rtol=rtol, psnr_db=psnr, image=image)
