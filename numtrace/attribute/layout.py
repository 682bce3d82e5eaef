"""How a source value lies in a site's tensor: reshaped, with its dimensions permuted, in a window of a buffer."""

from __future__ import annotations

from collections.abc import Iterator
from dataclasses import dataclass
from itertools import permutations
from math import prod

from torch import Tensor

#: Beyond this many dimensions larger than 1, only the row-major layout is considered.
MAX_RANK = 5

Window = tuple[list[int], list[int]]


@dataclass(frozen=True, slots=True)
class Layout:
    """``permutation`` of the source value's dimensions (None: row-major), inside ``window`` (None: everywhere).

    ``known`` is whether the shapes themselves say so: dimensions are merged or split in order. Otherwise the
    layout is only right if the values agree: where they do not, it may be another one.
    """

    permutation: tuple[int, ...] | None
    window: Window | None
    known: bool = True

    def __str__(self) -> str:
        text = "row-major" if self.permutation is None else f"permuted {list(self.permutation)}"
        return text if self.window is None else f"{text} at {self.window[0]}"

    def view(self, site: Tensor) -> Tensor:
        """The part of a site's tensor that holds the value."""
        if self.window is None:
            return site
        for dimension, (offset, size) in enumerate(zip(*self.window, strict=True)):
            site = site.narrow(dimension, offset, size)
        return site

    def place(self, value: Tensor, site: Tensor) -> Tensor:
        """The source value in the site's layout, shaped like :meth:`view`."""
        if self.permutation is not None:
            value = value.permute(self.permutation)
        return value.reshape(self.view(site).shape)


def layouts(
    value: tuple[int, ...], site: tuple[int, ...], window: Window | None, *, permuted: bool = True
) -> Iterator[Layout]:
    """Layouts in which a value of shape ``value`` can lie in a site of shape ``site``: row-major first.

    A permutation is possible when the permuted dimensions, merged or split in order, give the site's. Where the
    two have the same dimensions anyway (a square), only ``permuted``, that something upstream is, speaks for one:
    a transposition that nothing in the program asks for must not be taken for a layout.
    """
    if window is not None and tuple(window[1]) == site and not any(window[0]):
        window = None
    target = site if window is None else tuple(window[1])
    if prod(target) != prod(value):
        return
    boundaries = _boundaries([size for size in target if size > 1])
    mine = _boundaries([size for size in value if size > 1])
    yield Layout(None, window, known=mine <= boundaries or boundaries <= mine)
    wide = [dim for dim, size in enumerate(value) if size > 1]
    same = [value[dim] for dim in wide] == [size for size in target if size > 1]
    if len(wide) > MAX_RANK or (same and not permuted):
        return
    unit = [dim for dim, size in enumerate(value) if size == 1]
    for order in permutations(wide):
        if list(order) == wide:
            continue
        mine = _boundaries([value[dim] for dim in order])
        if mine <= boundaries or boundaries <= mine:
            # Dimensions that were split may have been permuted among each other: 32x384 in 2x12x16x32 is no 384x32
            # though 2·12·16 is 384, but 2x16x12x32 with the heads first.
            yield Layout((*unit, *order), window, known=boundaries <= mine)


def _boundaries(sizes: list[int]) -> frozenset[int]:
    """The products of the leading sizes: reshapes that only merge or only split keep one set inside the other."""
    products, product = [], 1
    for size in sizes:
        product *= size
        products.append(product)
    return frozenset(products)
