"""How small a fault is caught, by element type and length of the sum: ``python bench/sensitivity.py [--out FILE]``.

Every program (a matmul, a 3x3 convolution) is compiled by the real compiler and run. What it makes of narrowed
operands is held against what may be made of the operands as they are: that is what silently narrowed code makes.
A single wrong element, a dropped weight, a dropped bias and one running sum that went through f16 are added to what
the correct code made. A figure above 1 is a fault that is caught. Correct code is in the first column.

    correct      the greatest |C - Q| over its bound
    bf16 …       the same of code that narrows its operands to so many bits; in brackets over the deterministic bound,
                 which holds for any rounding errors whatever
    element      the relative error of one output element (of the median size) that is caught
    weight       how many of the weights are caught when one is dropped, in percent
    bias         the bias, over the outputs' rms, that is caught when it is dropped
    f16 step     the greatest error of one running sum rounded to f16, over its bound
"""

from __future__ import annotations

import argparse
import sys
import tempfile
from dataclasses import replace
from pathlib import Path

import torch
from torch import Tensor

sys.path.insert(0, str(Path(__file__).parent.parent / "tests"))  # of the programs, and of what judges them

from judged import Compiled, Judged
from kernels import TORCH, matmul, named

LENGTHS = (64, 128, 256, 512, 1152, 2304, 4608)
TYPES = ("f32,f32,f32", "f16,f16,f32", "bf16,bf16,f32", "f16,f16,f16")
#: Significant bits that operands are narrowed to.
NARROW = {"bf16": 8, "tf32": 11, "f16": 11}
DATA = {
    "normal": "normal activations and weights",
    "relu": "normal activations without the negative ones, normal weights",
    "positive": "activations and weights all positive",
}
ROWS, COLUMNS = 64, 64
IMAGE, FILTERS = 8, 64


def narrowed(value: Tensor, name: str) -> Tensor:
    """Rounded to the nearest number of the format (``tf32``: f32 with 11 significant bits)."""
    if name == "tf32":
        bits = value.float().view(torch.int32)
        kept = bits + 0xFFF + ((bits >> 13) & 1) & ~0x1FFF
        return kept.view(torch.float32).to(value.dtype)
    return value.to(TORCH[name]).to(value.dtype)


def rectangle(kind: str, k: int, types: str) -> tuple[str, list[tuple[int, ...]]]:
    """The text of the program and the shapes of its operands."""
    if kind == "matmul":
        return matmul(ROWS, k, COLUMNS, types), [(ROWS, k), (k, COLUMNS)]
    channels = k // 9
    shapes = [(1, channels, IMAGE + 2, IMAGE + 2), (FILTERS, channels, 3, 3)]
    return named("conv_2d_nchw_fchw", *shapes, (1, FILTERS, IMAGE, IMAGE), types), shapes


def products(kind: str, a: Tensor, b: Tensor) -> Tensor:
    """Every product of every output, float64: (outputs, terms), outputs as they lie."""
    a, b = a.double(), b.double()
    if kind == "matmul":
        return (a[:, None, :] * b.T[None]).reshape(-1, a.shape[1])
    patches = torch.nn.functional.unfold(a, 3)[0]  # (terms, pixels)
    return (b.reshape(len(b), 1, -1) * patches.T[None]).reshape(-1, patches.shape[0])


def row(kind: str, k: int, types: str, data: str, folder: Path) -> dict[str, str]:
    text, shapes = rectangle(kind, k, types)
    program = Compiled(text, folder / f"{kind}-{k}-{types.replace(',', '-')}")
    g = torch.Generator().manual_seed(k)
    element = types.split(",")[0]
    a = torch.randn(shapes[0], generator=g)
    b = torch.randn(shapes[1], generator=g) / k**0.5
    if data == "relu":
        a = a.relu()
    elif data == "positive":
        a, b = a.abs(), b.abs()
    a, b = a.to(TORCH[element]), b.to(TORCH[element])
    site = contraction(program.run(a, b))
    near, far = site.typed(), site.typed(deterministic=True)
    cells = {"correct": f"{site.against(near).ratio:.2g}"}
    for name in NARROW:
        if element != "f32" and not (element == "f16" and name == "bf16"):
            cells[name] = "-"
            continue
        fault = replace(site, made=contraction(program.run(narrowed(a, name), narrowed(b, name))).made)
        cells[name] = f"{fault.against(near).ratio:.3g} ({fault.against(far).ratio:.2g})"
    bound, size = near.error.double().reshape(-1), near.exact.reshape(-1)
    off = (site.made.double() - near.wide).reshape(-1)
    rms = float(size.square().mean().sqrt())
    cells["element"] = f"{float((bound / size.abs()).median()):.1e}"
    terms = products(kind, a, b)
    caught = ((terms - off[:, None]).abs() > bound[:, None]).double()
    per_weight = (
        caught.reshape(ROWS, COLUMNS, k).amax(dim=0)
        if kind == "matmul"
        else caught.reshape(FILTERS, -1, k).amax(dim=1)
    )
    cells["weight"] = f"{100 * float(per_weight.mean()):.3g}"
    cells["bias"] = f"{float(bound.min()) / rms:.1e}"
    halfway = terms[:, : k // 2].sum(dim=1)
    cells["f16 step"] = f"{float(((halfway.half().double() - halfway + off).abs() / bound).max()):.3g}"
    return cells


def contraction(sites: list[Judged]) -> Judged:
    """The last site: what comes before it fills and packs."""
    return sites[-1]


def main() -> None:
    parser = argparse.ArgumentParser(
        description=__doc__, formatter_class=argparse.RawDescriptionHelpFormatter
    )
    parser.add_argument("--lengths", type=int, nargs="*", default=LENGTHS)
    parser.add_argument("--types", nargs="*", default=TYPES)
    options = parser.parse_args()
    with tempfile.TemporaryDirectory() as folder:
        for types in options.types:
            for kind in ("matmul", "conv"):
                for data in DATA:
                    print(f"\n{types.replace(',', ' x ', 1).replace(',', ' -> ')}, {kind}, {DATA[data]}")
                    for k in options.lengths:
                        if kind == "conv" and k % 9:
                            continue
                        cells = row(kind, k, types, data, Path(folder))
                        print(f"  K {k:5}  " + "  ".join(f"{n} {v}" for n, v in cells.items()), flush=True)


if __name__ == "__main__":
    main()
