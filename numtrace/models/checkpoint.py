"""A public checkpoint of the SDXL autoencoder, read into the parameters that a built-in decoder has.

Only ``.safetensors`` is read: other checkpoint formats are pickles, and those run code.
"""

from __future__ import annotations

import re
from collections import Counter
from collections.abc import Iterator, Mapping
from contextlib import contextmanager
from dataclasses import dataclass
from pathlib import Path
from typing import TYPE_CHECKING, Any

from numtrace.errors import InputError

if TYPE_CHECKING:
    from torch import Tensor

Shape = tuple[int, ...]

_PREFIX = "vae."
_IGNORED = ("encoder.", "quant_conv.")
#: The attention weights' names before diffusers 0.13, and their names today.
_OLD_ATTENTION = {"query": "to_q", "key": "to_k", "value": "to_v", "proj_attn": "to_out.0"}
_ATTENTION = re.compile(r"(?P<block>.*\.attentions\.\d+)\.(?P<role>query|key|value|proj_attn)\.(?P<kind>\w+)")
_ATTENTION_WEIGHT = re.compile(r".*\.attentions\.\d+\.to_(q|k|v|out\.0)\.weight")
_DTYPES = ("F32", "F16", "BF16")
_LISTED = 5


@dataclass(frozen=True)
class Checkpoint:
    """The decoder's parameters, f32, by name; and what was changed to get them."""

    tensors: dict[str, Tensor]
    notices: tuple[str, ...]


def normalise_checkpoint(path: Path, expected: Mapping[str, Shape], model: str) -> Checkpoint:
    """The parameters ``expected`` (name → shape, of the built-in called ``model``) out of a checkpoint.

    Both spellings of the attention weights are accepted (``to_q`` or ``query``, as matrix or as 1x1
    convolution), encoder keys are ignored, a ``vae.`` in front of every name is dropped, f16 and bf16
    are widened to f32 (exact). Raises `InputError` for a file that is no safetensors archive, and
    names every kind of misfit: missing, unexpected, given twice, of another shape or element type.
    """
    check_file(path)
    with _opened(path) as archive:
        sources, problems = _examine(archive, expected)
        if problems:
            raise InputError(_misfit(path, model, problems))
        stored = {name: archive.get_tensor(sources[name]) for name in expected}
        dtypes = Counter(str(tensor.dtype).removeprefix("torch.") for tensor in stored.values())
        # One at a time, so that narrow and widened weights are not in memory together.
        tensors = {name: stored.pop(name).float().reshape(shape) for name, shape in expected.items()}
    return Checkpoint(tensors, tuple(_widened(path, dtypes)))


def fits(path: Path, expected: Mapping[str, Shape]) -> bool:
    """Whether `normalise_checkpoint` would find exactly ``expected`` in this safetensors file."""
    with _opened(path) as archive:
        return not _examine(archive, expected)[1]


def check_file(path: Path) -> None:
    """Raise `InputError` unless ``path`` is an existing ``.safetensors`` file."""
    if not path.exists():
        raise InputError(f"no parameter file {path}")
    if path.suffix != ".safetensors" or not path.is_file():
        raise InputError(
            f"{path} given as the parameters of a built-in model, a .safetensors file expected "
            "(other checkpoint formats are pickles, which numtrace never loads)"
        )


@contextmanager
def _opened(path: Path) -> Iterator[Any]:
    from safetensors import SafetensorError, safe_open

    try:
        with safe_open(path, framework="pt") as archive:
            yield archive
    except (SafetensorError, OSError) as error:
        raise InputError(
            f"{path} is no whole .safetensors file ({error}): download or copy it again"
        ) from error


def _examine(archive: Any, expected: Mapping[str, Shape]) -> tuple[dict[str, str], list[str]]:
    """Parameter name → key in the file; and every way in which the file does not hold ``expected``."""
    sources, problems = _match_names(list(archive.keys()))
    for name, shape in expected.items():
        if name in sources:
            problems += _compare(archive.get_slice(sources[name]), sources[name], name, shape)
        else:
            problems.append(f"missing: {name} {list(shape)}")
    for name, key in sources.items():
        if name not in expected:
            problems.append(f"unexpected: {key} {archive.get_slice(key).get_shape()}")
    return sources, problems


def _match_names(keys: list[str]) -> tuple[dict[str, str], list[str]]:
    """Parameter name → key in the file, without the ignored ones; and the names given twice."""
    if any(key.startswith(_PREFIX) for key in keys):
        keys = [key for key in keys if key.startswith(_PREFIX)]
    sources: dict[str, str] = {}
    problems = []
    for key in keys:
        name = key.removeprefix(_PREFIX)
        if name.startswith(_IGNORED):
            continue
        if old := _ATTENTION.fullmatch(name):
            name = f"{old['block']}.{_OLD_ATTENTION[old['role']]}.{old['kind']}"
        if name in sources:
            problems.append(f"given twice: {sources[name]} and {key}")
        sources[name] = key
    return sources, problems


def _compare(stored: Any, key: str, name: str, expected: Shape) -> list[str]:
    shape, dtype = tuple(stored.get_shape()), stored.get_dtype()
    if _ATTENTION_WEIGHT.fullmatch(name) and shape[2:] == (1, 1):
        shape = shape[:2]
    if shape != expected:
        return [f"another shape: {key} is {list(stored.get_shape())}, {list(expected)} expected"]
    if dtype not in _DTYPES:
        return [f"another element type: {key} is {dtype}, one of {', '.join(_DTYPES)} expected"]
    return []


def _misfit(path: Path, model: str, problems: list[str]) -> str:
    counts = Counter(problem.split(":")[0] for problem in problems)
    kinds = ", ".join(f"{count} {kind}" for kind, count in counts.items())
    listed = [problem for kind in counts for problem in _of(kind, problems)[:_LISTED]]
    rest = len(problems) - len(listed)
    lines = "".join(f"\n  {problem}" for problem in listed) + (f"\n  and {rest} more" if rest else "")
    return f"the parameters in {path} do not fit {model} ({kinds}):{lines}"


def _of(kind: str, problems: list[str]) -> list[str]:
    return [problem for problem in problems if problem.startswith(f"{kind}:")]


def _widened(path: Path, dtypes: Counter[str]) -> list[str]:
    names = {"float16": "f16", "bfloat16": "bf16"}
    return [
        f"{count} parameters of {path.name} widened from {names[dtype]} to f32 (exact)"
        for dtype, count in sorted(dtypes.items())
        if dtype in names
    ]
