"""``out + A·B`` over affine maps, as matrix products.

Loops that make an operand's map more than a permutation (the window of a convolution) are walked one by one:
for each of their points the operands are strided views with one dimension per loop, and the product is a
batched matrix product. In float64 this is faster than torch's own convolution, and takes no im2col buffer.
"""

from __future__ import annotations

from itertools import product
from math import prod

import torch
from torch import Tensor

from numtrace.evaluate.affine import Domain, Linear, align, loop_view, loops_of

Operand = tuple[Tensor, tuple[Linear, ...]]

#: Elements of one stripe of the output, chosen so that its packed operands stay in the caches.
STRIPE = 1 << 21


def contract(a: Operand, b: Operand, out: Operand, domain: Domain) -> Tensor:
    """``out`` plus the product of ``a`` and ``b``, summed over the loops that ``out`` lacks.

    Every loop is one of ``a`` or ``b``. The result is a new tensor of the shape of ``out``.

    Raises:
        UncoveredOp: a map reads outside of its operand.
    """
    windows = _window_loops([a, b, out], domain.sizes)
    roles = _Roles(*(sorted(loops_of(forms).difference(windows)) for _, forms in (a, b, out)))
    if roles.across(a, b):
        a, b, roles = b, a, roles.swapped()
    result = out[0].clone(memory_format=torch.contiguous_format)
    cut, stripes = _stripes([a, b], domain, roles, windows)
    left = _Factor(a, (roles.batch, roles.rows, roles.inner), cut)
    right = _Factor(b, (roles.batch, roles.inner, roles.columns), cut)
    for stripe in stripes:
        _add_product(left, right, (result, out[1]), stripe, roles, windows)
    return result


class _Roles:
    """What each loop is in the matrix product: batch, rows (of A), columns (of B) or inner."""

    def __init__(self, a: list[int], b: list[int], out: list[int]):
        self.a, self.b, self.out = a, b, out
        self.batch = [loop for loop in out if loop in a and loop in b]
        self.rows = [loop for loop in out if loop in a and loop not in b]
        self.columns = [loop for loop in out if loop in b and loop not in a]
        self.inner = [loop for loop in a if loop in b and loop not in out]

    def swapped(self) -> _Roles:
        return _Roles(self.b, self.a, self.out)

    @property
    def elementwise(self) -> bool:
        """Whether nothing is summed but over the windows, as in a depthwise convolution."""
        return {*self.a, *self.b} <= {*self.out}

    def across(self, a: Operand, b: Operand) -> bool:
        """Whether A as the left factor would be packed across its fastest dimension, and B would not."""
        fastest = loops_of(a[1][-1:]) if a[0].dim() and a[0].stride(-1) == 1 else set()
        return bool(fastest.intersection(self.rows)) and not loops_of(b[1][-1:]).intersection(self.columns)


class _Factor:
    """One factor as matrices: ``groups`` are the loops of the batch, of the rows and of the columns."""

    def __init__(self, operand: Operand, groups: tuple[list[int], ...], cut: int | None):
        self._value, self._forms = operand
        self._groups = groups
        self._order = [loop for group in groups for loop in group]
        # The filter of a convolution is the same for all stripes: each of its elements is packed only once.
        # The image is not: to keep it would be im2col.
        self._loops = loops_of(self._forms)
        keep = all(form.is_loop for form in self._forms) and cut not in self._loops
        self._kept: dict[tuple[int, ...], Tensor] | None = {} if keep else None

    def view(self, domain: Domain, loops: list[int]) -> Tensor:
        """The factor in the box ``domain``, broadcastable over ``loops``."""
        return align(*loop_view(self._value, self._forms, domain), loops)

    def matrices(self, domain: Domain) -> Tensor:
        """The batch of matrices in the box ``domain``, summed over the loops that only this factor has."""
        key = tuple(index for loop, index in domain.fixed.items() if loop in self._loops)
        if self._kept is not None and key in self._kept:
            return self._kept[key]
        view, loops = loop_view(self._value, self._forms, domain)
        private = [position for position, loop in enumerate(loops) if loop not in self._order]
        if private:
            view = view.sum(dim=private, dtype=view.dtype)
            loops = [loop for loop in loops if loop in self._order]
        view = view.permute([loops.index(loop) for loop in self._order])
        packed = view.reshape([prod(domain.sizes[loop] for loop in group) for group in self._groups])
        if self._kept is not None:
            self._kept[key] = packed
        return packed


def _stripes(
    factors: list[Operand], domain: Domain, roles: _Roles, windows: list[int]
) -> tuple[int | None, list[Domain]]:
    """An output loop to cut, and the cuts, such that the output and the packed right factor stay small."""
    if not windows or not roles.out:
        return None, [domain]  # one matrix product, in which each operand is packed once or not at all
    size = domain.sizes
    volume = prod(size[loop] for loop in range(len(size)) if loop not in windows)
    share = max(prod(size[loop] for loop in roles.out), volume // prod(size[loop] for loop in roles.rows))
    # Of a convolution cut the image, not the filters, or the image would be packed again for every cut.
    mixed = {
        loop for _, forms in factors for form in forms if not form.is_loop for loop, _ in form.coefficients
    }
    loop = max(mixed.intersection(roles.out) or roles.out, key=lambda loop: size[loop])
    return loop, list(domain.stripes(loop, max(1, min(size[loop], STRIPE * size[loop] // share))))


def _add_product(
    left: _Factor, right: _Factor, out: Operand, domain: Domain, roles: _Roles, windows: list[int]
) -> None:
    """Adds to ``out``, in place, over the box ``domain``."""
    size = domain.sizes
    if roles.elementwise and out[0].dtype.is_floating_point:
        # As matrices these would be columns, each packed for a product with one number.
        for point in product(*(range(size[loop]) for loop in windows)):
            at = domain.at(dict(zip(windows, point, strict=True)))
            target, loops = loop_view(*out, at)
            target.addcmul_(left.view(at, loops), right.view(at, loops))
        return
    groups = (roles.batch, roles.rows, roles.columns)
    moving = bool(loops_of(out[1]).intersection(windows))
    target = accumulator = out[0]
    for index, point in enumerate(product(*(range(size[loop]) for loop in windows))):
        at = domain.at(dict(zip(windows, point, strict=True)))
        if index == 0 or moving:
            target, loops = loop_view(*out, at)
            target = target.permute([loops.index(loop) for group in groups for loop in group])
            # A view where the loops lie side by side, else a copy.
            accumulator = target.reshape([prod(size[loop] for loop in group) for group in groups])
        if accumulator.dtype.is_floating_point:
            accumulator.baddbmm_(left.matrices(at), right.matrices(at))
        else:
            accumulator.add_(torch.bmm(left.matrices(at), right.matrices(at)))
        if moving:
            _put_back(accumulator, target)
    if not moving:
        _put_back(accumulator, target)


def _put_back(accumulator: Tensor, target: Tensor) -> None:
    if accumulator.data_ptr() != target.data_ptr():
        target.copy_(accumulator.reshape(target.shape))


def _window_loops(operands: list[Operand], sizes: list[int]) -> list[int]:
    """The loops to walk: of every dimension that mixes several loops, all but the longest."""
    walked: set[int] = set()
    for _, forms in operands:
        for form in forms:
            loops = [loop for loop, _ in form.coefficients if loop not in walked]
            if len(loops) > 1:
                loops.remove(max(loops, key=lambda loop: sizes[loop]))
                walked.update(loops)
    return sorted(walked)
