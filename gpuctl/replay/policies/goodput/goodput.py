"""Sia and Pollux: in rounds, GPUs go to jobs so that the sum of what their goodput is worth is largest."""

from __future__ import annotations

import math
from typing import TYPE_CHECKING, Any, ClassVar

import numpy as np

from gpuctl.compiled.bundles import records
from gpuctl.core.errors import InputError, UsageError
from gpuctl.core.notes import NamedValue, note
from gpuctl.replay.contract.policy import Parameter, Policy
from gpuctl.replay.engine.program import CompiledProgram
from gpuctl.replay.models.traits import in_line
from gpuctl.replay.order.order import rest_of
from gpuctl.replay.policies.elastic import common
from gpuctl.replay.policies.goodput import goodput_kernel
from gpuctl.replay.policies.goodput.choice_kernel import Choice
from gpuctl.replay.policies.goodput.model import TENTHS, App, apps_of, counts, nodes_of, read_apps, reference
from gpuctl.replay.policies.goodput.options_kernel import MOST_GPUS, POOL
from gpuctl.replay.policies.goodput.search_kernel import POPULATION, SEARCH, Search

if TYPE_CHECKING:
    from collections.abc import Mapping

    from numpy.typing import NDArray

    from gpuctl.compiled.jit import Loop
    from gpuctl.core.notes import Note
    from gpuctl.replay.engine.program import Program
    from gpuctl.replay.engine.setup import Settings
    from gpuctl.replay.engine.state import State
    from gpuctl.replay.models.records import Cluster, Floats, Ints, Workload

MOST_STATES = 2_000_000
"""Ways in which so many GPUs of each group can be free: the exact choice looks at no more."""

INTERVAL = Parameter("interval", 60.0, "seconds from one round to the next", least=1.0)
EXPLORE = Parameter("explore", True, "a job may have at most twice the GPUs with which it has made progress so far")
APPS = Parameter("apps", "", "CSV of the applications' speeds by GPU type; empty: those that gpuctl brings")
NOISE = Parameter("noise", "", "CSV of the applications' noise scales and restarts; empty: those that gpuctl brings")


class _Goodput(Policy):
    oracle = True
    preempts = True
    run: ClassVar[Loop | None] = goodput_kernel.run
    own_models: ClassVar[Mapping[str, Note]] = {
        "speed": note(
            "the policy's own: goodput of each application on each GPU type and number of GPUs, at which a job alone "
            "on its gang takes its run time"
        ),
        "preemption overhead": note("the policy's own: its restart time at every start and change"),
    }
    kind: ClassVar[dict[str, float]]

    def seconds(self, app: App) -> tuple[float, float]:
        """Seconds of a restart, and of the penalty for one, of an application."""
        raise NotImplementedError

    def program(self, workload: Workload, cluster: Cluster, settings: Settings, state: State) -> Program:
        """See `Policy.program`.

        Raises:
            UsageError: a placement is asked for, or the cluster is too large for an exact choice.
            InputError: the tables of applications cannot be read, or have one that runs on no number of GPUs.
        """
        common.begin(self.name, state, settings)
        known = read_apps(self.params["apps"], self.params["noise"])
        names, derived = apps_of(workload, known)
        groups = _Groups(
            workload, state, cluster, [*next(iter(known.values())).on], pollux=bool(self.kind.get("pollux"))
        )
        p = records(1, goodput_kernel.GOODPUT)
        p.explore = self.params["explore"]
        for name, value in self.kind.items():
            p[name] = value
        for name in ("power", "no_alloc"):
            p[name] = self.params.get({"power": "p"}.get(name, name), 0.0)
        p.tables = groups.fair_gpus
        size, most = workload.size, groups.options + 2
        about = self._about(workload, state, known, names, groups)
        keys = (int(about.kind.max(initial=0)) + 1) * TENTHS * (MOST_GPUS + 1)
        memory = goodput_kernel.Goodput(
            p=p,
            about=about,
            rest=rest_of(workload),
            goodput=groups.goodput(known),
            fair=groups.fair(known),
            count=groups.count,
            size=groups.size,
            first_node=groups.first_node,
            node=groups.node,
            free=state.nodes.size,
            at_node=2 * cluster.total_gpus + 1,
            at_gpus=2 * cluster.total_gpus + 1,
            line=size,
            moving=size,
            owner=size,
            core=size,
            keys=keys,
            head=keys,
            tail=keys,
            size_of=keys,
            before=size,
            after=size,
            place=np.full(keys, -1),
            made=POOL,
            listed=POOL,
            in_group=POOL * most,
            of_gpus=POOL * most,
            gain=POOL * most,
            power=POOL * most,
            plain=POOL * most,
        )
        some, each = size * most, groups.size.size
        choice = Choice(
            first=size + 1, jobs_of=size, best=size, most=size, sure=size, take=size, twin=size, group=some, gpus=some,
            cost=some, open=some, many=some, room=each, used=each, price=each, slope=some, weight=some, core=size,
            pick=size,
        )  # fmt: skip
        genetic = self.params.get("search") == "ga"
        found = records(1, SEARCH)
        found.on, found.draw = genetic, 1 + settings.seed % (2**31 - 2)
        shape = (2 * POPULATION, size) if genetic else (1, 1)
        search = Search(
            p=found, kept=shape, option=shape, cost=shape[0], order=shape[0], now=size, nothing=size, free=each
        )
        state.g.span = self.params["interval"]
        state.g.paced = 1
        return CompiledProgram(
            goodput_kernel.run,
            (memory, choice, search),
            goodput_kernel.GOODPUT_REASONS,
            self._notes(workload, derived, groups),
            slow_as_python=genetic,
        )

    def _about(self, workload: Workload, state: State, known: dict[str, App], names: list[str], groups: _Groups) -> Any:
        """What is known of each job; sets what the simulation charges for changes."""
        about = records(workload.size, goodput_kernel.ABOUT)
        numbers = {name: number for number, name in enumerate(known)}
        about.place = in_line(workload)
        about.app = [numbers[name] for name in names]
        about.whole = workload.true_run_time
        about.restart, about.penalty = np.array([self.seconds(known[name]) for name in names]).reshape(-1, 2).T
        about.cap = MOST_GPUS if workload.max_gpus is None else np.minimum(workload.max_gpus, MOST_GPUS)
        about.restarts, about.group, about.until = -1, -1, -np.inf
        units: dict[tuple[str, int], float] = {}
        for job, key in enumerate(zip(names, workload.gpus.tolist(), strict=True)):
            if key not in units:
                units[key] = groups.unit(known[key[0]], *key)
            about.unit[job] = units[key]
        jobs = state.jobs
        about.mask = jobs.mask
        kinds = np.stack([about.app.astype(np.uint64), jobs.mask])
        about.kind = np.unique(kinds, axis=1, return_inverse=True)[1].reshape(-1)
        common.bounds(state, np.ones(workload.size, np.int64), np.maximum(about.cap, 1))
        jobs.move, jobs.suspend, jobs.resume, jobs.charge = about.restart, 0.0, 0.0, 0.0
        return about

    def _notes(self, workload: Workload, derived: int, groups: _Groups) -> tuple[Note, ...]:
        found = [
            note(
                "speeds are the policy's own: goodput of each application by GPU type; a start or change holds GPUs "
                "for its restart time; --rates, --speeds and --overhead do not matter"
            )
        ]
        if derived:
            found.append(
                note(
                    "applications of {n:,} of {all:,} job{all||s} are derived from GPU-hours, not from the input",
                    n=derived,
                    all=workload.size,
                )
            )
        if groups.unknown:
            found.append(
                note(
                    "GPUs whose type is not in the table of applications count as {kind}",
                    kind=NamedValue("value", groups.first),
                )
            )
        return tuple(found)


class Sia(_Goodput):
    """Every `interval` seconds each job gets the type and number of GPUs that are best for all, by goodput^p."""

    name = "sia"
    title = "in rounds, types and numbers of GPUs by goodput, solved exactly; jobs grow, shrink and move"
    source = (
        "Jayaram Subramanya et al., Sia, SOSP 2023, by its authors' simulator (siasosp23/artifacts; no licence, none "
        "of it is used): the program of section 3 with p -0.5 and lambda 1.1; ties, places, the grid of batches and "
        "speeds known from the start: ours"
    )
    kind: ClassVar[dict[str, float]] = {}
    parameters = (
        INTERVAL,
        Parameter("restart", -1.0, "seconds that a start or change holds GPUs without progress, of every job; -1: as "
                  "its application has it", least=-1.0),
        Parameter("p", -0.5, "power of a job's goodput over its least", least=-10.0, most=-1e-3),
        Parameter("no_alloc", 1.1, "what a job without GPUs costs, for one on its least goodput"),
        EXPLORE, APPS, NOISE,
    )  # fmt: skip

    def seconds(self, app: App) -> tuple[float, float]:
        """See `_Goodput.seconds`."""
        restart = self.params["restart"]
        return (app.restart_s, app.penalty_s) if restart < 0 else (restart, restart)


class Pollux(_Goodput):
    """Every `interval` seconds each job gets the number of GPUs best for all, by speedup over the fair share."""

    name = "pollux"
    title = "in rounds, numbers of GPUs by goodput over the fair share, solved exactly; jobs grow and shrink"
    source = (
        "Qiao et al., Pollux, OSDI 2021, by its authors' simulator (petuum/adaptdl, osdi21-artifact, Apache-2.0): the "
        "objective with p -1, over numbers of GPUs that always fit, in place of an unseeded genetic search: ours"
    )
    kind: ClassVar[dict[str, float]] = {"pollux": 1}
    parameters = (
        INTERVAL,
        Parameter("restart", 30.0, "seconds that a start or change holds GPUs without progress"),
        Parameter("search", "exact", "how numbers of GPUs are chosen: exact, the best sum of costs; ga, a genetic "
                  "search like its authors', from --seed", ("exact", "ga")),
        EXPLORE, APPS, NOISE,
    )  # fmt: skip

    def seconds(self, app: App) -> tuple[float, float]:
        """See `_Goodput.seconds`."""
        del app
        return self.params["restart"], self.params["restart"]


class _Groups:
    """Nodes of one type, size and use, in the order of the cluster.

    Attributes:
        size: GPUs of a node, shape (groups,).
        kinds: the GPU type of each in the tables.
        first: the type of nodes without a type.
        unknown: some node has a type that the tables lack.
        node: node numbers, one group after the other.
        first_node: where each group begins there, shape (groups + 1,).
        count: numbers of GPUs that a job may have, shape (groups, counts), filled up with 0.
        options: how many those are.
        fair_gpus: the most GPUs of a fair share that goodputs are needed for; 0: none.
    """

    def __init__(self, workload: Workload, state: State, cluster: Cluster, kinds: list[str], *, pollux: bool) -> None:
        key = np.stack([state.nodes.cls, state.nodes.cap], axis=1)
        _, first, group = np.unique(key, axis=0, return_index=True, return_inverse=True)
        order = np.argsort(first)
        number = np.empty(order.size, np.int64)
        number[order] = np.arange(order.size)
        group = number[group.reshape(-1)]
        self.size: Ints = np.asarray(state.nodes.cap, np.int64)[first[order]]
        self.node = np.argsort(group, kind="stable").astype(np.int64)
        self.first_node = np.searchsorted(group[self.node], np.arange(order.size + 1)).astype(np.int64)
        nodes = np.diff(self.first_node)
        if math.prod((self.size * nodes + 1).tolist()) > MOST_STATES:
            raise UsageError(
                f"the exact choice of {'pollux' if pollux else 'sia'} looks at each number of free GPUs of each "
                f"kind of node: at most {MOST_STATES:,} ways, and this cluster has more",
                hint="replay fewer nodes, or fewer kinds of them",
            )
        self.first = kinds[0]
        named = cluster.gpu_types or workload.gpu_types
        types = cluster.gpu_type[first[order]].tolist()
        names = ["" if kind < 0 else named[kind] for kind in types]
        self.unknown = any(name and name not in kinds for name in names)
        self.kinds = [name if name in kinds else self.first for name in names]
        if pollux:
            self.kinds = [self.kinds[0]] * len(self.kinds)
        of = [counts(*pair) for pair in zip(self.size.tolist(), nodes.tolist(), strict=True)]
        self.count = np.zeros((len(of), max(map(len, of))), np.int64)
        for t, each in enumerate(of):
            self.count[t, : len(each)] = each
        self.options = sum(map(len, of))
        self.total = int(self.size[0] * nodes[0])
        self.fair_gpus = int(cluster.total_gpus) if pollux else 0

    def goodput(self, known: dict[str, App]) -> NDArray[np.float64]:
        """Of each application on each count of each group, at each tenth of its work."""
        found = np.zeros((len(known), *self.count.shape, TENTHS))
        for a, app in enumerate(known.values()):
            for (t, k), gpus in np.ndenumerate(self.count):
                if gpus:
                    speeds = app.on[self.kinds[t]]
                    found[a, t, k] = speeds.goodput(int(gpus), nodes_of(int(gpus), int(self.size[t])), app.noise)
        return found

    def fair(self, known: dict[str, App]) -> Floats:
        """Goodput on every number of GPUs of the first group's type, for fair shares."""
        found = np.zeros((len(known), self.fair_gpus + 1, TENTHS))
        for a, app in enumerate(known.values()):
            for gpus in range(1, self.fair_gpus + 1):
                nodes = nodes_of(gpus, int(self.size[0]))
                found[a, gpus] = app.on[self.kinds[0]].goodput(gpus, nodes, app.noise)
        return found

    def unit(self, app: App, name: str, gang: int) -> float:
        """Seconds of work that a second at goodput 1 does: alone on its gang a job takes its run time."""
        found = reference(app, self.kinds[0], gang, int(self.size[0]), self.total)
        if found[0] <= 0:
            raise InputError(
                f"app {name!r} runs on no number of GPUs up to {gang}",
                hint="its batches do not fit: see init_batch, max_batch, min_local and max_local in apps",
            )
        return float((0.1 / found).sum())
