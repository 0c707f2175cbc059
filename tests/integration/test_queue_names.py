"""Other names of the same queues change nothing, unless a policy's page says that they do."""

from __future__ import annotations

import json
import re
from typing import TYPE_CHECKING, Any

import numpy as np
import pytest

if TYPE_CHECKING:
    import subprocess
    from collections.abc import Callable
    from pathlib import Path

    Gpuctl = Callable[..., subprocess.CompletedProcess[str]]

OTHER = {"research": "aaa", "production": "zzz"}
"""In the other order of names."""


def replayed(gpuctl: Gpuctl, folder: Path, policy: str, *options: str | Path) -> list[dict[str, Any]]:
    asked = ("replay", folder / "jobs.csv", "--policy", policy, "--json", "-q", "--table", "replay_jobs", *options)
    done = gpuctl(*asked)
    assert done.returncode == 0, done.stderr
    rows: list[dict[str, Any]] = json.loads(done.stdout)["tables"]["replay_jobs"]["rows"]
    return [{**row, "queue": OTHER.get(row["queue"], row["queue"])} for row in rows]


def renamed(source: Path, folder: Path) -> Path:
    folder.mkdir()
    for file in source.iterdir():
        if file.suffix in {".csv", ".xml", ".toml"}:
            text = re.sub("|".join(OTHER), lambda found: OTHER[found[0]], file.read_text())
            (folder / file.name).write_text(text)
    return folder


def test_a_file_orders_the_queues_of_yarn_capacity(gpuctl: Gpuctl, sample_data: Path, tmp_path: Path) -> None:
    here, there = sample_data / "site", renamed(sample_data / "site", tmp_path / "other")
    both = [
        replayed(gpuctl, each, "yarn-capacity", "--cluster", each / "cluster.toml", "--yarn-conf", each / file)
        for each, file in ((here, "capacity-scheduler.xml"), (there, "capacity-scheduler.xml"))
    ]
    assert both[0] == both[1]


@pytest.mark.parametrize("policy", ["yarn-capacity", "yarn-fair"])
def test_pages_state_that_names_order_queues(root: Path, policy: str) -> None:
    text = " ".join((root / "docs" / "reference" / "policies" / f"{policy}.md").read_text().split())
    assert re.search("other names may (?:therefore )?change which of two equal queues goes first", text, re.IGNORECASE)


@pytest.mark.parametrize("seed", range(3))
def test_names_of_queues_make_no_difference_to_philly(gpuctl: Gpuctl, tmp_path: Path, seed: int) -> None:
    random = np.random.default_rng(seed)
    here = tmp_path / "here"
    here.mkdir()
    rows = [
        f"{number},{600 * int(at)},{int(lasts)},{gpus},{queue}"
        for number, (at, lasts, gpus, queue) in enumerate(
            zip(
                np.sort(random.integers(0, 60, 200)), random.lognormal(7.5, 1, 200), random.choice([1, 2, 4, 8], 200),
                random.choice(list(OTHER), 200), strict=True,
            )
        )
    ]  # fmt: skip
    (here / "jobs.csv").write_text("\n".join(["job_id,submit_time,duration,num_gpus,vc", *rows, ""]))
    (here / "quotas.csv").write_text("vc,quota_gpus\nproduction,16\nresearch,16\n")
    both = [
        replayed(gpuctl, each, "philly", "--cluster", "4x8", "--quotas", each / "quotas.csv")
        for each in (here, renamed(here, tmp_path / "there"))
    ]
    assert both[0] == both[1]
