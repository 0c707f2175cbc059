"""``gpuctl replay --policy yarn-fair`` on the site of the sample data, with its fair-scheduler.xml."""

from __future__ import annotations

import json
from typing import TYPE_CHECKING, Any

if TYPE_CHECKING:
    import subprocess
    from collections.abc import Callable
    from pathlib import Path

    Gpuctl = Callable[..., subprocess.CompletedProcess[str]]


def _replayed(gpuctl: Gpuctl, site: Path, *arguments: object) -> tuple[dict[str, Any], str]:
    done = gpuctl("--json", "replay", site / "jobs.csv", "--cluster", site / "cluster.toml", *arguments)
    return json.loads(done.stdout), done.stderr


def _mean_wait(result: dict[str, Any], policy: str, queue: str) -> float:
    rows = result["tables"]["replay_jobs"]["rows"]
    waits = [row["wait_s"] for row in rows if row["policy"] == policy and row["queue"] == queue]
    assert len(waits) > 20
    return float(sum(waits) / len(waits))


def test_the_site_under_its_own_queues_and_under_other_weights(gpuctl: Gpuctl, sample_data: Path) -> None:
    site = sample_data / "site"
    result, _ = _replayed(
        gpuctl, site, "--policy", "yarn-fair,even=yarn-fair", "--yarn-conf", site / "fair-scheduler.xml",
        "--param", "even.weights=research:1,production:9", "--resources", "gpu,cpu,mem",
    )  # fmt: skip
    summary = {row["policy"]: row for row in result["tables"]["replay_summary"]["rows"]}
    jobs = len((site / "jobs.csv").read_text().splitlines()) - 1
    assert {name: row["jobs_finished"] for name, row in summary.items()} == {"yarn-fair": jobs, "even": jobs}
    assert "weights=file" in result["settings"]["policy yarn-fair"]
    assert "weights=research:1,production:9" in result["settings"]["policy even"]
    # 3 to 2 in the file, 1 to 9 beside it
    assert _mean_wait(result, "even", "research") > _mean_wait(result, "yarn-fair", "research")
    assert _mean_wait(result, "even", "production") < _mean_wait(result, "yarn-fair", "production")


def test_inferred_and_wrong_settings_are_reported(gpuctl: Gpuctl, sample_data: Path, tmp_path: Path) -> None:
    site = sample_data / "site"
    (tmp_path / "fair-scheduler.xml").write_text(
        '<allocations><queue name="research"/>\n<queuePlacementPolicy/>\n</allocations>'
    )
    result, told = _replayed(gpuctl, site, "--policy", "yarn-fair", "--yarn-conf", tmp_path)
    assert "root.production" in told + json.dumps(result)
    assert "<queuePlacementPolicy> (1)" in told + json.dumps(result)
    (tmp_path / "fair-scheduler.xml").write_text(
        '<allocations>\n<queue name="a"><weight>x</weight></queue></allocations>'
    )
    done = gpuctl(
        "replay", site / "jobs.csv", "--cluster", site / "cluster.toml", "--policy", "yarn-fair",
        "--yarn-conf", tmp_path, check=False,
    )  # fmt: skip
    assert done.returncode == 3
    assert "fair-scheduler.xml:2" in done.stderr
    assert "expected a number" in done.stderr
