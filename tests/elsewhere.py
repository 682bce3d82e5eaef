"""A device that is not there: its tensors say that they are on it, and are kept in the memory of the CPU.

So what is checked is where tensors are, and nothing of a GPU's arithmetic: an op on tensors of two devices fails as
it does on a GPU, as does numpy where it is given one; a single number of the CPU may go with any.
"""

from __future__ import annotations

from collections.abc import Iterator
from contextlib import contextmanager
from typing import Any

import torch
from torch.overrides import TorchFunctionMode
from torch.utils._python_dispatch import TorchDispatchMode
from torch.utils._pytree import tree_leaves, tree_map

#: The one device besides the CPU that every build of torch has.
DEVICE = torch.device("meta")
_CPU = torch.device("cpu")
_MOVES = {torch.ops.aten._to_copy.default, torch.ops.aten.copy_.default}


class Away(torch.Tensor):
    """A tensor on :data:`DEVICE`; ``here`` is what it stands for."""

    @staticmethod
    def __new__(cls, here: torch.Tensor) -> Away:
        return torch.Tensor._make_wrapper_subclass(
            cls, here.shape, here.stride(), here.storage_offset(), dtype=here.dtype, device=DEVICE
        )

    def __init__(self, here: torch.Tensor):
        self.here = here

    def data_ptr(self) -> int:
        return self.here.data_ptr()

    @classmethod
    def __torch_dispatch__(cls, op: Any, types: Any, args: Any = (), kwargs: Any = None) -> Any:
        return _run(op, args, kwargs or {})


def _run(op: Any, args: Any, kwargs: dict[str, Any]) -> Any:
    given = [leaf for leaf in tree_leaves((args, kwargs)) if isinstance(leaf, torch.Tensor)]
    away = any(isinstance(value, Away) for value in given)
    if away and op not in _MOVES and any(value.dim() and not isinstance(value, Away) for value in given):
        where = ", ".join(f"{tuple(value.shape)} on {value.device}" for value in given)
        raise RuntimeError(f"{op}: {where}")
    args, kwargs = tree_map(_here, (args, kwargs))
    to = kwargs.get("device")
    if to is not None:
        away, kwargs["device"] = to == DEVICE, _CPU
    elif op is torch.ops.aten.copy_.default:
        away = isinstance(given[0], Away)
    made = op(*args, **kwargs)
    return (
        tree_map(lambda value: Away(value) if isinstance(value, torch.Tensor) else value, made)
        if away
        else made
    )


def _here(value: Any) -> Any:
    return value.here if isinstance(value, Away) else value


class _Ops(TorchDispatchMode):
    def __torch_dispatch__(self, op: Any, types: Any, args: Any = (), kwargs: Any = None) -> Any:
        return _run(op, args, kwargs or {})


class _Factories(TorchFunctionMode):
    """What makes tensors where no dispatch sees it: ``torch.tensor``, and ``where`` of a number."""

    def __torch_function__(self, function: Any, types: Any, args: Any = (), kwargs: Any = None) -> Any:
        kwargs = kwargs or {}
        if function in (torch.tensor, torch.asarray, torch.as_tensor, torch.scalar_tensor):
            to = kwargs.pop("device", DEVICE)
            return function(*args, **kwargs, device=_CPU).to(to)
        if function is torch.Tensor.new_tensor:
            like, value = args
            return torch.tensor(value, dtype=like.dtype, device=_CPU).to(like.device)
        if function in (torch.where, torch.Tensor.where):
            types = {value.dtype for value in args if isinstance(value, torch.Tensor)} - {torch.bool}
            dtype = types.pop() if types else None
            args = [
                value
                if isinstance(value, torch.Tensor)
                else torch.tensor(value, dtype=dtype, device=_CPU).to(DEVICE)
                for value in args
            ]
        return function(*args, **kwargs)


@contextmanager
def pretended() -> Iterator[None]:
    """Makes :data:`DEVICE` a device like others, and the default one."""
    with _Ops(), DEVICE, _Factories():
        yield
