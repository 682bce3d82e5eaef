import subprocess

import pytest

from numtrace.passes import pipeline, probe, renames


def test_a_flag_that_moved_keeps_its_value():
    new, notice = renames.modern_flag("--iree-flow-enable-fuse-padding-into-linalg-consumer-ops=true")
    assert new == ("--iree-dispatch-creation-enable-fuse-padding-into-linalg-consumer-ops=true",)
    assert notice == (
        "--iree-flow-enable-fuse-padding-into-linalg-consumer-ops is "
        "--iree-dispatch-creation-enable-fuse-padding-into-linalg-consumer-ops in current IREE: that is used"
    )
    assert renames.modern_flag("--iree-llvm-target-cpu=znver4")[0] == ("--iree-llvmcpu-target-cpu=znver4",)


def test_a_flag_that_is_gone():
    new, notice = renames.modern_flag("--iree-flow-collapse-reduction-dims")
    assert new == ()
    assert notice.startswith("--iree-flow-collapse-reduction-dims was dropped: IREE always collapses")


@pytest.mark.parametrize(
    ("given", "expected"),
    [
        ("matmul", "matmul"),
        ("true", "all"),
        ("", "all"),
    ],
)
def test_one_flag_that_became_two(given, expected):
    old = "--iree-global-opt-enable-demote-contraction-inputs-to-bf16"
    new, _ = renames.modern_flag(f"{old}={given}" if given else old)
    assert new == (
        "--iree-global-opt-demote-contraction-inputs-type=bf16",
        f"--iree-global-opt-demote-contraction-inputs-operations={expected}",
    )


def test_an_old_switch_that_was_off():
    new, notice = renames.modern_flag("--iree-llvmcpu-enable-microkernels=false")
    assert new == ()
    assert "off by default" in notice


def test_flags_of_today_and_unknown_ones_pass():
    for flag in ("--iree-opt-const-eval=false", "--iree-llvmcpu-enable-ukernels=mmt4d,pack,unpack", "--frob"):
        assert renames.modern_flag(flag) == ((flag,), None)


def test_an_older_compiler_gets_its_own_flags():
    flag = "--iree-flow-collapse-reduction-dims"
    assert renames.modern_flag(flag, known={flag}) == ((flag,), None)


@pytest.mark.parametrize(
    ("old", "new"),
    [
        (
            "iree-global-opt-demote-contraction-inputs-to-bf16",
            "iree-global-opt-demote-contraction-inputs{type=bf16 operation=all}",
        ),
        (
            "iree-global-opt-demote-contraction-inputs-to-bf16{demote-only=conv}",
            "iree-global-opt-demote-contraction-inputs{type=bf16 operation=conv}",
        ),
        ("iree-flow-convert-conv2d-to-img2col", "iree-global-opt-convert-conv2d-to-img2col"),
        ("func.func(iree-preprocessing-convert-conv2d-to-img2col)",
         "util.func(iree-global-opt-convert-conv2d-to-img2col)"),
        ("func.func(cse)", "util.func(cse)"),
    ],
)  # fmt: skip
def test_old_pass_names(old, new):
    text, notice = renames.modern_element(old)
    assert text == new
    assert "in current IREE" in notice


def test_elements_of_today_pass_unchanged():
    text = "iree-linalg-ext-convert-conv2d-to-winograd{replace-all-convs=true}"
    assert renames.modern_element(text) == (text, None)


# the tables against the installed IREE: no old name is still known, no new one is unknown


def test_the_table_of_flags_is_true_of_the_installed_iree():
    known = probe.compiler_flags()
    assert [old for old in renames.FLAGS if old in known] == []
    new = {flag.partition("=")[0] for entry in renames.FLAGS.values() for flag in entry.flags}
    assert [flag for flag in new if flag not in known] == []


def test_the_table_of_passes_is_true_of_the_installed_iree():
    old = probe.parse_errors([pipeline.wrap([text]) for text in renames.PASSES])
    assert all("does not refer to a registered pass" in error for error in old)
    assert probe.parse_errors([pipeline.wrap([text]) for text in renames.PASSES.values()]) == [None] * len(
        old
    )


# what the compiler says


def refuse(*flags):
    done = subprocess.run(
        [probe.compiler_path(), *flags, "-", "-o", "/dev/null"],
        input="module {}",
        capture_output=True,
        text=True,
    )
    assert done.returncode
    return renames.unknown_flag(done.stderr)


def test_unknown_flag_of_the_installed_compiler():
    assert refuse("--iree-llvmcpu-target-cpux=host") == (
        "iree-compile does not know the flag --iree-llvmcpu-target-cpux=host; "
        "iree-compile suggests --iree-llvmcpu-target-cpu=host"
    )
    assert refuse("--iree-opt-data-tiling=maybe") == (
        "iree-compile does not take the flag --iree-opt-data-tiling: "
        "'maybe' is invalid value for boolean argument"
    )
    assert refuse("--compile-to=nope") == (
        "iree-compile does not take the flag --compile-to: Cannot find option named 'nope'"
    )
    assert refuse() is None  # an error of another kind: the module has no functions


def test_two_unknown_flags_and_one_without_a_suggestion():
    stderr = (
        "iree-compile: Unknown command line argument '--a'.  Try: 'x --help'\n"
        "iree-compile: Did you mean '--b'?\n"
        "iree-compile: Unknown command line argument '--c'.  Try: 'x --help'\n"
    )
    assert renames.unknown_flag(stderr) == (
        "iree-compile does not know the flag --a; iree-compile suggests --b; "
        "iree-compile does not know the flag --c; see iree-compile --help"
    )
    assert renames.unknown_flag("") is None
    assert renames.unknown_flag("x.mlir:1:1: error: nonsense") is None
