"""Inputs, goldens and parameters that do not fit: the name, both shapes, exit 2."""

from __future__ import annotations

import re

import numpy as np
import pytest
from safetensors.numpy import save_file

WEIGHT_AND_BIAS = {"fc.weight": np.ones((8, 16), np.float32), "fc.bias": np.ones(16, np.float32)}


def refused(result, pattern):
    assert result.code == 2, result.err
    assert re.search(pattern, result.said), result.said
    assert result.out == ""


def test_no_parameters_at_all(numtrace, layer):
    refused(
        numtrace("run", "layer.mlir"),
        r"no archive for parameter scope 'model' \(given: none\); add --params model=FILE.*"
        r"\"fc.weight\", 8x16xf32",
    )


def test_an_archive_without_its_scope(numtrace, layer):
    refused(
        numtrace("run", "layer.mlir", "--params", "layer.safetensors"),
        r"no archive for parameter scope 'model': '(/\S+/layer.safetensors)' was given without a scope; "
        r"write --params model=\1; the program takes \"model\"::\"fc.weight\", 8x16xf32, from there",
    )


def test_a_parameter_is_missing(numtrace, layer, tmp_path):
    save_file({"fc.weight": WEIGHT_AND_BIAS["fc.weight"]}, tmp_path / "p.safetensors")
    refused(
        numtrace("run", "layer.mlir", "--params", "model=p.safetensors"),
        r'parameter "model"::"fc.bias" is not in .*p.safetensors.*16xf32',
    )


def test_a_parameter_of_another_shape(numtrace, layer, tmp_path):
    save_file(WEIGHT_AND_BIAS | {"fc.weight": np.ones((8, 15), np.float32)}, tmp_path / "p.safetensors")
    refused(
        numtrace("run", "layer.mlir", "--params", "model=p.safetensors"),
        r'"model"::"fc.weight" is 8x15xf32 in .*, and the program takes 8x16xf32',
    )


def test_a_parameter_of_another_type(numtrace, layer, tmp_path):
    save_file(WEIGHT_AND_BIAS | {"fc.bias": np.ones(16, np.float16)}, tmp_path / "p.safetensors")
    refused(
        numtrace("run", "layer.mlir", "--params", "model=p.safetensors"),
        r'"model"::"fc.bias" is 16xf16 in .*, and the program takes 16xf32',
    )


def test_a_truncated_archive(numtrace, layer, tmp_path):
    whole = (tmp_path / "layer.safetensors").read_bytes()
    (tmp_path / "cut.safetensors").write_bytes(whole[:-40])
    refused(
        numtrace("run", "layer.mlir", "--params", "model=cut.safetensors"),
        r"cut.safetensors' is truncated or damaged: 'fc.weight' ends at byte \d+, found \d+",
    )


def test_an_archive_that_is_not_there(numtrace, layer):
    refused(numtrace("run", "layer.mlir", "--params", "model=absent.irpa"), r"absent.irpa'?: No such file")


NPY = {
    "shape": (
        np.ones((4, 3), np.float32),
        r"input 0: given 4x3xf32 in 'x.npy', and the function takes 4x8xf32",
    ),
    "dtype": (np.ones((4, 8)), r"input 0: given 4x8xf64 in 'x.npy', and the function takes 4x8xf32"),
    "rank": (np.ones((1, 4, 8), np.float32), r"given 1x4x8xf32 in 'x.npy', and the function takes 4x8xf32"),
}


@pytest.mark.parametrize("kind", NPY)
def test_an_input_that_does_not_fit(kind, numtrace, layer, tmp_path):
    array, says = NPY[kind]
    np.save(tmp_path / "x.npy", array)
    refused(numtrace("run", *layer[:3], "--input", "@x.npy"), says)


def test_too_many_inputs(installed_numtrace, layer):
    refused(
        installed_numtrace("run", *layer, "--input", "4x8xf32=2"),
        r"2 given as --input, and the function takes 1 \(4x8xf32\)",
    )


def test_an_npy_with_objects_is_never_unpickled(numtrace, layer, tmp_path):
    class Bomb:
        def __reduce__(self):
            return (open, (str(tmp_path / "exploded"), "w"))

    np.save(tmp_path / "x.npy", np.array([Bomb()], object), allow_pickle=True)
    refused(
        numtrace("run", *layer[:3], "--input", "@x.npy"), "holds Python objects, which are never unpickled"
    )
    assert not (tmp_path / "exploded").exists()


def test_a_golden_of_another_shape(numtrace, layer, tmp_path):
    np.save(tmp_path / "golden.npy", np.ones((4, 8), np.float32))
    refused(
        numtrace("run", *layer, "--expected", "golden.npy"),
        r"golden 0 of 'golden.npy' is 4x8xf32, and the output is 4x16xf32",
    )


@pytest.mark.parametrize("command", ["run", "bisect"])
def test_more_threads_than_iree_has(numtrace, layer, command):
    refused(
        numtrace(command, *layer, "--threads", "100000"),
        r"^numtrace: Invalid value for '--threads': .*less than or equal to 256; see numtrace --help\n$",
    )


def test_seeds_and_inputs_exclude_each_other(numtrace, layer):
    refused(numtrace("run", *layer, "--seeds", "2"), "--seeds makes random inputs, --input gives them")


def test_a_dynamic_input_has_no_random_value(numtrace, tmp_path):
    (tmp_path / "m.mlir").write_text(
        "func.func @main(%x: tensor<?xf32>) -> tensor<?xf32> { return %x : tensor<?xf32> }"
    )
    refused(numtrace("run", "m.mlir"), r"input 0 is \?xf32, and its dynamic dims have no size; give --input")
