"""How far the size of one and the same fault varies with the inputs: ``python bench/known.py [--seeds N]``.

Which is what a known finding may vary by and not have grown (``GROWN`` in ``numtrace/attribute/known.py``). Two
faults, on matmuls with K terms a sum and random normal inputs: operands narrowed to bf16, and a bias left out.
Printed is, over the seeds, the largest over the smallest of each figure; a finding that is accepted with the
smallest and met with the largest has that ratio.
"""

from __future__ import annotations

import argparse

import ml_dtypes
import numpy as np

SHAPES = ((4, 4), (16, 16), (64, 64), (256, 256))
TERMS = (16, 64, 576, 4608)


def figures(seed: int, shape: tuple[int, int], terms: int) -> dict[str, tuple[float, float]]:
    """Max abs and relative L2 of both faults; the weights and the bias are those of every seed."""
    weights = np.random.default_rng(12345)
    weight = weights.standard_normal((terms, shape[1]))
    bias = weights.standard_normal(shape[1])
    value = np.random.default_rng(seed).standard_normal((shape[0], terms))
    right = value @ weight / np.sqrt(terms) + bias
    narrow = (value.astype(ml_dtypes.bfloat16).astype(float)) @ weight.astype(ml_dtypes.bfloat16).astype(
        float
    )
    wrong = {"narrowed": narrow / np.sqrt(terms) + bias, "no bias": right - bias}
    return {
        name: (float(np.abs(made - right).max()), float(np.linalg.norm(made - right) / np.linalg.norm(right)))
        for name, made in wrong.items()
    }


def main() -> None:
    parser = argparse.ArgumentParser(description=__doc__.splitlines()[0])
    parser.add_argument("--seeds", type=int, default=50)
    seeds = parser.parse_args().seeds
    print(f"{'fault':10}{'shape':>12}{'K':>7}{'max abs':>10}{'rel L2':>10}")
    for shape in SHAPES:
        for terms in TERMS:
            found = [figures(seed, shape, terms) for seed in range(seeds)]
            for fault in found[0]:
                spread = [
                    max(one[fault][k] for one in found) / min(one[fault][k] for one in found) for k in (0, 1)
                ]
                print(
                    f"{fault:10}{f'{shape[0]}x{shape[1]}':>12}{terms:>7}{spread[0]:>10.2f}{spread[1]:>10.2f}"
                )


if __name__ == "__main__":
    main()
