"""An experiment as a TOML file: jobs, nodes, policies with parameters, factors, and measures.

docs/how-to/replay.md documents the format. Errors name file, key and expected value.
"""

from __future__ import annotations

from dataclasses import dataclass
from typing import TYPE_CHECKING, Any

from gpuctl.core.errors import InputError, UsageError
from gpuctl.core.file_io import parse_toml, read_whole
from gpuctl.core.suggestions import meant
from gpuctl.replay.experiments.factors import values
from gpuctl.replay.experiments.table import MEASURES

if TYPE_CHECKING:
    from collections.abc import Mapping
    from pathlib import Path

BLOCKS = ("days", "weeks", "users", "none")
_KEYS = (
    "input", "cluster", "inference", "inference_load", "policies", "factors", "seeds", "blocks", "measures", "baseline",
)  # fmt: skip
_POLICY_KEYS = ("policy", "label", "params")
_FACTORS = ("scale_load", "add_nodes", "failures", "checkpoint")
_MOST_BYTES = 1 << 20
_HINT = "docs/how-to/replay.md#an-experiment-file has an example"


@dataclass(frozen=True)
class ListedPolicy:
    """One policy of a file.

    Attributes:
        name: as ``--policy`` has it, with its label.
        label: its name in the result.
        params: the values of each of its parameters, as texts; one or more.
        place: its position in the file, for errors.
    """

    name: str
    label: str
    params: dict[str, tuple[str, ...]]
    place: str


@dataclass(frozen=True)
class ExperimentFile:
    """The content of a file; None for absent keys.

    Attributes:
        path: the file.
        inputs: jobs, relative to the file unless their paths are absolute.
        cluster: nodes, as ``--cluster`` has them.
        inference: nodes that can be lent, as ``--inference`` has them.
        inference_load: number of them that are idle over time, a CSV relative to the file.
        policies: at least one.
        factors: the values of each, as texts.
        seeds: likewise.
        blocks: how seeds draw jobs, one of `BLOCKS`.
        measures: figures of ``replay_summary`` to show and draw.
        baseline: a label.
    """

    path: Path
    inputs: tuple[Path, ...]
    cluster: str | None
    inference: str | None
    inference_load: Path | None
    policies: tuple[ListedPolicy, ...]
    factors: dict[str, tuple[str, ...]]
    seeds: tuple[str, ...]
    blocks: str | None
    measures: tuple[str, ...]
    baseline: str | None


def read(path: Path) -> ExperimentFile:
    """Read an experiment's file.

    Raises:
        InputError: it is not what it should be.
    """
    data = read_whole(path, most=_MOST_BYTES, begins=b"", hint=_HINT)
    found = parse_toml(data, str(path), hint=_HINT)
    of = _Reader(str(path))
    of.known(found, _KEYS, "")
    cluster = of.text(found, "cluster")
    if cluster is not None and cluster.endswith(".toml"):
        cluster = str(path.parent / cluster)
    load = of.text(found, "inference_load")
    policies = tuple(_policy(of, each, number) for number, each in enumerate(of.tables(found, "policies"), 1))
    if not policies:
        raise of.wrong("policies", "nothing", 'at least one [[policies]] with policy = "fifo"')
    factors = of.table(found, "factors", "")
    if "add_servers" in factors:  # its name until version 0.2
        factors = {"add_nodes" if key == "add_servers" else key: value for key, value in factors.items()}
    of.known(factors, _FACTORS, "factors.")
    blocks = of.one_of(found, "blocks", BLOCKS)
    labels = [each.label for each in policies]
    twice = next((each for each in labels if labels.count(each) > 1), None)
    if twice is not None:
        raise of.wrong("policies", f"{twice!r} twice", 'a label = "..." for one of them')
    return ExperimentFile(
        path=path,
        inputs=tuple(path.parent / each for each in of.texts(found, "input")),
        cluster=cluster,
        inference=of.text(found, "inference"),
        inference_load=None if load is None else path.parent / load,
        policies=policies,
        factors={key: of.several(factors, key, f"factors.{key}") for key in factors},
        seeds=of.several(found, "seeds", "seeds") if "seeds" in found else (),
        blocks=blocks,
        measures=tuple(of.among(each, MEASURES, "measures") for each in of.texts(found, "measures")),
        baseline=None if "baseline" not in found else of.one_of(found, "baseline", tuple(labels)),
    )


def _policy(of: _Reader, found: Mapping[str, Any], number: int) -> ListedPolicy:
    place = f"policies[{number}]"
    of.known(found, _POLICY_KEYS, f"{place}.")
    name, label = of.text(found, "policy", f"{place}."), of.text(found, "label", f"{place}.")
    if name is None or "," in name:
        raise of.wrong(f"{place}.policy", repr(name) if name else "nothing", "the name of one policy")
    params = of.table(found, "params", f"{place}.")
    return ListedPolicy(
        name if label is None else f"{label}={name}",
        label or name,
        {key: of.params(value, f"{place}.params.{key}") for key, value in params.items()},
        place,
    )


class _Reader:
    """Reads typed values from a file, and raises errors on others."""

    def __init__(self, path: str) -> None:
        self._path = path

    def wrong(self, key: str, found: str, expected: str) -> InputError:
        return InputError(f"{key}: found {found}, expected {expected}", path=self._path, hint=_HINT)

    def known(self, found: Mapping[str, Any], keys: tuple[str, ...], before: str) -> None:
        strange = next((key for key in found if key not in keys), None)
        if strange is not None:
            raise InputError(
                f"{before}{strange}: no such key; expected {', '.join(keys)}",
                path=self._path,
                hint=meant(strange, keys, _HINT),
            )

    def text(self, found: Mapping[str, Any], key: str, before: str = "") -> str | None:
        value = found.get(key)
        if value is not None and (not isinstance(value, str) or not value.strip()):
            raise self.wrong(f"{before}{key}", repr(value)[:80], "a text")
        return value

    def texts(self, found: Mapping[str, Any], key: str) -> tuple[str, ...]:
        value = found.get(key, [])
        made = [value] if isinstance(value, str) else value
        if not isinstance(made, list) or not all(isinstance(each, str) and each for each in made):
            raise self.wrong(key, repr(value)[:80], "a text, or an array of texts")
        return tuple(made)

    def table(self, found: Mapping[str, Any], key: str, before: str) -> dict[str, Any]:
        value = found.get(key, {})
        if not isinstance(value, dict):
            raise self.wrong(f"{before}{key}", repr(value)[:80], f"a table, [{before}{key}]")
        return value

    def tables(self, found: Mapping[str, Any], key: str) -> list[dict[str, Any]]:
        value = found.get(key, [])
        if not isinstance(value, list) or not all(isinstance(each, dict) for each in value):
            raise self.wrong(key, repr(value)[:80], f"tables, [[{key}]]")
        return value

    def several(self, found: Mapping[str, Any], key: str, name: str) -> tuple[str, ...]:
        """Values of a factor: a list in a text as on the command line, a number, or an array."""
        value = found[key]
        if isinstance(value, str):
            try:
                return values(value, name)
            except UsageError as error:
                raise InputError(error.message, path=self._path, hint=error.hint) from None
        return self.params(value, name)

    def params(self, value: object, name: str) -> tuple[str, ...]:
        """The values of a parameter: several in an array, else one."""
        every = value if isinstance(value, list) else [value]
        if not every:
            raise self.wrong(name, "an empty array", "at least one value")
        bad = next((each for each in every if not isinstance(each, str | int | float)), None)
        if bad is not None:
            raise self.wrong(name, repr(bad)[:80], "a text, a number, true or false, or an array of them")
        made = [str(each).lower() if isinstance(each, bool) else str(each) for each in every]
        return tuple(dict.fromkeys(made))

    def one_of(self, found: Mapping[str, Any], key: str, known: tuple[str, ...]) -> str | None:
        value = self.text(found, key)
        return None if value is None else self.among(value, known, key)

    def among(self, value: str, known: tuple[str, ...], key: str) -> str:
        if value not in known:
            raise InputError(
                f"{key}: found {value!r}, expected one of {', '.join(known)}",
                path=self._path,
                hint=meant(value, known, _HINT),
            )
        return value
