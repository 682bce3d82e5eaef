"""Real checkpoints: both spellings, narrow types, and every kind of misfit named."""

import pickle

import pytest
import torch
from safetensors.torch import save_file

from numtrace.errors import InputError
from numtrace.models.checkpoint import fits, normalise_checkpoint

ATTENTION = "decoder.mid_block.attentions.0"
EXPECTED = {
    "post_quant_conv.weight": (4, 4, 1, 1),
    f"{ATTENTION}.to_q.weight": (2, 2),
    f"{ATTENTION}.to_q.bias": (2,),
    f"{ATTENTION}.to_k.weight": (2, 2),
    f"{ATTENTION}.to_v.weight": (2, 2),
    f"{ATTENTION}.to_out.0.weight": (2, 2),
    "decoder.conv_out.bias": (3,),
}
OLD = {"to_q": "query", "to_k": "key", "to_v": "value", "to_out.0": "proj_attn"}


def tensors():
    """Small integers (exact in every dtype), another one in each element of each parameter."""
    result, start = {}, 0
    for name, shape in EXPECTED.items():
        count = torch.Size(shape).numel()
        result[name] = torch.arange(start, start + count, dtype=torch.float32).reshape(shape)
        start += count
    return result


def old_spelling(given, dims=2):
    result = {}
    for name, value in given.items():
        for new, old in OLD.items():
            name = name.replace(f"{ATTENTION}.{new}.", f"{ATTENTION}.{old}.")
        if name.startswith(ATTENTION) and name.endswith(".weight"):
            value = value.reshape(value.shape + (1,) * (dims - 2))
        result[name] = value
    return result


@pytest.fixture
def save(tmp_path):
    def save(given, name="vae.safetensors"):
        save_file(given, tmp_path / name)
        return tmp_path / name

    return save


def read(path):
    return normalise_checkpoint(path, EXPECTED, "sdxl-vae")


def failure(path):
    with pytest.raises(InputError) as caught:
        read(path)
    return str(caught.value)


def assert_is_original(checkpoint):
    assert list(checkpoint.tensors) == list(EXPECTED)
    for name, value in tensors().items():
        assert checkpoint.tensors[name].dtype == torch.float32
        assert torch.equal(checkpoint.tensors[name], value), name


@pytest.mark.parametrize(
    "spell",
    [
        lambda given: given,
        lambda given: old_spelling(given),
        lambda given: old_spelling(given, dims=4),
        lambda given: {f"vae.{name}": value for name, value in given.items()},
        lambda given: (
            {f"vae.{name}": value for name, value in old_spelling(given, dims=4).items()}
            | {"unet.conv_in.weight": torch.zeros(1)}
        ),
        lambda given: given | {"encoder.conv_in.weight": torch.zeros(5), "quant_conv.weight": torch.zeros(8)},
    ],
    ids=["new", "old", "old 1x1 conv", "prefixed", "old in a whole pipeline", "with encoder"],
)
def test_spellings(save, spell):
    checkpoint = read(save(spell(tensors())))
    assert_is_original(checkpoint)
    assert checkpoint.notices == ()


@pytest.mark.parametrize(("dtype", "name"), [(torch.float16, "f16"), (torch.bfloat16, "bf16")])
def test_narrow_types_are_widened_with_a_notice(save, dtype, name):
    checkpoint = read(save({key: value.to(dtype) for key, value in tensors().items()}))
    assert_is_original(checkpoint)
    assert checkpoint.notices == (f"7 parameters of vae.safetensors widened from {name} to f32 (exact)",)


def test_other_types_are_refused(save):
    text = failure(save(tensors() | {"decoder.conv_out.bias": torch.zeros(3, dtype=torch.float64)}))
    assert "decoder.conv_out.bias is F64, one of F32, F16, BF16 expected" in text


def test_missing_unexpected_and_another_shape_are_all_counted(save):
    given = tensors()
    del given["post_quant_conv.weight"], given[f"{ATTENTION}.to_k.weight"]
    given["decoder.conv_out.bias"] = torch.zeros(4)
    given["decoder.extra.weight"] = torch.zeros(7, 1)
    text = failure(save(given))
    assert "do not fit sdxl-vae" in text
    for problem in (
        "2 missing",
        "1 unexpected",
        "1 another shape",
        "missing: post_quant_conv.weight [4, 4, 1, 1]",
        f"missing: {ATTENTION}.to_k.weight [2, 2]",
        "unexpected: decoder.extra.weight [7, 1]",
        "another shape: decoder.conv_out.bias is [4], [3] expected",
    ):
        assert problem in text


def test_a_shape_is_told_under_the_name_in_the_file(save):
    given = old_spelling(tensors())
    given[f"{ATTENTION}.query.weight"] = torch.zeros(2, 3)
    assert f"{ATTENTION}.query.weight is [2, 3], [2, 2] expected" in failure(save(given))


def test_only_attention_weights_may_be_1x1_convolutions(save):
    given = tensors() | {"decoder.conv_out.bias": torch.zeros(3, 1, 1, 1)}
    assert "decoder.conv_out.bias is [3, 1, 1, 1], [3] expected" in failure(save(given))


def test_the_first_few_of_many(save):
    text = failure(save({f"other.{i}": torch.zeros(1) for i in range(20)}))
    assert "7 missing, 20 unexpected" in text
    assert text.count("unexpected: ") == 5
    assert text.endswith("and 17 more")  # 7 + 20 less five of each


def test_one_parameter_in_both_spellings(save):
    given = tensors() | {f"{ATTENTION}.query.weight": torch.zeros(2, 2)}
    text = failure(save(given))
    assert "given twice" in text
    assert f"{ATTENTION}.query.weight" in text
    assert f"{ATTENTION}.to_q.weight" in text


def test_truncated(save):
    path = save(tensors())
    path.write_bytes(path.read_bytes()[:-8])
    text = failure(path)
    assert str(path) in text
    assert "no whole .safetensors file" in text


class Bomb:
    def __reduce__(self):
        return (pytest.fail, ("unpickled",))


@pytest.mark.parametrize("name", ["vae.bin", "vae.ckpt", "vae.pt", "renamed.safetensors"])
def test_pickles_are_never_loaded(tmp_path, name):
    path = tmp_path / name
    path.write_bytes(pickle.dumps(Bomb()))
    assert ".safetensors file" in failure(path)


def test_absent_file_and_directory(tmp_path):
    assert "no parameter file" in failure(tmp_path / "absent.safetensors")
    assert "a .safetensors file expected" in failure(tmp_path)


def test_fits(save):
    path = save(old_spelling(tensors()))
    assert fits(path, EXPECTED)
    assert not fits(path, EXPECTED | {"decoder.conv_out.bias": (4,)})
