"""How far jobs had to train: a handful of jobs whose answers were worked out on paper."""

from __future__ import annotations

import math
from typing import TYPE_CHECKING, Any

import pytest

from gpuctl.analyze.options import Options
from gpuctl.analyze.run import analyze
from gpuctl.store.database import Store
from tests.result_tables import table_of

if TYPE_CHECKING:
    from pathlib import Path

    from gpuctl.core.results import Analysis

DAY = "2026-01-01 "


class Made:
    """A store that jobs are put into one by one."""

    def __init__(self, path: Path) -> None:
        self.store = Store(path, write=True)
        self.store.execute(
            "INSERT INTO clusters (cluster, source_format, timezone, clock) VALUES ('c', 'slurm-sacct', 'UTC', 'utc')"
        )

    def job(self, name: str, state: str, gpus: float, *times: tuple[str, str]) -> None:
        self.store.execute(
            "INSERT INTO job_rows (cluster, job, state, gpus, attempts, submit_ts, start_ts, end_ts, quirks, source)"
            " VALUES ('c', $job, $state, $gpus, $attempts, $start::TIMESTAMPTZ, $start::TIMESTAMPTZ,"
            " $end::TIMESTAMPTZ, [], 1)",
            {"job": name, "state": state, "gpus": gpus, "attempts": len(times)}
            | {"start": f"{DAY}{times[0][0]}+00", "end": f"{DAY}{times[-1][1]}+00"},
        )
        for number, (start, end) in enumerate(times):
            self.store.execute(
                "INSERT INTO attempt_rows (cluster, job, attempt, queued_ts, start_ts, end_ts, released_ts, state, "
                "gpus, servers, run_s, quirks, source) VALUES ('c', $job, $n, $start::TIMESTAMPTZ, "
                "$start::TIMESTAMPTZ, $end::TIMESTAMPTZ, $end::TIMESTAMPTZ, $state, $gpus, 1, 0, [], 1)",
                {"job": name, "n": number, "start": f"{DAY}{start}+00", "end": f"{DAY}{end}+00"}
                | {"state": state, "gpus": gpus},
            )

    def line(self, job: str, line_no: int, metric: str | None, value: float | None, **more: Any) -> None:
        row = {"attempt": None, "stream": "stdout", "epoch": None, "epochs": None, "step": None, "elapsed_s": None}
        ts = f"{DAY}{more.pop('ts')}+00" if "ts" in more else None
        self.store.execute(
            "INSERT INTO progress (cluster, job, attempt, stream, line_no, epoch, epochs, step, metric, loss,"
            " elapsed_s, ts, source) VALUES ('c', $job, $attempt, $stream, $line_no, $epoch, $epochs, $step, $metric,"
            " $value, $elapsed_s, $ts::TIMESTAMPTZ, 1)",
            row | {"job": job, "line_no": line_no, "metric": metric, "value": value, "ts": ts} | more,
        )


def fill(made: Made) -> None:
    # stamps, validation loss: lowest at the last epoch of ten, near at the fifth: 5 of 10 h on 2 GPUs after it
    made.job("a", "completed", 2, ("10:00", "20:00"))
    for epoch, value in enumerate((1, 0.5, 0.3, 0.2, 0.10005, 0.15, 0.12, 0.11, 0.1005, 0.1), 1):
        made.line("a", 2 * epoch, "loss", 0.01 * epoch, epoch=epoch, epochs=10, ts=f"{10 + epoch}:00")
        made.line("a", 2 * epoch + 1, "val_loss", value, epoch=epoch, epochs=10, ts=f"{10 + epoch}:00")
    # training loss, means 3 2 2 5: lowest and near at the second of four; nothing tells when: 2 of 4 GPU-h after it
    made.job("b", "killed", 1, ("10:00", "14:00"))
    for line, (epoch, value) in enumerate(((0, 4), (0, 2), (1, 2), (1, 2), (2, 1), (2, 3), (3, 5), (3, 5))):
        made.line("b", line, "train_loss", value, epoch=epoch)
    # resumed at epoch 3: 4 3 | 2 1 1.5 1.2; bars of half an hour each: lowest after 1 of 2 h of the second attempt
    made.job("c", "failed", 2, ("10:00", "12:00"), ("13:00", "15:00"))
    for attempt, values in enumerate(({1: 4, 2: 3, 3: 0.5, 4: 0.4}, {3: 2, 4: 1, 5: 1.5, 6: 1.2})):
        for line, (epoch, value) in enumerate(values.items()):
            made.line("c", 2 * line, "loss", 9, attempt=attempt, epoch=epoch, elapsed_s=900)
            made.line("c", 2 * line + 1, "loss", 2 * value - 9, attempt=attempt, epoch=epoch, elapsed_s=1800)
    # too few points; only an accuracy; only epochs
    for job in "def":
        made.job(job, "completed", 1, ("10:00", "11:00"))
    made.line("d", 1, "loss", 2, epoch=1)
    made.line("d", 2, "loss", 1, epoch=2)
    for epoch in range(5):
        made.line("e", epoch, "val_accuracy", 0.9, epoch=epoch)
        made.line("f", epoch, None, None, epoch=epoch, epochs=20)
    # steps, the last of them not finite: lowest at the third of four
    made.job("g", "completed", 1, ("10:00", "11:00"))
    for step, value in enumerate((3, 2, 1, math.nan), 1):
        made.line("g", step, "lm loss", value, step=100 * step, attempt=0)
    # below zero, 0.1 % of 2 is 0.002: near at the second, lowest at the third of four
    made.job("h", "completed", 1, ("10:00", "11:00"))
    for epoch, value in enumerate((-1, -1.9985, -2, -1), 1):
        made.line("h", epoch, "elbo", value, epoch=epoch)
    made.line("nobody's", 1, "loss", 1, epoch=1)


def run(folder: Path, *makers: Any) -> Analysis:
    made = Made(folder / "t.duckdb")
    for make in makers:
        make(made)
    made.store.close()
    with Store(folder / "t.duckdb") as store:
        return analyze(store, Options(sections=("training",)))


@pytest.fixture(scope="module")
def found(tmp_path_factory: pytest.TempPathFactory) -> Analysis:
    return run(tmp_path_factory.mktemp("training"), fill)


def rows(found: Analysis, name: str, key: str) -> dict[Any, dict[str, Any]]:
    table = table_of(found, name)
    return {line[key]: line for line in table.frame.to_dicts()}


@pytest.mark.parametrize(
    ("job", "metric", "points", "lowest", "lowest_pct", "near_pct", "hours", "after", "placed"),
    [
        ("a", "val_loss", 10, 0.1, 100, 50, 20, 10, "stamps"),
        ("b", "train_loss", 4, 2, 50, 50, 4, 2, "even"),
        ("c", "loss", 6, 1, 100 * 4 / 6, 100 * 4 / 6, 8, 2, "elapsed"),
        ("g", "lm loss", 4, 1, 75, 75, 1, 0.25, "even"),
        ("h", "elbo", 4, -2, 75, 50, 1, 0.5, "even"),
    ],
)
def test_each_job(
    found: Analysis, job: str, metric: str, points: int, lowest: float, lowest_pct: float, near_pct: float,
    hours: float, after: float, placed: str,
) -> None:  # fmt: skip
    row = rows(found, "training_progress", "job")[job]
    assert (row["metric"], row["points"], row["lowest_loss"], row["placed"]) == (metric, points, lowest, placed)
    told = (row["lowest_pct"], row["near_pct"], row["gpu_hours"], row["after_gpu_hours"])
    assert told == pytest.approx((lowest_pct, near_pct, hours, after))


def test_explanation_of_a_job(found: Analysis) -> None:
    told = rows(found, "training_progress", "job")
    assert (told["a"]["epochs"], told["a"]["epochs_planned"], told["a"]["lines"]) == (10, 10, 20)
    assert (told["c"]["first_loss"], told["c"]["last_loss"], told["c"]["epochs"]) == pytest.approx((4, 1.2, 6))
    assert (told["g"]["not_finite"], told["g"]["point_unit"]) == (1, "steps")
    assert [told[job]["lowest_pct"] for job in "def"] == [None, None, None]
    assert [told[job]["points"] for job in "def"] == [2, 0, 0]


def test_by_state(found: Analysis) -> None:
    states = rows(found, "training_convergence", "state")
    assert {state: row["jobs"] for state, row in states.items()} == {"completed": 3, "killed": 1, "failed": 1, "all": 5}
    passed = states["completed"]
    assert passed["all_epochs_pct"] == pytest.approx(100 / 3)
    assert (passed["lowest_p50_pct"], passed["near_p50_pct"]) == pytest.approx((75, 50))
    assert (passed["lowest_mean_pct"], passed["near_mean_pct"]) == pytest.approx((250 / 3, 175 / 3))
    assert (passed["after_mean_pct"], passed["after_gpu_hours"]) == pytest.approx(((50 + 25 + 50) / 3, 10.75))
    assert passed["after_gpu_hours_pct"] == pytest.approx(100 * 10.75 / 22)
    assert [row["near_by_40_pct"] for row in states.values()] == [0, 0, 0, 0]


def test_compared_with_the_published_values(tmp_path: Path) -> None:
    made = Made(tmp_path / "t.duckdb")
    fill(made)
    made.store.close()
    with Store(tmp_path / "t.duckdb") as store:
        table = analyze(store, Options(sections=("training",), reference="atc19")).table("reference_atc19")
    assert table is not None
    told = [row for row in table.frame.to_dicts() if row["place"] == "Section 4.1"]
    assert [(row["group_name"], row["published"], row["ours"]) for row in told] == [
        ("completed", 80, pytest.approx(100 / 3)),
        ("all", 75, 0),
        ("completed", 62, pytest.approx(125 / 3)),
        ("killed", 56, 50),
    ]


def test_the_population_counts_what_is_left_out(found: Analysis) -> None:
    table = table_of(found, "training_convergence")
    for text in (
        "5 of the 8 jobs whose output shows training",
        "1 has fewer, 1 prints only accuracies and similar figures, 1 only epochs or steps; 1 more is not among",
        "(1 job), else the training loss",
        "in 1 job, which prints fewer than three epochs",
        "1 job has points that are not finite",
        "timestamps of its lines (1 job) or progress bars (1)",
        "over the GPU time (3)",
    ):
        assert text in table.population


def test_a_summary_line_does_not_undo_the_curve(tmp_path: Path) -> None:
    def make(made: Made) -> None:
        made.job("s", "completed", 1, ("10:00", "11:00"))
        for epoch, value in enumerate((3, 2, 1, 2), 1):
            made.line("s", epoch, "val_loss", value, epoch=epoch)
        made.line("s", 9, "val_loss", 1, epoch=3)  # Restored epoch 3, val_loss 1

    row = rows(run(tmp_path, make), "training_progress", "job")["s"]
    assert (row["points"], row["lowest_pct"], row["last_loss"]) == (4, 75, 2)


def test_a_log_of_several_attempts_counts_each_epoch_once(tmp_path: Path) -> None:
    """Slurm appends to the same file after a requeue: the attempt is not told."""

    def make(made: Made) -> None:
        made.job("s", "completed", 1, ("10:00", "11:00"), ("12:00", "13:00"))
        for line, (epoch, value) in enumerate(((1, 9), (2, 1), (3, 1), (2, 8), (3, 7), (4, 6))):
            made.line("s", line, "loss", value, epoch=epoch)

    row = rows(run(tmp_path, make), "training_progress", "job")["s"]
    assert (row["points"], row["first_loss"], row["lowest_loss"], row["last_loss"]) == (4, 9, 6, 6)


def test_of_several_ranks_one_is_followed(tmp_path: Path) -> None:
    def make(made: Made) -> None:
        made.job("s", "completed", 1, ("10:00", "11:00"))
        for epoch in range(1, 5):
            made.line("s", epoch, "loss", 10 - epoch, epoch=epoch, stream="stdout:0")
            if epoch < 4:
                made.line("s", epoch, "loss", 0.1, epoch=epoch, stream="stdout:1")

    row = rows(run(tmp_path, make), "training_progress", "job")["s"]
    assert (row["points"], row["lowest_loss"], row["lines"]) == (4, 6, 7)


def test_stamps_of_another_clock_are_not_trusted(tmp_path: Path) -> None:
    def make(made: Made) -> None:
        made.job("s", "completed", 1, ("10:00", "14:00"))
        for epoch, value in enumerate((3, 1, 2, 2), 1):
            made.line("s", epoch, "loss", value, epoch=epoch, ts=f"{16 + epoch}:00")

    row = rows(run(tmp_path, make), "training_progress", "job")["s"]
    assert (row["placed"], row["after_gpu_hours"]) == ("even", 2)


def test_bars_that_show_a_part_of_the_time_are_not_trusted(tmp_path: Path) -> None:
    def make(made: Made) -> None:
        made.job("s", "completed", 1, ("10:00", "14:00"))
        for epoch, value in enumerate((3, 1, 2, 2), 1):
            made.line("s", epoch, "loss", value, epoch=epoch, elapsed_s=60)

    assert rows(run(tmp_path, make), "training_progress", "job")["s"]["placed"] == "even"


def test_names_that_look_like_losses_and_are_none(tmp_path: Path) -> None:
    def make(made: Made) -> None:
        made.job("s", "completed", 1, ("10:00", "11:00"))
        for epoch in range(1, 5):
            made.line("s", epoch, "balanced_acc", 0.5, epoch=epoch)
            made.line("s", epoch, "valid_0's auc", 0.5, epoch=epoch)

    assert rows(run(tmp_path, make), "training_progress", "job")["s"]["points"] == 0
