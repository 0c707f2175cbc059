"""The cells of an experiment: every combination of a policy, factors and a seed; each is one replay and one row.

A cell depends only on its own inputs, so cells run in any order, on any number of processes, and give the same bytes.
All cells of one seed replay the same jobs: differences between policies are paired.
"""

from __future__ import annotations

import dataclasses
import hashlib
import itertools
import json
import os
from dataclasses import dataclass, field
from functools import cache
from pathlib import Path
from typing import TYPE_CHECKING, Any

import numpy as np

from gpuctl import __version__
from gpuctl.core.file_io import MOST_SMALL, read_whole
from gpuctl.core.plugins import split_file
from gpuctl.replay.inputs import clusters, transforms
from gpuctl.replay.models.node_failures import FailureOptions
from gpuctl.replay.policies import label, origin
from gpuctl.replay.results import comparison, failures
from gpuctl.replay.results.intervals import stretches
from gpuctl.replay.results.metrics import summary
from gpuctl.replay.run import replay

if TYPE_CHECKING:
    from collections.abc import Iterator, Mapping, Sequence

    from gpuctl.replay.models.records import Cluster, Outcome, Workload


FIGURES = 4
"""Version of the figures, raised whenever they change, so that older saved cells are not reused."""
OF_FAILURES = ("failures", "checkpoint")
"""Factors that are attributes of `gpuctl.replay.models.node_failures.FailureOptions`."""
STRETCHES = "stretches"
"""Name of the number of independent stretches of a replay: `gpuctl.replay.results.intervals.stretches`."""
UNCHANGED = ("unchanged_s", "vs_unchanged_s", "vs_unchanged_low_s", "vs_unchanged_high_s", "unchanged_stretches")
"""Figures of a cell in addition to those of a replay: see `_against_unchanged`."""


@dataclass(frozen=True)
class Cell:
    """One replay of an experiment.

    Attributes:
        policy: as ``--policy`` names it.
        params: its parameters as texts; those that vary are also in `factors`.
        factors: what varies, by name: ``scale_load``, ``add_nodes``, ``failures``, ``checkpoint``,
            ``POLICY.PARAMETER``; values as texts.
        seed: of the jobs that are drawn, and of stochastic policies.
    """

    policy: str
    params: tuple[tuple[str, str], ...]
    factors: tuple[tuple[str, str], ...]
    seed: int


@dataclass(frozen=True)
class Base:
    """Common inputs of all cells.

    Attributes:
        workload: the trace's jobs.
        cluster: the nodes.
        models: other arguments of `gpuctl.replay.run.replay`: overhead, placement, rates and so on, without the seed.
        resample: how a seed resamples the trace's jobs: ``days`` and ``weeks`` draw these
            (`gpuctl.replay.inputs.transforms.bootstrap`), ``users`` by users, ``none`` takes them as they are.
        warmup: share of the jobs that only fill the cluster.
        unchanged: the base without the change that all cells have, for comparison; it has none itself. None: no
            comparison.
        changed: whether something is changed in all of them.
        own_params: parameters of an unchanged policy, by its label; others have those of the cell.
        replayed: outcomes of unchanged cells of one seed, for the cells to come.
    """

    workload: Workload
    cluster: Cluster
    models: dict[str, Any]
    resample: str
    warmup: float = 0.0
    unchanged: Base | None = None
    changed: bool = False
    own_params: dict[str, dict[str, str]] = field(default_factory=dict)
    replayed: dict[Cell, Outcome] = field(default_factory=dict, compare=False)

    def digest(self) -> str:
        """A digest of all inputs: saved cells are valid for the same base only."""
        made = hashlib.sha256()
        before = None if self.unchanged is None else self.unchanged.digest()
        parts = (self.workload, self.cluster, self.models, self.resample, self.warmup, before, self.own_params)
        for part in (*parts, __version__, FIGURES):
            _feed(made, part)
        return made.hexdigest()

    def changes(self, cell: Cell) -> bool:
        """Whether a cell differs from its unchanged one."""
        if self.unchanged is None:
            return False
        return self.changed or changed_factors(cell) != () or unchanged_cell(self, cell).params != cell.params


def plan(
    policies: Sequence[tuple[str, Mapping[str, str]]],
    factors: Mapping[str, Sequence[str]],
    seeds: Sequence[int],
) -> list[Cell]:
    """Return all combinations, policies innermost and seeds outermost.

    Args:
        policies: as `gpuctl.replay.run.replay` takes them.
        factors: the values of each; those of a parameter, ``LABEL.NAME``, vary for that policy alone.
        seeds: at least one.
    """
    shared = {name: tuple(of) for name, of in factors.items() if "." not in name}
    cells = []
    for seed in seeds:
        for values in itertools.product(*shared.values()):
            common = tuple(zip(shared, values, strict=True))
            for name, params in policies:
                own = {key: of for key, of in factors.items() if key.partition(".")[0] == label(name) and "." in key}
                for chosen in itertools.product(*own.values()):
                    varied = tuple(zip(own, chosen, strict=True))
                    whole = dict(params) | {key.partition(".")[2]: value for key, value in varied}
                    cells.append(Cell(name, tuple(sorted(whole.items())), (*common, *varied), seed))
    return cells


def run(base: Base, cell: Cell) -> dict[str, Any]:
    """Replay one cell and return its figures: the columns of ``replay_summary``, `STRETCHES` and `UNCHANGED`.

    Raises:
        UsageError: a factor's value makes no sense.
        InputError: the jobs cannot be replayed.
    """
    workload, cluster = _changed(base, cell)
    outcome = _replayed(base, cell, workload, cluster)
    figures = summary(outcome, workload, cluster, warmup=base.warmup) | {STRETCHES: stretches([outcome])}
    if base.models.get("failures") is not None or any(name in OF_FAILURES for name, _ in cell.factors):
        figures |= failures.figures(outcome, cluster)
    if base.unchanged is None:
        return figures
    if not base.changes(cell):
        _keep(base, unchanged_cell(base, cell), outcome)
        return figures | dict.fromkeys(UNCHANGED)
    return figures | _against_unchanged(base, cell, outcome)


def unchanged_cell(base: Base, cell: Cell) -> Cell:
    """Return the cell of `Base.unchanged` that a cell is compared with: same policy and seed, no change."""
    own = base.own_params.get(label(cell.policy))
    kept = tuple((name, value) for name, value in cell.factors if name in OF_FAILURES)
    return Cell(cell.policy, cell.params if own is None else tuple(sorted(own.items())), kept, cell.seed)


def changed_factors(cell: Cell) -> tuple[tuple[str, str], ...]:
    """The factors that change jobs or nodes."""
    return tuple(
        (name, value)
        for name, value in cell.factors
        if (name == "scale_load" and transforms.load_factor(value) != 1) or (name == "add_nodes" and value != "0")
    )


def _against_unchanged(base: Base, cell: Cell, outcome: Outcome) -> dict[str, float | None]:
    """Mean wait unchanged, the difference, the ends of its interval job by job, and the stretches that both hold."""
    before, same = base.unchanged, unchanged_cell(base, cell)
    if before is None:
        return dict.fromkeys(UNCHANGED)
    workload, cluster = _changed(before, same)
    if same not in base.replayed:
        _keep(base, same, _replayed(before, same, workload, cluster))
    other = base.replayed[same]
    frame = comparison.against(outcome, other, workload, name="unchanged", warmup=base.warmup)
    [row] = frame.filter(measure="wait", size_bucket=comparison.ALL).to_dicts()
    names = ("baseline_mean_s", "diff_mean_s", "diff_low_s", "diff_high_s")
    return dict(zip(UNCHANGED, (*(row[name] for name in names), stretches([outcome, other])), strict=True))


def _keep(base: Base, cell: Cell, outcome: Outcome) -> None:
    """Cache an outcome for other cells of its seed; outcomes of other seeds are dropped."""
    for other in [other for other in base.replayed if other.seed != cell.seed]:
        del base.replayed[other]
    base.replayed[cell] = outcome


def _replayed(base: Base, cell: Cell, workload: Workload, cluster: Cluster) -> Outcome:
    models = dict(base.models)
    given = {name: value for name, value in cell.factors if name in OF_FAILURES}
    if given:
        models["failures"] = dataclasses.replace(models.get("failures") or FailureOptions("0"), **given)
    [outcome] = replay(workload, cluster, [(cell.policy, dict(cell.params))], seed=cell.seed, processes=1, **models)
    return outcome


def _changed(base: Base, cell: Cell) -> tuple[Workload, Cluster]:
    workload, cluster = base.workload, base.cluster
    if base.resample == "users":
        workload = transforms.bootstrap_users(workload, cell.seed)
    elif base.resample != "none":
        workload = transforms.bootstrap(workload, workload.size, cell.seed, weeks=base.resample == "weeks")
    for name, value in cell.factors:
        if name == "scale_load":
            workload = transforms.scale_load(workload, transforms.load_factor(value))
        elif name == "add_nodes" and value != "0":
            cluster = clusters.add_nodes(cluster, value)
    return workload, cluster


def _feed(made: hashlib._Hash, value: object) -> None:
    """Add a value to a digest with its structure, so that different values never coincide."""
    made.update(type(value).__name__.encode())
    if dataclasses.is_dataclass(value) and not isinstance(value, type):
        for one in dataclasses.fields(value):
            made.update(one.name.encode())
            if one.name not in {"notes"}:
                _feed(made, getattr(value, one.name))
    elif isinstance(value, np.ndarray):
        made.update(f"{value.dtype.str}{value.shape}".encode())
        made.update(np.ascontiguousarray(value).tobytes() if value.dtype != object else repr(value.tolist()).encode())
    elif isinstance(value, dict):
        for key in value:
            _feed(made, key)
            _feed(made, value[key])
    elif isinstance(value, list | tuple):
        made.update(str(len(value)).encode())
        if all(isinstance(one, str | int | float | bool | None) for one in value):
            made.update(json.dumps(value).encode())
        else:
            for one in value:
                _feed(made, one)
    else:
        made.update(repr(value).encode())


def key(base_digest: str, cell: Cell) -> str:
    """Return the key of a cell's saved figures: a digest of all its inputs, including the files that it names.

    Imports of a policy's own file are not included.
    """
    made = hashlib.sha256(base_digest.encode())
    _feed(made, cell)
    made.update(origin(cell.policy.partition("=")[2] or cell.policy).encode())
    for path in _files(cell):
        made.update(str(path).encode())
        made.update(_content(path, path.stat().st_mtime_ns))
    return made.hexdigest()


def _files(cell: Cell) -> Iterator[Path]:
    """The files that a cell names: a policy's own, its configuration, and limits of ``limits_from``."""
    for text in (cell.policy, cell.policy.partition("=")[2]):
        file = split_file(text)
        if file is not None and file[0].is_file():
            yield file[0]
    params = dict(cell.params)
    for part in filter(None, params.get("conf", "").split(os.pathsep)):
        path = Path(part)
        yield from sorted(one for one in path.rglob("*") if one.is_file()) if path.is_dir() else [path]
    for part in params.get("limits_from", "").split(","):
        yield from (path for path in (Path(part), Path(part.rpartition(":")[0])) if path.is_file())


@cache
def _content(path: Path, changed_ns: int) -> bytes:
    """A digest of a file; of a large one, which no configuration is, only of size and time."""
    size = path.stat().st_size
    if size > MOST_SMALL:
        return f"{size} {changed_ns}".encode()
    return hashlib.sha256(read_whole(path)).digest()
