"""The recordings of Hadoop's schedulers (tests/fixtures/yarnsched) as workloads, and what a replay makes of them."""

from __future__ import annotations

import csv
import gzip
from dataclasses import dataclass
from pathlib import Path
from typing import TYPE_CHECKING

import numpy as np

from gpuctl.replay.engine.setup import Settings
from gpuctl.replay.engine.simulation import Simulation
from gpuctl.replay.models.preemption_cost import overhead
from gpuctl.replay.models.records import Cluster, Workload
from gpuctl.replay.models.speed import rates
from gpuctl.replay.policies import find

if TYPE_CHECKING:
    from gpuctl.replay.models.records import Outcome

FIXTURES = Path(__file__).resolve().parents[4] / "fixtures" / "yarnsched"
PHASE_S = 0.001
"""The driver's nodes beat a millisecond after their turn."""


@dataclass(frozen=True)
class Recorded:
    """One scenario.

    Attributes:
        name: of its folder.
        workload: each container a job, ``app/number``, with its master (``app/am``) first.
        cluster: its nodes.
        events: rows of events.csv.
        limit_s: when the run was cut off; inf.
    """

    name: str
    workload: Workload
    cluster: Cluster
    events: list[dict[str, str]]
    limit_s: float

    @property
    def folder(self) -> Path:
        """Where its configuration is."""
        return FIXTURES / self.name


def rows(name: str, table: str) -> list[dict[str, str]]:
    """A table of a scenario."""
    packed = FIXTURES / name / f"{table}.csv.gz"
    if packed.exists():
        with gzip.open(packed, "rt", encoding="utf-8", newline="") as file:
            return list(csv.DictReader(file))
    with (FIXTURES / name / f"{table}.csv").open(encoding="utf-8", newline="") as file:
        return list(csv.DictReader(file))


def read(name: str, *, user_by_app: bool = False) -> Recorded:
    """A scenario as a workload.

    Args:
        name: of its folder.
        user_by_app: each application has a user of its own, so that priorities can be given by user.
    """
    events, apps, nodes = rows(name, "events"), rows(name, "workload"), rows(name, "nodes")
    racks = list(dict.fromkeys(node["rack"] for node in nodes))
    places = {node["node"]: k for k, node in enumerate(nodes)}
    cluster = Cluster(
        name=name,
        nodes=tuple(places),
        gpus=np.array([int(node["gpus"]) for node in nodes]),
        rack=np.array([racks.index(node["rack"]) for node in nodes]),
        gpu_type=np.full(len(nodes), -1),
        racks=tuple(racks),
        pool=False,
        quota=np.full(len({app["queue"] for app in apps}), np.inf),
        cpus=np.array([float(node["vcores"]) for node in nodes]),
        mem_mb=np.array([float(node["mb"]) for node in nodes]),
    )
    masters = _masters(events)
    jobs: list[tuple[float, int, str, float, tuple[int, int, int], list[int]]] = []
    for number, app in enumerate(apps):
        submit = int(app["submit_ms"]) / 1000
        if int(app["am_mb"]):
            jobs.append((submit, number, f"{app['app']}/am", masters[app["app"]], (int(app["am_mb"]), 1, 0), []))
        size = (int(app["mb"]), int(app["vcores"]), int(app["gpus"]))
        hosts = [places[host] for host in app["hosts"].split()]
        jobs += [
            (submit, number, f"{app['app']}/{k}", int(app["duration_ms"]) / 1000, size, hosts)
            for k in range(int(app["containers"]))
        ]
    queues = list(dict.fromkeys(app["queue"] for app in apps))
    users = list(dict.fromkeys(app["app" if user_by_app else "user"] for app in apps))
    n, owner = len(jobs), [apps[job[1]] for job in jobs]
    counts = np.array([len(job[5]) for job in jobs])
    limit = [line for line in (FIXTURES / name / "yarn-site.xml").read_text("utf-8").splitlines() if "limit-ms" in line]
    work = Workload(
        name=name,
        ids=tuple(job[2] for job in jobs),
        submit=np.array([job[0] for job in jobs]),
        eligible=np.array([job[0] for job in jobs]),
        gpus=np.array([job[4][2] for job in jobs]),
        queue=np.array([queues.index(app["queue"]) for app in owner]),
        user=np.array([users.index(app["app" if user_by_app else "user"]) for app in owner]),
        time_limit=np.full(n, np.nan),
        gpu_type=np.full(n, -1),
        app=np.array([job[1] for job in jobs]),
        depends=np.zeros((0, 2), np.int64),
        segment_start=np.arange(n + 1),
        segment_s=np.array([job[3] for job in jobs]),
        segment_fails=np.zeros(n, bool),
        recorded_start=np.full(n, np.nan),
        piece_start=np.concatenate([[0], np.cumsum(counts)]).astype(np.int64),
        piece_node=np.array([host for job in jobs for host in job[5]], np.int64),
        piece_gpus=np.ones(int(counts.sum()), np.int64),
        state=("",) * n,
        queues=tuple(queues),
        users=tuple(users),
        gpu_types=(),
        cpus=np.array([float(job[4][1]) for job in jobs]),
        mem_mb=np.array([float(job[4][0]) for job in jobs]),
    )
    stop = float(limit[0].partition("<value>")[2].partition("<")[0]) / 1000 if limit else np.inf
    return Recorded(name, work, cluster, events, stop)


def _masters(events: list[dict[str, str]]) -> dict[str, float]:
    """Seconds that each master's container ran; to the last event where it did not end."""
    begin = {row["app"]: int(row["ms"]) for row in events if row["event"] == "allocate" and row["detail"] == "AM"}
    first = {row["app"]: row["container"] for row in events if row["event"] == "allocate" and row["detail"] == "AM"}
    ends = {row["container"]: int(row["ms"]) for row in events if row["event"] == "release"}
    last = 2 * int(events[-1]["ms"])
    return {app: (ends.get(first[app], last) - ms) / 1000 for app, ms in begin.items()}


def start(recorded: Recorded, policy: str, params: dict[str, str]) -> Simulation:
    """A scenario under a policy, before its first instant."""
    settings = Settings(
        rates("recorded", recorded.workload, recorded.cluster),
        overhead("none", recorded.workload, recorded.cluster),
        resources=("gpu", "cpu", "mem"),
    )
    return Simulation(recorded.workload, recorded.cluster, find(policy)(params), settings)


def replay(recorded: Recorded, policy: str, params: dict[str, str]) -> Simulation:
    """Run a scenario under a policy, up to where it was cut off."""
    simulation = start(recorded, policy, params)
    while simulation.advance(until=recorded.limit_s):
        pass
    return simulation


Given = tuple[int, str, str]
"""A container: when it was given (ms), to which application, on which node."""


def given_recorded(recorded: Recorded) -> list[Given]:
    """The containers of a recording, in order; masters are ``app/am``."""
    return [
        (int(row["ms"]), row["app"] + ("/am" if row["detail"] == "AM" else ""), row["node"])
        for row in recorded.events
        if row["event"] == "allocate"
    ]


def given_replayed(recorded: Recorded, outcome: Outcome) -> list[Given]:
    """The containers of a replay, in order."""
    starts = outcome.attempts["start_s"].to_list()
    place = dict(outcome.pieces.select("row", "node").rows())
    found = []
    for row, (job, start) in enumerate(zip(outcome.attempts["job"].to_list(), starts, strict=True)):
        app, _, number = recorded.workload.ids[job].partition("/")
        name = f"{app}/am" if number == "am" else app
        found.append((round(start * 1000), name, recorded.cluster.nodes[place[row]]))
    return found


def released(recorded: Recorded) -> list[tuple[int, str, str]]:
    """What was killed in a recording: when (ms), of which application, on which node; sorted."""
    return sorted(
        (int(row["ms"]), row["app"], row["node"])
        for row in recorded.events
        if row["event"] == "release" and row["detail"] == "preempted"
    )
