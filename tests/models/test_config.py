"""The names are there without torch, and the sizes are those that the issue fixes."""

import subprocess
import sys

from numtrace.models import DEFAULT, NAMES
from numtrace.models.config import CONFIGS


def test_listing_names_imports_nothing_heavy():
    script = (
        "import sys; from numtrace.models import NAMES; print(*NAMES); "
        "print(sorted({'torch', 'iree', 'numpy', 'safetensors'} & set(sys.modules)))"
    )
    shown = subprocess.run([sys.executable, "-c", script], capture_output=True, text=True, check=True)
    assert shown.stdout.splitlines() == [" ".join(CONFIGS), "[]"]


def test_sizes():
    assert NAMES[:3] == ("sdxl-vae", "sdxl-vae-128", "sdxl-vae-tiny")
    assert DEFAULT == "sdxl-vae-tiny"
    full, small, tiny = (CONFIGS[name] for name in NAMES[:3])
    assert (full.widths, full.resnets, full.groups) == ((128, 256, 512, 512), 3, 32)
    assert (small.widths, small.resnets, small.groups) == ((128, 256, 512, 512), 3, 32)
    assert (tiny.widths, tiny.resnets, tiny.groups) == ((24, 48, 64, 64), 2, 8)
    assert (full.latent_shape, full.image_shape) == ((1, 4, 64, 64), (1, 3, 512, 512))
    assert (small.latent_shape, small.image_shape) == ((1, 4, 16, 16), (1, 3, 128, 128))
    assert (tiny.latent_shape, tiny.image_shape) == ((1, 4, 16, 16), (1, 3, 128, 128))


def test_the_second_seed_s_shapes():
    # Of the placeholders of the graph, and of the matmul that it was narrowed to.
    block = ("2x4096x640x{0}", "2x10x77x64x{0}", "2x10x77x64x{0}", "2x4096x640x{0}")
    product = ("8192x640x{0}", "640x640x{0}")
    for name, types in {"sdxl-unet-attention": block, "matmul-8192x640": product}.items():
        assert CONFIGS[name].input_types == tuple(text.format("f16") for text in types)
        assert CONFIGS[f"{name}-f32"].input_types == tuple(text.format("f32") for text in types)
