"""A year in monthly exports with days of overlap, loaded in any order, gives the tables of one export of the year."""

from __future__ import annotations

import random
from itertools import pairwise
from typing import TYPE_CHECKING

import pytest

from gpuctl.analyze.options import Options
from gpuctl.analyze.run import analyze
from gpuctl.ingest.pipeline.load import ingest
from gpuctl.store.database import Store
from tests.batch_records import lsf, sge
from tests.monthly_exports import DAY_S, MONTHS, monthly, sacct, year

if TYPE_CHECKING:
    from collections.abc import Sequence
    from pathlib import Path

FILES_ONLY = frozenset({"sources"})
"""What is about the files, not about the jobs."""


def tables(store_path: Path) -> dict[str, str]:
    with Store(store_path) as store:
        found = analyze(store, Options(by="month"))
    return {
        one.name: f"{one.population}\n{one.frame.write_json()}" for one in found.tables if one.name not in FILES_ONLY
    }


def loaded(folder: Path, name: str, texts: Sequence[str], order: Sequence[int]) -> dict[str, str]:
    """Load files one after the other; return the tables of the store."""
    store = folder / f"{'-'.join(map(str, order))}.duckdb"
    for k in order:
        place = folder / f"{len(texts)}-{k}"
        place.mkdir(exist_ok=True)
        (place / name).write_text(texts[k])
        ingest([place], store, cluster="c", timezone="UTC")
    return tables(store)


@pytest.mark.parametrize("order", ["forward", "shuffled"])
def test_slurm_with_jobs_that_wait_or_run_when_a_month_is_exported(order: str, tmp_path: Path) -> None:
    attempts = year(seed=1, jobs=90)
    texts = monthly(attempts)
    now = MONTHS[-1] + 6 * 3600
    # the premise: months export jobs that are not over, and jobs that another month has
    assert sum(text.count("RUNNING") for text in texts) > 5
    whole = sacct(attempts, 0, now, now)
    assert sum(text.count("\n") for text in texts) > whole.count("\n") + 40
    ways = list(range(12)) if order == "forward" else random.Random(3).sample(range(12), 12)
    assert loaded(tmp_path, "sacct.txt", texts, ways) == loaded(tmp_path, "sacct.txt", [whole], [0])


@pytest.mark.parametrize("system", ["lsf", "sge"])
def test_logs_of_ended_jobs_cut_with_overlaps(system: str, tmp_path: Path) -> None:
    chance = random.Random(2)
    ended = []
    for job in range(1, 61):
        submit = chance.randrange(1, 120 * DAY_S)
        start = submit + int(chance.expovariate(1 / 20000))
        end = start + 60 + int(chance.expovariate(1 / (3 * DAY_S)))
        user, failed = chance.choice(["eve", "bob"]), chance.random() < 0.3
        line = (
            lsf(job, submit, start, end, user=user, status=32 if failed else 64, exit_status=256 * failed)
            if system == "lsf"
            else sge(job, submit, start, end, owner=user, status=int(failed))
        )
        ended.append((end, line))
    ended.sort()
    edges = [30 * DAY_S * month for month in range(6)]
    texts = [
        "".join(f"{line}\n" for end, line in ended if begin - 3 * DAY_S <= end < last)
        for begin, last in pairwise(edges)
    ]
    assert sum(text.count("\n") for text in texts) > len(ended)
    name = "lsb.acct" if system == "lsf" else "accounting"
    whole = "".join(f"{line}\n" for end, line in ended if end < edges[-1])
    assert loaded(tmp_path, name, texts, [3, 0, 4, 1, 2]) == loaded(tmp_path, name, [whole], [0])
