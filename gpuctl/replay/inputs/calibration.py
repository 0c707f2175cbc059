"""The result of ``gpuctl calibrate`` as a small TOML file, written there and read by what-ifs."""

from __future__ import annotations

import math
import re
from dataclasses import dataclass, field
from typing import TYPE_CHECKING, Any

from gpuctl.core.errors import InputError
from gpuctl.core.file_io import parse_toml, read_whole

if TYPE_CHECKING:
    from pathlib import Path

_MOST_BYTES = 1 << 20
_HINT = "gpuctl calibrate writes such a file; docs/how-to/calibrate.md has an example"
_BARE = re.compile(r"[A-Za-z0-9_-]+", re.ASCII)


@dataclass(frozen=True)
class Calibration:
    """The rules with which a replay comes closest to a trace.

    Attributes:
        policy: its name.
        params: parameters that are not its defaults, as ``--param`` takes them.
        quotas: GPUs of queues; queues not listed have no quota.
        locality: whether scattered jobs run slower.
        fitted: share of the jobs, in order of submission, that the rules were fitted to.
        scores: figures of the calibration, for readers: numbers and texts.
    """

    policy: str
    params: dict[str, str] = field(default_factory=dict)
    quotas: dict[str, float] = field(default_factory=dict)
    locality: bool = False
    fitted: float = 0.0
    scores: dict[str, str | float] = field(default_factory=dict)

    def toml(self) -> str:
        """Return the text of the file."""
        lines = ["# written by gpuctl calibrate; gpuctl replay --calibrated takes it", ""]
        lines += [f"policy = {_text(self.policy)}", f"locality = {str(self.locality).lower()}"]
        lines += [f"fitted = {_number(self.fitted)}"]
        for name, table in (("params", self.params), ("quotas", self.quotas), ("scores", self.scores)):
            lines += ["", f"[{name}]"]
            lines += [
                f"{_key(key)} = {_text(value) if isinstance(value, str) else _number(value)}"
                for key, value in table.items()
            ]
        return "\n".join(lines) + "\n"


def _key(key: str) -> str:
    return key if _BARE.fullmatch(key) else _text(key)


def _number(value: float) -> str:
    return repr(int(value)) if float(value).is_integer() else repr(float(value))


def _text(value: str) -> str:
    escaped = value.replace("\\", "\\\\").replace('"', '\\"')
    return '"' + "".join(c if c.isprintable() else f"\\U{ord(c):08x}" for c in escaped) + '"'


def read_calibration(path: Path) -> Calibration:
    """Read what `Calibration.toml` has written.

    Raises:
        InputError: it is not such a file.
    """
    found = parse_toml(read_whole(path, most=_MOST_BYTES, begins=b"", hint=_HINT), str(path), hint=_HINT)
    policy, fitted = found.get("policy"), found.get("fitted", 0.0)
    if not isinstance(policy, str) or not policy:
        raise _wrong(path, "policy", policy, "the name of a policy")
    if isinstance(fitted, bool) or not isinstance(fitted, int | float) or not 0 <= fitted < 1:
        raise _wrong(path, "fitted", fitted, "a share of the jobs, at least 0 and less than 1")
    if not isinstance(found.get("locality", False), bool):
        raise _wrong(path, "locality", found["locality"], "true or false")
    params = _table(path, found, "params")
    quotas = _table(path, found, "quotas")
    for key, value in quotas.items():
        if isinstance(value, bool) or not isinstance(value, int | float) or not (value > 0 and math.isfinite(value)):
            raise _wrong(path, f"quotas.{key}", value, "a number of GPUs above 0")
    for key, value in params.items():
        if not isinstance(value, str | int | float):
            raise _wrong(path, f"params.{key}", value, "a text, a number, true or false")
    return Calibration(
        policy,
        {key: str(value).lower() if isinstance(value, bool) else str(value) for key, value in params.items()},
        {key: float(value) for key, value in quotas.items()},
        locality=found.get("locality", False),
        fitted=float(fitted),
        scores=_table(path, found, "scores"),
    )


def _table(path: Path, found: dict[str, Any], key: str) -> dict[str, Any]:
    table = found.get(key, {})
    if not isinstance(table, dict):
        raise _wrong(path, key, table, "a table")
    return table


def _wrong(path: Path, key: str, found: object, expected: str) -> InputError:
    return InputError(f"{key} is {found!r}; expected {expected}", path=str(path), hint=_HINT)
