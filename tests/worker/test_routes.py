"""Which flags a route compiles with, and for which variants it says something."""

from __future__ import annotations

from numtrace.worker.routes import OWN, ROUTES, backends, override

CPU = ["--iree-hal-target-backends=llvm-cpu", "--iree-llvmcpu-target-cpu=host"]
WRONG = "--iree-hal-substitute-executable-source=a=b.mlir"
BY_NAME = {route.name: route for route in ROUTES}


def test_a_flag_that_is_given_again_is_given_once():
    assert override(["--a=1", "--b", "--c=2"], ["--a=3", "--d"]) == ["--b", "--c=2", "--a=3", "--d"]


def test_only_the_variant_s_own_code_keeps_what_replaces_code():
    given = [*CPU, WRONG]
    assert OWN.flags(given) == given
    for route in ROUTES:
        assert WRONG not in route.flags(given), route.name


def test_another_backend_takes_no_target_along():
    flags = BY_NAME["vmvx"].flags(
        [*CPU, "--iree-llvmcpu-target-cpu-features=+avx2", "--iree-opt-data-tiling"]
    )
    assert flags == ["--iree-opt-data-tiling", "--iree-hal-target-backends=vmvx"]


def test_the_other_target_replaces_the_cpu():
    flags = BY_NAME["generic-cpu"].flags([*CPU, "--iree-llvmcpu-reassociate-fp-reductions=true"])
    assert flags[0] == "--iree-llvmcpu-reassociate-fp-reductions=true"
    assert [f for f in flags if "target-cpu" in f] == ["--iree-llvmcpu-target-cpu=generic"]


def test_routes_that_say_nothing():
    assert BY_NAME["no-data-tiling"].unfit(CPU, encoded=False)
    assert BY_NAME["no-data-tiling"].unfit(CPU, encoded=True) is None
    vmvx = ["--iree-hal-target-backends=vmvx"]
    assert BY_NAME["vmvx"].unfit(vmvx, encoded=False)
    assert BY_NAME["no-ukernels"].unfit(vmvx, encoded=False)
    assert BY_NAME["generic-cpu"].unfit(vmvx, encoded=False) is None


def test_backends_by_either_flag():
    assert backends(CPU) == "llvm-cpu"
    assert (
        backends(["--iree-hal-target-device=local", "--iree-hal-local-target-device-backends=vmvx"]) == "vmvx"
    )
    assert backends([]) == ""
