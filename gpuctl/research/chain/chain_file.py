"""The file of a chain: its jobs and its settings."""

from __future__ import annotations

import re
import tomllib
from dataclasses import dataclass
from pathlib import Path
from typing import Any

from gpuctl.core.errors import InputError
from gpuctl.core.file_io import read_whole

_NAME = re.compile(r"[A-Za-z0-9_-]{1,60}")
_NOWHERE = ("-a", "--array", "-M", "--clusters", "-W", "--wait")
"""Options refused, also in a script: a chain needs one ID per job, in this cluster, from an sbatch that returns."""
_OURS = (*_NOWHERE, "-J", "--job-name", "--comment", "-d", "--dependency", "--parsable", "--wrap")
_FLAGS = "HhkOQsvV"
"""Short options of sbatch without a value; others may follow in the same word."""
MOST_SCRIPT = 4 << 20
_HINT = "docs/research/chain.md has an example"
MOST_BYTES = 1 << 20


@dataclass(frozen=True)
class ChainSpec:
    """A chain of jobs.

    Attributes:
        name: name of the chain; prefix of its jobs' names.
        script: that each job runs.
        options: options of sbatch for each job.
        jobs: number of jobs.
        outage_cost: cost of an hour of interruption, in hours of overlap.
        lead_s: seconds before P's end at which S is submitted without a forecast.
        nodes: nodes of the partition; None: the model's.
        go_on: whether the chain goes on after a job that has failed.
    """

    name: str
    script: Path
    options: tuple[str, ...]
    jobs: int
    outage_cost: float
    lead_s: int
    nodes: int | None
    go_on: bool


def read_chain_file(path: Path) -> ChainSpec:
    """Read the file of a chain.

    Raises:
        InputError: it is no such file; with the expected form.
    """

    def wrong(text: str) -> InputError:
        return InputError(text, path=str(path), hint=_HINT)

    try:
        document = tomllib.loads(read_whole(path, most=MOST_BYTES, hint=_HINT).decode("utf-8"))
    except (UnicodeDecodeError, tomllib.TOMLDecodeError) as error:
        raise wrong(f"cannot be read as TOML: {str(error)[:200]}") from error
    known = {"name", "script", "options", "jobs", "outage_cost", "lead_min", "nodes", "on_failure"}
    strange = sorted(document.keys() - known)
    if strange:
        raise wrong(f"has an unknown key {strange[0][:40]!r}; known: {', '.join(sorted(known))}")
    name, script, options = document.get("name"), document.get("script"), document.get("options", [])
    if not isinstance(name, str) or not _NAME.fullmatch(name):
        raise wrong("name: expected 1 to 60 letters, digits, - or _")
    if not isinstance(script, str) or not (path.parent / script).is_file():
        raise wrong("script: expected the path of a batch script, from the folder of this file")
    if not isinstance(options, list) or not all(isinstance(word, str) and word.startswith("-") for word in options):
        raise wrong('options: expected a list of options of sbatch, as "--nodes=1"')
    for word in options:
        if _is_one(word, _OURS):
            raise wrong(f"options: {word[:40]} is set by gpuctl, or no chain can do with it")
    for word in _in_script(path.parent / script):
        if _is_one(word, _NOWHERE):
            raise wrong(f"script: {script[:80]} has #SBATCH {word[:40]}, with which no chain can do")
    on_failure = document.get("on_failure", "stop")
    if on_failure not in {"stop", "go on"}:
        raise wrong('on_failure: expected "stop" or "go on"')
    return ChainSpec(
        name, (path.parent / script).resolve(), tuple(options),
        _number(document, "jobs", None, 1, 10_000, wrong), float(_number(document, "outage_cost", 1, 0.01, 100, wrong)),
        60 * _number(document, "lead_min", 0, 0, 43_200, wrong),
        None if "nodes" not in document else _number(document, "nodes", None, 1, 10**6, wrong), on_failure == "go on",
    )  # fmt: skip


def _is_one(word: str, options: tuple[str, ...]) -> bool:
    """Whether sbatch would read a word as one of these options; long names may be abbreviated."""
    if word.startswith("--"):
        name = word.split("=", maxsplit=1)[0]
        return len(name) > 2 and any(option.startswith(name) for option in options)
    return word.startswith("-") and "-" + word[1:].lstrip(_FLAGS)[:1] in options


def _in_script(path: Path) -> list[str]:
    """Options in a script's #SBATCH lines, which end at the first command."""
    found: list[str] = []
    for line in read_whole(path, most=MOST_SCRIPT, hint=_HINT).decode("utf-8", "replace").splitlines():
        if line.startswith("#SBATCH"):
            found += line.removeprefix("#SBATCH").partition(" #")[0].split()
        elif line.strip() and not line.startswith("#"):
            break
    return found


def _number(  # noqa: PLR0917 - like a row of a table
    document: dict[str, Any], name: str, default: int | None, low: float, high: float, wrong: Any
) -> Any:
    found = document.get(name, default)
    kinds = (int, float) if name == "outage_cost" else (int,)
    if not isinstance(found, kinds) or isinstance(found, bool) or not low <= found <= high:
        raise wrong(f"{name}: expected a number from {low:g} to {high:g}")
    return found
