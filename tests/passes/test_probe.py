"""Asks the installed IREE (3.13)."""

import sys

import pytest

from numtrace.errors import PassError, UsageError
from numtrace.passes import parser, probe, registry
from numtrace.passes.model import Pass


def raw(*pipelines):
    return Pass("mine", "", "", pipelines=pipelines)


@pytest.mark.parametrize("name", list(registry.registered().passes))
def test_every_built_in_pass_is_available(name):
    ok, text = probe.available(registry.get(name))
    assert ok, text


def test_the_first_candidate_that_parses_is_used():
    assert probe.pipeline_text(raw("no-such-pass", "cse")) == "builtin.module(util.func(cse))"
    bf16 = "iree-global-opt-demote-contraction-inputs{type=bf16 operation=all}"
    assert probe.pipeline_text(registry.get("demote-bf16")) == f"builtin.module(util.func({bf16}))"
    assert probe.pipeline_text(registry.get("ukernels")) == ""


def test_a_pass_for_modules_is_not_put_on_functions():
    p = registry.get("iree-preprocessing-pad-to-intrinsics")
    assert probe.pipeline_text(p) == "builtin.module(iree-preprocessing-pad-to-intrinsics)"


def test_the_parsers_message_reaches_the_user():
    with pytest.raises(PassError, match=r"mine: .*'nope' does not refer to a registered pass"):
        probe.pipeline_text(raw("nope"))
    text = "iree-global-opt-demote-contraction-inputs{operation=nope}"
    with pytest.raises(PassError, match="for the --operation option: Cannot find option named 'nope'"):
        probe.pipeline_text(raw(text))


def test_a_pipeline_that_aborts_the_parser_is_a_message_and_the_others_get_theirs():
    aborts = "builtin.module(util.func(iree-preprocessing-transpose-convolution-pipeline))"
    good = "builtin.module(iree-preprocessing-transpose-convolution-pipeline)"
    first, crash, last = probe.parse_errors(["builtin.module(util.func(cse))", aborts, good])
    assert first is None
    assert "restricted to 'builtin.module'" in crash
    assert crash.endswith("the parser crashed")
    assert last is None


def test_join_keeps_the_order_and_both_nestings():
    passes = [registry.get(n) for n in ("winograd", "ukernels", "img2col")]
    assert probe.join(passes) == (
        "builtin.module(util.func(iree-linalg-ext-convert-conv2d-to-winograd{replace-all-convs=true},"
        "iree-global-opt-convert-conv2d-to-img2col))"
    )
    assert probe.join([raw("cse"), raw("builtin.module(symbol-dce)"), raw("cse")]) == (
        "builtin.module(util.func(cse),symbol-dce,util.func(cse))"
    )
    assert probe.join([registry.get("ukernels")]) == ""
    with pytest.raises(PassError, match="nope"):
        probe.join([raw("cse"), raw("nope")])


def test_flags_are_looked_up_in_the_compilers_help():
    known = probe.compiler_flags()
    assert known["--iree-llvmcpu-target-cpu"] is True  # takes a value
    assert known["--iree-opt-data-tiling"] is False
    assert known["-o"] is True
    missing = Pass("f", "", "", flags=("--iree-opt-data-tiling", "--iree-no-such=1"))
    assert probe.available(missing) == (False, "iree-compile does not know --iree-no-such=1")
    assert probe.available(registry.get("data-tiling")) == (True, "--iree-opt-data-tiling")


def test_another_interpreter(tmp_path):
    with pytest.raises(UsageError, match=r"cannot start the Python interpreter /no/such/python"):
        probe.compiler_path("/no/such/python")
    bare = tmp_path / "python"  # an interpreter without IREE
    bare.write_text(f'#!/bin/sh\nexec "{sys.executable}" -I -S "$@"\n')
    bare.chmod(0o755)
    with pytest.raises(UsageError, match=r"no working iree.compiler \(ModuleNotFoundError.*install"):
        probe.parse_errors(["builtin.module(util.func(cse))"], str(bare))


def test_in_process_parse():
    assert parser.parse_error("builtin.module(util.func(cse))") is None
    assert "nope" in parser.parse_error("builtin.module(util.func(nope))")
