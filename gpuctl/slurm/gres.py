"""GPUs in Slurm's generic resources: ``gpu:a100:4(IDX:0-3)``, ``gpu:v100:4(S:0-1)``, ``gres/gpu:a100=8``."""

from __future__ import annotations

import re
from typing import NamedTuple

MOST_GPUS = 100_000
"""More GPUs than this of one machine or one limit are taken for a fault of the text."""
_MOST_INDEX = 1023
_NONE = frozenset({"", "(null)", "N/A", "n/a", "none"})
_ENTRY = re.compile(r"([\w.+-]+)(?::([^():=,\s]+(?::[^():=,\s]+)*))?(?:\(([^()]*)\))?", re.ASCII)
_COUNT = re.compile(r"(\d{1,9})([KkMm]?)", re.ASCII)
_SPAN = re.compile(r"(\d{1,4})(?:-(\d{1,4}))?", re.ASCII)


class Gpus(NamedTuple):
    """The GPUs of one machine.

    Attributes:
        gpus: number of GPUs.
        gpu_type: Slurm's name of the type; several are joined by commas, None if unstated.
        indices: sorted indices; None if unstated or if a type has none.
    """

    gpus: int
    gpu_type: str | None
    indices: tuple[int, ...] | None


def read_gres(text: str) -> Gpus:
    """Parse the GPUs in a list of generic resources; others (``mps``, ``shard``) are skipped.

    ``(null)`` and the empty text mean 0 GPUs.

    Raises:
        ValueError: it is not such a list, or has an absurd number.
    """
    if text.strip() in _NONE:
        return Gpus(0, None, None)
    count, types, known = 0, [], True
    indices: list[int] = []
    for item in split_outside(text.strip()):
        # Slurm prints a GPU without a type as gpu:(null):3
        entry = _ENTRY.fullmatch(item.strip().replace(":(null):", ":", 1))
        if entry is None:
            raise ValueError("no generic resource: expected NAME[:TYPE]:COUNT")
        if entry[1] != "gpu":
            continue
        kind, number, listed = _entry(entry)
        count += number
        if kind:
            types.append(kind)
        if number:
            known = known and listed is not None
            indices += listed or ()
    if count > MOST_GPUS:
        raise ValueError(f"more than {MOST_GPUS} GPUs")
    sure = known and len(set(indices)) == len(indices) == count and count > 0
    return Gpus(count, ",".join(dict.fromkeys(types)) or None, tuple(sorted(indices)) if sure else None)


def read_tres(text: str) -> dict[str | None, float]:
    """Parse the GPUs of trackable resources, e.g. ``cpu=64,gres/gpu=8,gres/gpu:a100=8``.

    Returns:
        GPUs by type, with the total under None if the text has one; -1 lifts a limit and is left out.

    Raises:
        ValueError: a number of GPUs is invalid.
    """
    found: dict[str | None, float] = {}
    for item in text.split(","):
        name, sign, value = item.strip().partition("=")
        if not sign or (name != "gres/gpu" and not name.startswith("gres/gpu:")):
            continue
        if value == "-1":
            continue
        number = _COUNT.fullmatch(value)
        if number is None:
            raise ValueError("gres/gpu is not a whole number")
        if number[2] or int(number[1]) > MOST_GPUS:
            raise ValueError(f"more than {MOST_GPUS} GPUs")
        found[name.partition(":")[2] or None] = float(number[1])
    return found


def split_outside(text: str) -> list[str]:
    """Split at commas outside brackets and parentheses."""
    items, start, depth = [], 0, 0
    for mark in re.finditer(r"[\[\](),]", text):
        if mark[0] in "[(":
            depth += 1
        elif mark[0] in "])":
            depth -= 1
        elif depth <= 0:
            items.append(text[start : mark.start()])
            start = mark.end()
    return [*items, text[start:]]


def _entry(entry: re.Match[str]) -> tuple[str | None, int, list[int] | None]:
    """Return type, count and indices of one ``gpu…`` entry; without a count it is one GPU, as in Slurm."""
    parts = [part for part in (entry[2] or "").split(":") if part and part != "no_consume"]
    number = _COUNT.fullmatch(parts[-1]) if parts else None
    inside = entry[3] or ""
    listed = _indices(inside.removeprefix("IDX:")) if inside.startswith("IDX:") else None
    if number is None:
        # old `scontrol show job -d` writes GRES_IDX=gpu:a100(IDX:0-3): the indices are the count
        return ":".join(parts) or None, len(listed) if listed is not None else 1, listed
    if number[2]:
        raise ValueError(f"more than {MOST_GPUS} GPUs")
    return ":".join(parts[:-1]) or None, int(number[1]), listed


def _indices(text: str) -> list[int] | None:
    if text in {"N/A", ""}:
        return []
    found: list[int] = []
    for piece in text.split(","):
        span = _SPAN.fullmatch(piece.strip())
        if span is None or int(span[2] or span[1]) > _MOST_INDEX or int(span[1]) > int(span[2] or span[1]):
            raise ValueError(f"GPU indices (IDX) are not numbers up to {_MOST_INDEX}")
        found += range(int(span[1]), int(span[2] or span[1]) + 1)
    return found
