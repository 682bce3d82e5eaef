"""Parameter archives through IREE's index: bits in, bits out, in numpy and in a compiled program."""

from __future__ import annotations

import gc
import struct

import ml_dtypes
import numpy as np
import pytest
import torch
from safetensors.numpy import save_file
from safetensors.torch import save_file as save_torch_file

from numtrace.errors import InputError, OutputError
from numtrace.instrument.archive_headers import StoredType
from numtrace.instrument.parameters import ParameterArchives, parse_scope, write_irpa
from numtrace.instrument.tensor_type import TensorType

_W = np.arange(16, dtype=np.float32).reshape(4, 4)


def _type(text: str) -> TensorType:
    return TensorType.parse(text)


def _gguf(path):
    """One 4x4 f32 tensor ``w``."""
    header = b"GGUF" + struct.pack("<IQQ", 3, 1, 0)
    header += struct.pack("<Q", 1) + b"w" + struct.pack("<IQQIQ", 2, 4, 4, 0, 0)
    path.write_bytes(header + bytes(-len(header) % 32) + _W.tobytes())


@pytest.fixture
def archive(tmp_path):
    path = tmp_path / "x.safetensors"
    save_file({"decoder.conv.weight": _W, "decoder.conv.bias": np.ones(4, np.float16)}, path)
    return path


def test_parse_scope():
    assert [str(part) for part in parse_scope("model=a b.safetensors")] == ["model", "a b.safetensors"]
    assert [str(part) for part in parse_scope("m=/x=y.irpa")] == ["m", "/x=y.irpa"]
    assert [str(part) for part in parse_scope("some.gguf")] == ["", "some.gguf"]
    for text in ("", "model="):
        with pytest.raises(InputError, match=r"give SCOPE=FILE, such as model=weights\.irpa"):
            parse_scope(text)


@pytest.mark.parametrize("suffix", [".safetensors", ".irpa", ".gguf", ".SafeTensors"])
def test_each_format(tmp_path, suffix):
    path = tmp_path / f"odd name = é{suffix}"
    if suffix == ".gguf":
        _gguf(path)
    elif suffix == ".irpa":
        write_irpa(path, {"w": _W})
    else:
        save_file({"w": _W}, path)
    archives = ParameterArchives([("model", path)])
    assert archives.keys("model") == ["w"]
    assert archives.stored("model", "w") == StoredType("f32", (4, 4))
    array = archives.array("model", "w", _type("4x4x1x1xf32"))
    assert array.shape == (4, 4, 1, 1)
    assert array.dtype == np.float32
    assert array.ravel().tolist() == list(range(16))
    assert not array.flags.writeable


def test_arrays_outlive_the_archives(tmp_path):
    write_irpa(tmp_path / "x.irpa", {"w": np.arange(10_000)})
    array = ParameterArchives([("", tmp_path / "x.irpa")]).array("", "w", _type("10000xi64"))
    gc.collect()
    assert int(array.sum()) == 49_995_000


def test_bf16_and_f8_are_the_raw_bits(tmp_path):
    save_torch_file(
        {"b": torch.tensor([1.5, -2], dtype=torch.bfloat16), "f": torch.tensor([1.5]).to(torch.float8_e5m2)},
        tmp_path / "x.safetensors",
    )
    archives = ParameterArchives([("m", tmp_path / "x.safetensors")])
    assert archives.array("m", "b", _type("2xbf16")).tolist() == [1.5, -2]
    assert archives.array("m", "f", _type("1xf8E5M2")).tolist() == [1.5]
    with pytest.raises(InputError, match=r'"m"::"b" is 2xbf16 in .*and the program takes 2xf16 \(4 bytes\)'):
        archives.array("m", "b", _type("2xf16"))


def test_write_irpa_and_read_back(tmp_path):
    arrays = {
        "bf16": np.array([1.5, -2, 3], ml_dtypes.bfloat16),
        "f8E4M3FNUZ": np.array([[1.5]], ml_dtypes.float8_e4m3fnuz),
        "f64": np.arange(6.0).reshape(2, 3).T,
        "i1": np.array([True, False]),
        "ui8": np.array([255], np.uint8),
        "f32": np.array(2.5, np.float32),
        "i64": np.zeros((0, 2), np.int64),
    }
    write_irpa(tmp_path / "x.irpa", arrays)
    assert [path.name for path in tmp_path.iterdir()] == ["x.irpa"]
    archives = ParameterArchives([("", tmp_path / "x.irpa")])
    assert set(archives.keys("")) == set(arrays)
    for name, array in arrays.items():
        assert archives.stored("", name) == StoredType(name, array.shape)
        read = archives.array("", name, TensorType(array.shape, name))
        assert read.dtype == array.dtype
        assert read.tolist() == array.tolist()


def test_splats(tmp_path):
    from iree.runtime import SplatValue, save_archive_file

    entries = {"s": SplatValue(np.float32(2), [2, 3]), "z": SplatValue(np.int8(0), 16)}
    save_archive_file(entries, tmp_path / "x.irpa")
    archives = ParameterArchives([("", tmp_path / "x.irpa")])
    assert archives.stored("", "s") is None
    assert archives.array("", "s", _type("2x3xf32")).tolist() == [[2, 2, 2], [2, 2, 2]]
    assert archives.array("", "z", _type("4xf32")).tolist() == [0, 0, 0, 0]
    with pytest.raises(InputError, match=r'"s" is 24 bytes in .*the program takes 2x3xf16 \(12 bytes\)'):
        archives.array("", "s", _type("2x3xf16"))


def test_check_accepts_what_fits(archive):
    ParameterArchives([("model", archive)]).check(
        {
            ("model", "decoder.conv.weight"): _type("4x4x1x1xf32"),
            ("model", "decoder.conv.bias"): _type("4xf16"),
        }
    )


@pytest.mark.parametrize(
    ("key", "expected", "says"),
    [
        (
            "decoder.conv.weight",
            "4x8xf32",
            r'"model"::"decoder.conv.weight" is 4x4xf32 in .*x\.safetensors.* takes 4x8xf32',
        ),
        ("decoder.conv.weight", "4x4xi32", "is 4x4xf32 .* takes 4x4xi32"),
        ("decoder.conv.bias", "4xbf16", "is 4xf16 .* takes 4xbf16"),
        ("decoder.conv.weigth", "4x4xf32", r"is not in .*nearest: decoder\.conv\.weight"),
        ("qqq", "4x4xf32", "is not in .*it has 2 others"),
    ],
)
def test_check_names_the_parameter_and_both_types(archive, key, expected, says):
    with pytest.raises(InputError, match=says):
        ParameterArchives([("model", archive)]).check({("model", key): _type(expected)})


def test_check_counts_the_other_faults(archive):
    required = {("model", f"layer.{i}"): _type("f32") for i in range(5)}
    with pytest.raises(InputError, match=r'"layer\.0" is not in .*\(and 4 more parameters do not fit\)'):
        ParameterArchives([("model", archive)]).check(required)


def test_a_scope_that_was_not_given(archive):
    archives = ParameterArchives([("vae", archive)])
    with pytest.raises(InputError, match=r"scope 'model' \(given: 'vae'\); add --params model=FILE"):
        archives.check({("model", "w"): _type("f32")})
    with pytest.raises(InputError, match="given: none"):
        ParameterArchives().keys("model")


def test_several_files_of_one_scope_and_no_key_twice(tmp_path):
    write_irpa(tmp_path / "a.irpa", {"a": _W})
    save_file({"b": _W + 1}, tmp_path / "b.safetensors")
    archives = ParameterArchives([("m", tmp_path / "a.irpa"), ("m", tmp_path / "b.safetensors")])
    assert archives.scopes == ["m"]
    assert archives.keys("m") == ["a", "b"]
    assert archives.array("m", "b", _type("4x4xf32"))[0, 0] == 1
    with pytest.raises(InputError, match=r"'a' is in .*a\.irpa' and in .*a\.irpa'"):
        archives.add("m", tmp_path / "a.irpa")


@pytest.mark.parametrize("suffix", [".safetensors", ".irpa", ".gguf"])
def test_truncated_archives(tmp_path, suffix):
    whole = tmp_path / f"x{suffix}"
    if suffix == ".gguf":
        _gguf(whole)
    elif suffix == ".irpa":
        write_irpa(whole, {"w": np.zeros(10_000)})
    else:
        save_file({"w": _W}, whole)
    data = whole.read_bytes()
    cut = tmp_path / f"cut{suffix}"
    # IREE pads an irpa to whole pages: more than that is cut off.
    for size in (0, 3, 20, len(data) // 2, len(data) - (5000 if suffix == ".irpa" else 1)):
        cut.write_bytes(data[:size])
        with pytest.raises(InputError, match=f"'.*cut{suffix}' is truncated or damaged: [^:]*"):
            ParameterArchives([("m", cut)])


def test_an_archive_of_another_format_under_a_known_suffix(tmp_path, archive):
    for suffix in (".irpa", ".gguf"):
        other = tmp_path / f"other{suffix}"
        other.write_bytes(archive.read_bytes())
        with pytest.raises(InputError, match="truncated or damaged"):
            ParameterArchives([("m", other)])


def test_unwritable_archive(tmp_path):
    with pytest.raises(OutputError, match=r"cannot write parameters to .*x\.irpa"):
        write_irpa(tmp_path / "missing" / "x.irpa", {"w": _W})
    (tmp_path / "taken.irpa").mkdir()
    with pytest.raises(OutputError, match="cannot write"):
        write_irpa(tmp_path / "taken.irpa", {"w": _W})
    assert [path.name for path in tmp_path.iterdir()] == ["taken.irpa"]


_PROGRAM = """
util.global private @w = #flow.parameter.named<"model"::"w"> : tensor<2x3xf32>
util.global private @h = #flow.parameter.named<"model"::"h"> : tensor<3xbf16>
func.func @main(%x: tensor<2x3xf32>) -> tensor<2x3xf32> {
  %w = util.global.load @w : tensor<2x3xf32>
  %h = util.global.load @h : tensor<3xbf16>
  %empty = tensor.empty() : tensor<2x3xf32>
  %r = linalg.generic {
    indexing_maps = [affine_map<(i, j) -> (i, j)>, affine_map<(i, j) -> (i, j)>, affine_map<(i, j) -> (j)>,
                     affine_map<(i, j) -> (i, j)>],
    iterator_types = ["parallel", "parallel"]
  } ins(%x, %w, %h : tensor<2x3xf32>, tensor<2x3xf32>, tensor<3xbf16>) outs(%empty : tensor<2x3xf32>) {
  ^bb0(%a: f32, %b: f32, %c: bf16, %o: f32):
    %wide = arith.extf %c : bf16 to f32
    %product = arith.mulf %a, %b : f32
    %sum = arith.addf %product, %wide : f32
    linalg.yield %sum : f32
  } -> tensor<2x3xf32>
  return %r : tensor<2x3xf32>
}
"""


@pytest.fixture(scope="module")
def binary():
    from iree.compiler.tools import compile_str

    return compile_str(_PROGRAM, target_backends=["llvm-cpu"], extra_args=["--iree-llvmcpu-target-cpu=host"])


@pytest.mark.parametrize("suffix", [".irpa", ".safetensors"])
def test_a_compiled_program_reads_its_parameters(tmp_path, binary, suffix):
    import iree.runtime as rt

    w = np.arange(6, dtype=np.float32).reshape(2, 3)
    h = np.array([0.5, 1.5, -2], ml_dtypes.bfloat16)
    path = tmp_path / f"x{suffix}"
    if suffix == ".irpa":
        write_irpa(path, {"w": w, "h": h})
    else:
        save_torch_file({"w": torch.from_numpy(w), "h": torch.tensor([0.5, 1.5, -2]).bfloat16()}, path)
    archives = ParameterArchives([("model", path)])
    archives.check({("model", "w"): _type("2x3xf32"), ("model", "h"): _type("3xbf16")})

    config = rt.Config("local-sync")
    parameters = rt.create_io_parameters_module(config.vm_instance, archives.provider("model"))
    hal = rt.create_hal_module(config.vm_instance, config.device)
    module = rt.VmModule.copy_buffer(config.vm_instance, binary)
    _, _, bound = rt.load_vm_modules(parameters, hal, module, config=config)
    result = bound.main(np.full((2, 3), 2, np.float32)).to_host()

    # 2·w + h
    assert result.tolist() == [[0.5, 3.5, 2.0], [6.5, 9.5, 8.0]]
