"""The exported text: ops counted by hand, locations as documented, no trace of this machine."""

import re
import subprocess
import sys
import warnings
from dataclasses import replace
from pathlib import Path

import pytest
import torch
from torch import nn

import numtrace.evaluate  # noqa: F401  (registers the dialects)
from numtrace.evaluate.machine import Machine
from numtrace.evaluate.program import Program
from numtrace.importers.torch_program import export_fake, export_module
from numtrace.instrument.tensor_type import TensorType
from numtrace.models.config import CONFIGS
from numtrace.models.sdxl_vae import SdxlVaeDecoder
from numtrace.models.weights import parameter_shapes

TINY = CONFIGS["sdxl-vae-tiny"]


def export(config):
    return export_fake(lambda: SdxlVaeDecoder(config), [TensorType(config.latent_shape, "f32")])


@pytest.fixture(scope="module")
def decomposed():
    return export(TINY)


@pytest.fixture(scope="module")
def with_op():
    return export(replace(TINY, attention="op"))


def walk(text):
    """(op name, location as text, op as text without its location) of every op but the module's."""
    from iree.compiler import ir

    with ir.Context():
        found = []

        def visit(op):
            found.append((op.name, str(op.location), op.get_asm(enable_debug_info=False)))
            return ir.WalkResult.ADVANCE

        module = ir.Module.parse(text)
        assert module.operation.verify()
        module.operation.walk(visit)
    return found[:-1]


def test_convolutions_counted_by_hand(decomposed):
    # post_quant 1, conv_in 1, 10 resnets of 2 (2 mid, 4 blocks of 2), shortcuts 64→48 and 48→24,
    # 3 upsamplers, conv_out 1.
    names = [name for name, _, _ in walk(decomposed)]
    assert names.count("torch.aten.convolution") == 1 + 1 + 10 * 2 + 2 + 3 + 1
    # Two per resnet, attention, output; one SiLU each but for attention's.
    assert names.count("torch.aten.native_group_norm") == 10 * 2 + 1 + 1
    assert names.count("torch.aten.silu") == 10 * 2 + 1
    assert (
        names.count("torch.aten.upsample_nearest2d") + names.count("torch.aten.upsample_nearest2d.vec") == 3
    )
    # q, k, v as bmm or addmm, scores, values, out.
    assert names.count("torch.aten.bmm") + names.count("torch.aten.addmm") + names.count("torch.aten.mm") == 6


def test_locations_carry_op_and_module(decomposed):
    ops = walk(decomposed)
    convolutions = [where for name, where, _ in ops if name == "torch.aten.convolution"]
    assert convolutions[0] == 'loc("convolution"("post_quant_conv"))'
    assert convolutions[1] == 'loc("convolution_1"("decoder.conv_in"))'
    assert convolutions[2] == 'loc("convolution_2"("decoder.mid_block.resnets.0.conv1"))'
    assert convolutions[-1] == 'loc("convolution_27"("decoder.conv_out"))'
    assert [where for name, where, _ in ops if name == "torch.aten._softmax"] == [
        'loc("_softmax"("decoder.mid_block.attentions.0"))'
    ]
    assert [where for name, where, _ in ops if name == "func.func"] == ['loc("main")']
    assert not [op for op, where, _ in ops if "unknown" in where]


def test_globals_are_the_parameters_in_module_order(decomposed):
    ops = walk(decomposed)
    names = list(parameter_shapes(TINY))
    globals_ = [(where, text) for name, where, text in ops if name == "util.global"]
    assert [re.search(r'"model"::"([^"]+)"', text)[1] for _, text in globals_] == names
    assert [where for where, _ in globals_] == [f'loc("{name}")' for name in names]
    loads = [where for name, where, _ in ops if name == "util.global.load"]
    assert sorted(loads) == sorted(f'loc("{name}")' for name in names)


@pytest.mark.parametrize("form", ["decomposed", "with_op"])
def test_no_path_of_a_machine(form, request):
    text = request.getfixturevalue(form)
    assert "/" not in text
    assert "\\" not in text
    assert "File" not in text
    assert ".py" not in text
    assert Path.home().name not in re.findall(r'loc\("([^"]*)"', text)
    assert "dense_resource" not in text


def test_function_and_latent_scale(decomposed):
    assert (
        'func.func @main(%arg0: !torch.vtensor<[1,4,16,16],f32> loc("main")) '
        "-> !torch.vtensor<[1,3,128,128],f32>" in decomposed
    )
    constants = re.findall(r"torch\.constant\.float (\S+)", decomposed)
    assert [value for value in constants if float(value) == 0.13025] == ["1.302500e-01"]
    assert {float(value) for value in constants} == {0.13025, 1e-6, 64**-0.5, 2.0, 0.5}


def test_export_is_deterministic(decomposed):
    assert export(TINY) == decomposed


def test_attention_op_is_kept_to_the_input_stage(decomposed, with_op, tmp_path):
    kept = "_scaled_dot_product_flash_attention_for_cpu"
    assert kept in with_op
    assert kept not in decomposed
    assert "torch.aten._softmax" not in with_op
    counts = {}
    for form, text in {"decomposed": decomposed, "op": with_op}.items():
        source = tmp_path / f"{form}.mlir"
        source.write_text(text)
        command = [sys.executable, "-m", "iree.compiler.tools.scripts.iree_compile", "--compile-to=input"]
        stage = subprocess.run([*command, str(source)], capture_output=True, text=True, check=True).stdout
        counts[form] = stage.count("iree_linalg_ext.attention")
    assert counts == {"decomposed": 0, "op": 1}


def test_export_is_quiet(capfd):
    with warnings.catch_warnings(record=True) as raised:
        warnings.simplefilter("always")
        export(replace(TINY, latent=2))
    assert [str(warning.message) for warning in raised] == []
    assert capfd.readouterr() == ("", "")


def test_what_the_dialect_has_no_op_for_is_taken_apart():
    """A batch norm that is not trained: (5 - 1) / sqrt(3 + 1) * 4 + 0.5."""
    norm = nn.BatchNorm2d(1, eps=1.0).eval()
    state = {"running_mean": 1.0, "running_var": 3.0, "weight": 4.0, "bias": 0.5}
    with torch.no_grad():
        for name, value in state.items():
            getattr(norm, name).fill_(value)
    text = export_module(norm, [torch.full((1, 1, 2, 2), 5.0)])
    assert "torch.operator" not in text
    program = Program.parse(text)
    globals_ = {symbol: norm.state_dict()[symbol] for symbol in program.globals}
    (found,) = Machine(program, globals_).run(
        program.functions["main"].regions[0], [torch.full((1, 1, 2, 2), 5.0)]
    )
    assert found.flatten().tolist() == [8.5] * 4


class Spectrogram(nn.Module):
    def __init__(self):
        super().__init__()
        self.register_buffer("window", torch.linspace(0.5, 1.0, 16))

    def forward(self, x):
        frames = torch.stft(x, 16, 8, window=self.window, center=False, return_complex=True)
        return torch.view_as_real(frames), torch.view_as_real(torch.fft.rfft(x))


def test_fourier_transforms_stay_whole():
    """IREE lowers them by their names, and nothing that PyTorch would make of them."""
    names = [name for name, _, _ in walk(export_module(Spectrogram(), (torch.zeros(2, 32),)))]
    assert {"torch.aten.stft", "torch.aten.fft_rfft"} <= {*names} and "torch.operator" not in names
