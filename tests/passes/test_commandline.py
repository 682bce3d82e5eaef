"""The command lines of the seed thread, as they stand."""

from pathlib import Path

import pytest

from numtrace.errors import PassError, UsageError
from numtrace.passes import probe, registry
from numtrace.passes.commandline import PIPELINE, parse, parse_arguments

PLAIN = r"""
iree-compile `
 --iree-hal-target-backends=llvm-cpu `
 --iree-llvmcpu-target-cpu=znver4 `
 --iree-flow-enable-fuse-padding-into-linalg-consumer-ops `
 --iree-llvmcpu-enable-ukernels=mmt4d,pack,unpack `
 --iree-flow-collapse-reduction-dims `
 --iree-opt-const-expr-max-size-increase-threshold=1000000000000000 `
 --iree-opt-const-eval=false `
 .\vae_decode.mlir -o ./vae_f32.vmfb
"""

BF16 = r"""
iree-compile `
 --iree-preprocessing-pass-pipeline="builtin.module(util.func(iree-global-opt-demote-contraction-inputs-to-bf16))" `
 --iree-hal-target-backends=llvm-cpu `
 --iree-llvmcpu-target-cpu=znver4 `
 --iree-flow-enable-fuse-padding-into-linalg-consumer-ops `
 --iree-llvmcpu-enable-ukernels=mmt4d,pack,unpack `
 --iree-flow-collapse-reduction-dims `
 --iree-opt-const-expr-max-size-increase-threshold=1000000000000000 `
 --iree-opt-const-eval=false `
 .\vae_decode.mlir -o ./vae_f32.vmfb
"""

BOTH = r"""
iree-compile `
 --iree-preprocessing-pass-pipeline="builtin.module(util.func(iree-linalg-ext-convert-conv2d-to-winograd{replace-all-convs=true},iree-global-opt-demote-contraction-inputs-to-bf16))" `
 --iree-hal-target-backends=llvm-cpu `
 --iree-llvmcpu-target-cpu=znver4 `
 --iree-flow-enable-fuse-padding-into-linalg-consumer-ops `
 --iree-llvmcpu-enable-ukernels=mmt4d,pack,unpack `
 --iree-flow-collapse-reduction-dims `
 --iree-opt-const-expr-max-size-increase-threshold=1000000000000000 `
 --iree-opt-const-eval=false `
 .\vae_decode.mlir -o ./vae_f32.vmfb
"""  # noqa: E501

RUN = r"""
iree-run-module `
  --device=local-task `
  --module=vae-cpu.vmfb `
  --parameters=model=vae_f32.safetensors `
  --function=main `
  --input=1x4x64x64xf32=@example_input.npy `
  --expected_output=@vae_golden_output.npy
"""

BASH = r"""
iree-compile \
  --iree-hal-target-backends=llvm-cpu \
  --iree-llvmcpu-target-cpu=znver4 \
  --iree-llvmcpu-target-triple=x86_64-unknown-linux-gnu \
  ~/vae_decode_decomp.mlir -o /tmp/vae.vmfb \
  --iree-llvmcpu-enable-ukernels=mmt4d \
  --iree-flow-collapse-reduction-dims \
  --iree-preprocessing-pass-pipeline="builtin.module(util.func(iree-global-opt-demote-contraction-inputs-to-bf16))"
"""

POWERSHELL_FLAGS = (
    "--iree-hal-target-backends=llvm-cpu",
    "--iree-llvmcpu-target-cpu=znver4",
    "--iree-dispatch-creation-enable-fuse-padding-into-linalg-consumer-ops",
    "--iree-llvmcpu-enable-ukernels=mmt4d,pack,unpack",
    "--iree-opt-const-expr-max-size-increase-threshold=1000000000000000",
    "--iree-opt-const-eval=false",
)
WINOGRAD = "iree-linalg-ext-convert-conv2d-to-winograd{replace-all-convs=true}"
DEMOTE = "iree-global-opt-demote-contraction-inputs{type=bf16 operation=all}"


@pytest.mark.parametrize(
    ("text", "pipeline", "passes"),
    [
        (PLAIN, (), []),
        (BF16, (DEMOTE,), ["demote-bf16"]),
        (BOTH, (WINOGRAD, DEMOTE), ["winograd", "demote-bf16"]),
    ],
)
def test_the_three_powershell_commands(text, pipeline, passes):
    command = parse(text)
    assert command.model == "./vae_decode.mlir"
    assert command.flags == POWERSHELL_FLAGS
    assert command.pipeline == pipeline
    assert [registry.named(element).name for element in command.pipeline] == passes
    renamed = [
        "pass iree-global-opt-demote-contraction-inputs-to-bf16 is iree-global-opt-demote-contraction-inputs"
    ]
    starts = [
        "--iree-flow-enable-fuse-padding-into-linalg-consumer-ops is --iree-dispatch-creation-enable-",
        "--iree-flow-collapse-reduction-dims was dropped",
        *(renamed if passes else []),
    ]
    assert [n.startswith(s) for n, s in zip(command.notices, starts, strict=True)] == [True] * len(starts)


def test_the_bash_command():
    command = parse(BASH)
    assert command.model == str(Path.home() / "vae_decode_decomp.mlir")
    assert command.flags == (
        "--iree-hal-target-backends=llvm-cpu",
        "--iree-llvmcpu-target-cpu=znver4",
        "--iree-llvmcpu-target-triple=x86_64-unknown-linux-gnu",
        "--iree-llvmcpu-enable-ukernels=mmt4d",
    )
    assert command.pipeline == (DEMOTE,)


def test_every_flag_of_the_seed_is_one_of_the_installed_compiler():
    known = probe.compiler_flags()
    for text in (PLAIN, BF16, BOTH, BASH):
        command = parse(text, known)
        assert [flag for flag in command.flags if flag.partition("=")[0] not in known] == []
        assert probe.join(map(registry.named, command.pipeline)).count("iree-") == len(command.pipeline)


def test_the_run_command_beside_it():
    command = parse(BF16 + "\nRun:\n" + RUN)
    assert command.model == "./vae_decode.mlir"
    assert command.inputs == ("1x4x64x64xf32=@example_input.npy",)
    assert command.expected == ("@vae_golden_output.npy",)
    assert command.params == ("model=vae_f32.safetensors",)
    assert (command.function, command.device) == ("main", "local-task")


def test_two_run_commands_are_not_guessed_between():
    command = parse(BF16 + RUN + RUN)
    assert command.inputs == ()
    assert command.notices[-1].startswith("none of the 2 iree-run-module commands is used")


def test_exactly_one_iree_compile():
    with pytest.raises(UsageError, match="found 3 iree-compile commands"):
        parse(PLAIN + BF16 + BOTH)
    with pytest.raises(UsageError, match="found no iree-compile command"):
        parse(RUN)


def test_words_that_a_shell_has_split():
    words = [
        "iree-compile",
        "--iree-llvmcpu-target-cpu",
        "host",
        f"{PIPELINE}=builtin.module(util.func(a))",
        "m.mlir",
    ]
    for given in (words, words[1:], ["/x/bin/iree-compile.exe", *words[1:]]):
        command = parse_arguments(given)
        assert command.model == "m.mlir"
        assert command.flags == ("--iree-llvmcpu-target-cpu=host",)
        assert command.pipeline == ("a",)
    assert parse_arguments(["--iree-opt-const-eval=false"]).model is None
    assert parse_arguments([]).flags == ()


def test_which_words_are_values():
    known = {"--switch": False, "--valued": True}
    assert parse_arguments(["--switch", "model"], known).model == "model"
    assert parse_arguments(["--valued", "x", "model"], known).flags == ("--valued=x",)
    assert parse_arguments(["--switch", "m.mlir"]).model == "m.mlir"
    assert parse_arguments(["-o", "x.mlir", "m.mlirbc"]).model == "m.mlirbc"
    assert parse_arguments(["-iree-opt-data-tiling", "-"]).flags == ("--iree-opt-data-tiling",)
    assert parse_arguments(["--switch", "-"]).model == "-"


def test_two_models():
    with pytest.raises(UsageError, match=r"several models: a.mlir, b.mlir"):
        parse_arguments(["a.mlir", "b.mlir"])


def test_output_flags_are_dropped_and_said():
    command = parse_arguments(
        ["-o", "x.vmfb", "--compile-to=flow", "--mlir-print-ir-after-all",
         "--iree-flow-trace-dispatch-tensors", "--iree-hal-dump-executable-files-to=d", "--keep=1"]
    )  # fmt: skip
    assert command.flags == ("--keep=1",)
    assert command.notices == (
        "--compile-to was dropped: numtrace compiles the source program to the end",
        "--mlir-print-ir-after-all was dropped: numtrace keeps its own files (--out)",
        "--iree-flow-trace-dispatch-tensors was dropped: numtrace traces every dispatch itself",
        "--iree-hal-dump-executable-files-to was dropped: numtrace keeps its own files (--out)",
    )


def test_nestings_of_the_pipeline():
    text = "builtin.module(util.func(a{x=1},b),any(c),d,func.func(e))"
    command = parse_arguments([f"{PIPELINE}={text}"])
    assert command.pipeline == ("a{x=1}", "b", "any(c)", "builtin.module(d)", "e")
    assert command.notices == ("passes nested on func.func run on util.func in current IREE",)


def test_a_pipeline_that_cannot_be_read_or_comes_twice():
    with pytest.raises(PassError, match="is missing"):
        parse_arguments([f"{PIPELINE}=builtin.module(util.func(a)"])
    with pytest.raises(UsageError, match="twice"):
        parse_arguments([f"{PIPELINE}=util.func(a)", f"{PIPELINE}=util.func(b)"])


def test_windows_and_home_paths():
    text = r"iree-compile --a .\d\m.mlir" + "\n" + r"iree-run-module --input=@.\x.npy --parameters=m=~/p.irpa"
    command = parse(text)
    assert command.model == "./d/m.mlir"
    assert command.inputs == ("@./x.npy",)
    assert command.params == (f"m={Path.home()}/p.irpa",)
