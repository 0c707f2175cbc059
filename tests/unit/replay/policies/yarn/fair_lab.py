"""Replays recordings of Hadoop's FairScheduler: each of its containers is a job, each of its applications an app."""

from __future__ import annotations

import csv
import gzip
import io
from dataclasses import dataclass
from pathlib import Path
from typing import TYPE_CHECKING, cast

import numpy as np

from gpuctl.replay.engine.setup import Settings
from gpuctl.replay.engine.simulation import Simulation
from gpuctl.replay.models.preemption_cost import overhead
from gpuctl.replay.models.records import Cluster, Workload
from gpuctl.replay.models.speed import rates
from gpuctl.replay.policies import find

if TYPE_CHECKING:
    from gpuctl.replay.policies.yarn.fair_build import FairProgram

FIXTURES = Path(__file__).resolve().parents[4] / "fixtures" / "yarnsched"


@dataclass(frozen=True)
class Scenario:
    """A recording: ``events`` and ``shares`` are rows by column name."""

    folder: Path
    workload: Workload
    cluster: Cluster
    apps: tuple[str, ...]
    events: list[dict[str, str]]
    shares: list[dict[str, str]]


def table(path: Path) -> list[dict[str, str]]:
    """The rows of a CSV, gzipped or not."""
    data = path.read_bytes()
    text = (gzip.decompress(data) if path.suffix == ".gz" else data).decode()
    return list(csv.DictReader(io.StringIO(text)))


def read(name: str) -> Scenario:
    """Read a recording; run times of masters, which hold as long as their applications, are the recorded ones."""
    folder = FIXTURES / name
    nodes, rows = table(folder / "nodes.csv"), table(folder / "workload.csv")
    events = table(folder / "events.csv.gz")
    hosts = [row["node"] for row in nodes]
    ids, app, submit, seconds, gpus, cpus, mem, queue, user = [], [], [], [], [], [], [], [], []
    wanted: list[list[int]] = []
    queues = sorted({row["queue"] for row in rows})
    users = sorted({row["user"] for row in rows})
    for number, row in enumerate(rows):
        sizes = [(int(row["gpus"]), int(row["vcores"]), int(row["mb"]))] * int(row["containers"])
        times = [int(row["duration_ms"]) / 1000] * int(row["containers"])
        if int(row["am_mb"]):
            sizes.insert(0, (0, 1, int(row["am_mb"])))
            times.insert(0, _master_s(events, row["app"]))
        for k, (size, time) in enumerate(zip(sizes, times, strict=True)):
            ids.append(f"{row['app']}.{k}")
            app.append(number)
            submit.append(int(row["submit_ms"]) / 1000)
            seconds.append(time)
            gpus.append(size[0])
            cpus.append(size[1])
            mem.append(size[2])
            queue.append(queues.index(row["queue"]))
            user.append(users.index(row["user"]))
            wanted.append([hosts.index(host) for host in row["hosts"].split()])
    n = len(ids)
    workload = Workload(
        name=name,
        ids=tuple(ids),
        submit=np.array(submit),
        eligible=np.array(submit),
        gpus=np.array(gpus),
        queue=np.array(queue),
        user=np.array(user),
        time_limit=np.full(n, np.nan),
        gpu_type=np.full(n, -1),
        app=np.array(app),
        depends=np.zeros((0, 2), np.int64),
        segment_start=np.arange(n + 1),
        segment_s=np.array(seconds, float),
        segment_fails=np.zeros(n, bool),
        recorded_start=np.full(n, np.nan),
        piece_start=np.concatenate([[0], np.cumsum([len(w) for w in wanted])]),
        piece_node=np.array([host for w in wanted for host in w], np.int64),
        piece_gpus=np.ones(sum(len(w) for w in wanted), np.int64),
        state=("",) * n,
        queues=tuple(queues),
        users=tuple(users),
        gpu_types=(),
        cpus=np.array(cpus, float),
        mem_mb=np.array(mem, float),
    )
    racks = sorted({row["rack"] for row in nodes})
    cluster = Cluster(
        name=name,
        nodes=tuple(hosts),
        gpus=np.array([int(row["gpus"]) for row in nodes]),
        rack=np.array([racks.index(row["rack"]) for row in nodes]),
        gpu_type=np.full(len(nodes), -1),
        racks=tuple(racks),
        pool=False,
        quota=np.full(len(queues), np.inf),
        cpus=np.array([float(row["vcores"]) for row in nodes]),
        mem_mb=np.array([float(row["mb"]) for row in nodes]),
    )
    shares = table(folder / "shares.csv.gz")
    return Scenario(folder, workload, cluster, tuple(row["app"] for row in rows), events, shares)


def _master_s(events: list[dict[str, str]], app: str) -> float:
    mine = [e for e in events if e["app"] == app]
    start = next(e for e in mine if e["event"] == "allocate" and e["detail"] == "AM")
    end = next(e for e in mine if e["event"] == "release" and e["container"] == start["container"])
    return (int(end["ms"]) - int(start["ms"])) / 1000


def settings(workload: Workload, cluster: Cluster) -> Settings:
    """Settings in which nothing but the scheduler counts."""
    return Settings(
        rates=rates("recorded", workload, cluster),
        overhead=overhead("none", workload, cluster),
        resources=("gpu", "cpu", "mem"),
    )


def simulation(scenario: Scenario, **params: str) -> Simulation:
    """The replay of a recording, before its first instant: its own configuration, updates each 0.5 s."""
    given = {"conf": str(scenario.folder), "update_interval": "0.5", "locality": "recorded", **params}
    if any(e["detail"] == "AM" for e in scenario.events):
        given["masters"] = "first"
    policy = find("yarn-fair")(given)
    return Simulation(scenario.workload, scenario.cluster, policy, settings(scenario.workload, scenario.cluster))


def recorded_allocations(scenario: Scenario) -> list[tuple[int, str, str]]:
    """Each container given: ms, application, node."""
    return sorted((int(e["ms"]), e["app"], e["node"]) for e in scenario.events if e["event"] == "allocate")


def replayed_allocations(scenario: Scenario, done: Simulation) -> list[tuple[int, str, str]]:
    """The same of a replay; the driver's heartbeats are a millisecond after ours, which begin at 0."""
    s = done.state
    found = []
    for row in s.attempts[: int(s.g[0].attempts)]:
        node = s.pieces[int(row.first)].node
        app = scenario.apps[int(scenario.workload.app[row.job])]
        found.append((int(row.start * 1000 + 1e-3) + 1, app, scenario.cluster.nodes[int(node)]))
    return sorted(found)


def as_hash_tables(scenario: Scenario, done: Simulation) -> None:
    """Look for victims in the order of Hadoop's hash tables, in which it goes through nodes and their containers.

    Nodes: the order of the HashMap of node ids as the recordings show it. Containers: hash codes of the classes
    ContainerId, ApplicationAttemptId and ApplicationId, in a table of 16 buckets, backwards.
    """
    program = cast("FairProgram", done.program)
    own = program.own
    if len(scenario.cluster.nodes) == 4:
        own.search[:] = [3, 1, 2, 0]
    numbers = 200
    turn = np.zeros((own.apps.size, numbers), np.int64)
    for a in range(own.apps.size):
        for number in range(numbers):
            turn[a, number] = -_bucket(a + 1, number)
    program.own = own.replace(turn=turn)


def _bucket(application: int, container: int) -> int:
    def whole(value: int) -> int:
        return value & 0xFFFFFFFF

    stamp = 1_700_000_000_000
    of_app = whole(371237 * whole(371237 * 6521 + whole(stamp ^ (stamp >> 32))) + application)
    of_attempt = whole(347671 * whole(347671 * 5501 + of_app) + 1)
    found = whole(31 * container + of_attempt)
    return (found ^ (found >> 16)) & 15


def fair_shares(scenario: Scenario, done: Simulation) -> list[tuple[int, str, tuple[int, ...]]]:
    """Go to the end, and note each queue's fair share at each second that the recording has: ms, queue, share."""
    program = cast("FairProgram", done.program)
    found = []
    for ms in sorted({int(row["ms"]) for row in scenario.shares}):
        while done.advance(ms / 1000):
            pass
        for row in scenario.shares:
            if int(row["ms"]) == ms:
                share = program.own.q_fair[program.queues.index(row["queue"])]
                found.append((ms, row["queue"], tuple(int(part) for part in share)))
    return found


def recorded_shares(scenario: Scenario) -> list[tuple[int, str, tuple[int, ...]]]:
    """The same as recorded."""
    parts = ("due_mb", "due_vcores", "due_gpus")
    return [(int(r["ms"]), r["queue"], tuple(int(r[part]) for part in parts)) for r in scenario.shares]
