"""What other people's simulators did with real Philly jobs, job for job.

The cases are in ``shared/oracles``, beside the checkout; each folder's README says what its peer does. Two peers end a
job one second late, or demote it one GPU-second late: the tests make the same mistake for them, see `LATE` and the
limits. ``gavel_rounds_TOLERANCE`` is no case here but in the tests of ``max-min``: its shares are one of many
solutions of a linear program. pyss goes through its queue once for each event, gpuctl once for each instant unless
it is told otherwise; where limits are the true run times both come to the same.
"""

from __future__ import annotations

import csv
import dataclasses
import math
from bisect import bisect_right
from typing import TYPE_CHECKING

import numpy as np
import pytest

from gpuctl.replay.inputs.clusters import parse_cluster
from gpuctl.replay.inputs.job_csv import read_jobs
from gpuctl.replay.order.order_kernel import gittins
from tests.replay_reference import Attempts, Job, LevelLists, Live, Preemptive, attempts, cluster, simulate, workload
from tests.replay_reference import gittins as gittins_by_definition

if TYPE_CHECKING:
    from collections.abc import Sequence
    from pathlib import Path

    from gpuctl.replay.models.records import Workload

LATE = 1.0
"""Helios and Lucid end every job a second late (their READMEs): its work is a second longer here."""

SMALL, LARGE = ("philly_1k_g128", "pool:128"), ("philly_10k_g512", "pool:512")
ON_16, ON_64 = ("philly_1k_g128_n16x8", "16x8"), ("philly_10k_g512_n64x8", "64x8")
BOTH = (SMALL, LARGE)
HELIOS = ("helios", LATE)
LUCID = ("lucid", LATE)
FREE = ("none", 0.0)
LEVELS = {"limits": "3250,7200", "order": "list", "promote": "0"}
# Lucid demotes above 18 000 GPU-s, gpuctl at the limit; service is whole GPU-seconds there
TWO_QUEUES = {"limits": "18001", "order": "submit", "promote": "0", "round": "60"}
EXACT = [
    *(("fifo_strict", case, "fifo", {}, FREE, None) for case in BOTH),
    *(("fifo_skip", case, "fifo-skip", {}, FREE, None) for case in BOTH),
    *(("sjf_strict", case, "sjf", {}, FREE, None) for case in BOTH),
    *(("sjf_skip", case, "sjf", {"skip": "true"}, FREE, None) for case in BOTH),
    *(("srtf_free", case, "srtf", {}, FREE, None) for case in BOTH),
    ("srsf_gputime_free", SMALL, "srsf", {}, FREE, None),
    *(("srtf_overhead_helios", case, "srtf", {"ties": "waiting"}, HELIOS, None) for case in BOTH),
    *(("srtf_overhead_lucid", case, "srtf", {"ties": "waiting"}, LUCID, None) for case in BOTH),
    ("las_mlfq_time", SMALL, "tiresias", {**LEVELS, "service": "time"}, FREE, None),
    *(("las_2q_60s_overhead_lucid", case, "tiresias", TWO_QUEUES, LUCID, None) for case in BOTH),
    *(("fifo_strict_consolidate", case, "fifo", {}, FREE, "consolidate") for case in (ON_16, ON_64)),
    ("sjf_strict_consolidate", ON_16, "sjf", {}, FREE, "consolidate"),
    ("easy_backfill_pyss", (f"{SMALL[0]}_exact", SMALL[1]), "easy", {}, FREE, None),
    *(
        ("easy_backfill_pyss", (f"{SMALL[0]}_{limits}", SMALL[1]), "easy", {"passes": "event"}, FREE, None)
        for limits in ("exact", "coarse")
    ),
    # any GPUs will do: on nodes as on a pool
    ("easy_backfill_pyss", (f"{SMALL[0]}_exact", ON_16[1]), "easy", {}, FREE, None),
]
Times = dict[str, tuple[float, float]]


@pytest.fixture(scope="module")
def oracles(root: Path) -> Path:
    folder = root.parent / "shared" / "oracles"
    if not folder.is_dir():
        pytest.skip(f"{folder} is not there: the results of other simulators are not part of the repository")
    return folder


def told(path: Path) -> Times:
    with path.open(encoding="utf-8", newline="") as file:
        return {row["job_id"]: (float(row["start"]), float(row["finish"])) for row in csv.DictReader(file)}


def times(work: Workload, found: Attempts) -> Times:
    return {name: (rows[0][0], rows[-1][1]) for name, rows in zip(work.ids, found, strict=True)}


def as_jobs(work: Workload) -> list[Job]:
    rows = zip(work.submit, work.segment_s, work.gpus, strict=True)
    return [Job(int(submit), int(duration), int(gpus)) for submit, duration, gpus in rows]


def differences(expected: Times, found: Times) -> dict[str, float]:
    """Seconds by which the worse of start and finish is off, by job, where it is."""
    assert found.keys() == expected.keys()
    off = {job: max(abs(a - b) for a, b in zip(expected[job], found[job], strict=True)) for job in expected}
    return {job: seconds for job, seconds in off.items() if seconds}


@pytest.mark.parametrize(
    ("folder", "case", "policy", "params", "cost", "placement"),
    EXACT,
    ids=["-".join([e[0], *e[1], *e[3].values()]) for e in EXACT],
)
def test_job_for_job(
    oracles: Path,
    folder: str,
    case: tuple[str, str],
    policy: str,
    params: dict[str, str],
    cost: tuple[str, float],
    placement: str | None,
) -> None:
    name, nodes = case
    work = read_jobs(oracles / folder / f"{name}_input.csv")
    work = dataclasses.replace(work, segment_s=work.segment_s + cost[1])
    done = simulate(work, parse_cluster(nodes, work), policy, params, cost=cost[0], placement=placement)
    found = done.outcome().jobs.select("job", "start_s", "end_s").iter_rows()
    expected = told(oracles / folder / f"{name}_expected.csv")
    assert differences(expected, {job: (start, end) for job, start, end in found}) == {}


def test_one_pass_for_each_instant_ends_some_jobs_at_other_times(oracles: Path) -> None:
    folder = oracles / "easy_backfill_pyss"
    work = read_jobs(folder / "philly_1k_g128_coarse_input.csv")
    expected = told(folder / "philly_1k_g128_coarse_expected.csv")
    # with a pass for each event there is no difference: `EXACT`
    once = attempts(simulate(work, parse_cluster("pool:128", work), "easy"))
    assert len(differences(expected, times(work, once))) == 153


def too_late(live: Live, limit: int) -> int:
    """The Tiresias authors' formula for the next demotion, which takes seconds for GPU-seconds."""
    return math.floor((limit - live.ran) / live.job.gpus)


@pytest.fixture(scope="module")
def mistaken(oracles: Path) -> tuple[Workload, Times]:
    folder = oracles / "las_mlfq_gputime_tiresias_bug"
    return read_jobs(folder / "philly_1k_g128_input.csv"), told(folder / "philly_1k_g128_expected.csv")


def test_the_mistake_of_the_authors_simulator_is_the_only_difference(mistaken: tuple[Workload, Times]) -> None:
    work, expected = mistaken
    wrong = Preemptive(as_jobs(work), 128, LevelLists(3), limits=(3250, 7200), late=too_late).run()
    assert differences(expected, times(work, wrong)) == {}
    right = Preemptive(as_jobs(work), 128, LevelLists(3), limits=(3250, 7200)).run()
    off = differences(expected, times(work, right))
    # the figures of the oracle's README
    assert (len(off), max(off.values())) == (9, 21)
    ours = simulate(work, parse_cluster("pool:128", work), "tiresias", {**LEVELS, "tick": "1"})
    assert attempts(ours) == right


class AuthorsGittins(LevelLists):
    """Levels sorted by the table of the Tiresias authors' simulator, which rounds and sums S where S - a is meant."""

    def __init__(self, levels: int, samples: Sequence[int], more: int) -> None:
        super().__init__(levels)
        self.samples = sorted(samples)
        self.table = [self._index(s - 1, more) for s in self.samples]

    def _index(self, a: int, more: int) -> float:
        data, n = self.samples, len(self.samples)
        k, end = bisect_right(data, a), n - 1 if a + more > data[-1] - 1 else bisect_right(data, a + more)
        share = round((end - k) / (n - k), 5)
        return round(1_000_000 * share / ((sum(data[k:end]) + more * (n - end)) // (n - k)), 4)

    def _rank(self, live: Live) -> float:
        at = bisect_right(self.samples, live.service(by_gpus=True))
        return self.table[at] if at < len(self.table) else 0.0

    def order(self) -> list[Live]:
        for jobs in self.lists:
            jobs.sort(key=lambda live: (self._rank(live), -live.job.submit), reverse=True)
        return super().order()


def test_the_gittins_table_of_the_authors_simulator(oracles: Path) -> None:
    folder = oracles / "gittins_mlfq"
    work = read_jobs(folder / "philly_1k_g128_input.csv")
    with (folder / "gittins_distribution.csv").open(encoding="utf-8", newline="") as file:
        samples = [int(row["duration"]) for row in csv.DictReader(file)]
    order = AuthorsGittins(3, samples, 3250)
    found = Preemptive(as_jobs(work), 128, order, limits=(3250, 7200), late=too_late).run()
    assert differences(told(folder / "philly_1k_g128_expected.csv"), times(work, found)) == {}


@pytest.mark.parametrize(
    ("attained", "more", "index"), [(0, 2, 2 / 7), (2, 2, 0.25), (2, 8, 0.25), (4, 4, 0.25), (8, 4, 0)]
)
def test_gittins_index_of_the_specification(attained: int, more: int, index: float) -> None:
    # vectors 20.1: samples 1, 2, 4, 8; the authors' formula, which sums S for S - a, gives .2857, .1667, .0833, 0
    assert index_of([1, 2, 4, 8], attained, more) == pytest.approx(index, abs=1e-12)


def index_of(samples: list[int], attained: float, more: float) -> float:
    data = np.sort(np.array(samples, np.float64))
    above = np.append(np.add.accumulate(data[::-1])[::-1], 0.0)
    return float(gittins(data, above, float(attained), float(more)))


def test_gittins_index_is_its_definition() -> None:
    rng = np.random.default_rng(4)
    for _ in range(300):
        samples = sorted(rng.integers(1, 40, rng.integers(1, 12)).tolist())
        attained, more = int(rng.integers(0, 45)), [float(rng.integers(1, 20)), math.inf][int(rng.integers(2))]
        expected = float(gittins_by_definition(samples, attained, more))
        assert index_of(samples, attained, more) == pytest.approx(expected, rel=1e-12)


def test_next_demotion_of_the_specification() -> None:
    # vector 20.2: limit 3 250 GPU-s, 4 GPUs, 500 s of run time: in 312.5 s (the authors' formula: 688 s)
    work = workload([Job(0, 10_000, 4), Job(500, 10, 4)])
    params = {"limits": "3250", "promote": "0"}
    waits, _ = attempts(simulate(work, cluster([4], work, pool=True), "tiresias", params))
    # the second job, of the first queue, gets the GPUs when the first one leaves that queue
    assert waits[0] == (0, 812.5)
