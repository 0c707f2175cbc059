"""Lines of training progress: the wordings of the common programs, and recordings of real trainings."""

from __future__ import annotations

import csv
import json
import re
from datetime import timedelta, timezone
from pathlib import Path
from typing import Any
from zoneinfo import ZoneInfo

import hyperscan
import pytest

from gpuctl.joblogs.evidence import Step
from gpuctl.joblogs.progress import PATTERNS, Parser
from tests.signatures import scanner

FOLDER = Path(__file__).parents[2] / "fixtures" / "progress"
WORDINGS = [json.loads(line) for line in (FOLDER / "wordings.jsonl").read_text("utf-8").splitlines()]
RECORDED = sorted(path.stem for path in FOLDER.glob("*.log"))


def short(step: Step) -> str:
    """e3/10 s45/100 loss=0.12 3s @1704103200: what the step says, and no more."""

    def number(value: float) -> str:
        return format(value, ".7g")

    epochs = f"/{number(step.epochs)}" if step.epochs is not None else ""
    parts = [f"e{number(step.epoch)}{epochs}" if step.epoch is not None else ""]
    parts.append(f"s{step.step}{f'/{step.steps}' if step.steps is not None else ''}" if step.step is not None else "")
    parts.append(f"{step.metric}={number(step.value)}" if step.metric and step.value is not None else "")
    parts.append(f"{number(step.elapsed_s)}s" if step.elapsed_s is not None else "")
    parts.append(f"@{step.ts:.14g}" if step.ts is not None else "")
    return " ".join(part for part in parts if part)


def groups() -> list[list[dict[str, Any]]]:
    """Lines that come one after the other in the same log."""
    found: list[list[dict[str, Any]]] = []
    for row in WORDINGS:
        if row.get("new"):
            found.append([])
        found[-1].append(row)
    return found


@pytest.mark.parametrize("lines", groups(), ids=lambda lines: lines[0]["line"].strip()[:40])
def test_wordings(lines: list[dict[str, Any]]) -> None:
    parser = Parser()
    for number, row in enumerate(lines, 1):
        steps = parser.read(row["line"], number)
        assert " ; ".join(short(step) for step in steps) == row["expect"], row["line"]
        assert {step.line_no for step in steps} <= {number}


def steps_of(name: str) -> list[Step]:
    parser, steps = Parser(), []
    for number, line in enumerate((FOLDER / f"{name}.log").read_bytes().decode().split("\n"), 1):
        for piece in line.split("\r"):
            steps += parser.read(piece, number)
    return steps


@pytest.mark.parametrize("name", RECORDED)
def test_recorded_trainings_have_their_true_values(name: str) -> None:
    """The programs wrote down what they computed; what they print has three digits or more."""
    values = {(step.epoch if step.epoch is not None else step.step, step.metric): step.value for step in steps_of(name)}
    with (FOLDER / f"{name}.csv").open(newline="") as file:
        truth = list(csv.DictReader(file))
    assert truth
    for row in truth:
        value = values[float(row["epoch"]), row["metric"]]
        assert value == pytest.approx(float(row["value"]), rel=0.006, abs=1e-4), row


@pytest.mark.parametrize("name", RECORDED)
def test_the_scan_hands_on_the_same_steps(name: str) -> None:
    """No signature hides a line of progress, and the candidates are all that the parser needs."""
    steps: list[Step] = []
    with (FOLDER / f"{name}.log").open("rb") as file:
        scanner().scan(file, steps.append)
    assert steps == steps_of(name)


@pytest.mark.parametrize("name", RECORDED)
def test_recorded_trainings_show_nothing_else(name: str) -> None:
    with (FOLDER / f"{name}.csv").open(newline="") as file:
        names = {row["metric"] for row in csv.DictReader(file)}
    more = {"hf_trainer": {"eval_loss"}, "torch_example": {"Loss"}}.get(name, set())
    assert {step.metric for step in steps_of(name)} <= names | more | {None}


@pytest.fixture(scope="module")
def database() -> hyperscan.Database:
    made = hyperscan.Database()
    made.compile(expressions=list(PATTERNS), flags=[hyperscan.HS_FLAG_MULTILINE] * len(PATTERNS))
    return made


def ends(database: hyperscan.Database, text: str) -> list[int]:
    found: list[int] = []
    database.scan(text.encode(), lambda _number, _begin, end, _flags, _context: found.append(end))
    return found


def test_patterns_find_every_line_that_the_parser_reads(database: hyperscan.Database) -> None:
    for lines in groups():
        for row in lines:
            line = re.sub(r"\x1b\[[0-9;]*m", "", row["line"])  # as the scanner does before it looks
            if row["expect"] or row["line"].lstrip().startswith("Epoch    GPU_mem"):
                assert ends(database, line), line


def test_patterns_end_seldom(database: hyperscan.Database) -> None:
    for row in WORDINGS:
        assert len(ends(database, row["line"])) <= 8, row["line"]


def test_patterns_leave_ordinary_lines_alone(database: hyperscan.Database) -> None:
    for line in (
        "Collecting numpy==1.26.4 (from -r requirements.txt (line 3))",
        "2024-01-01 10:00:00,123 INFO worker 3 of 8 ready, 12.5 GB free",
        '  File "/opt/train.py", line 123, in <module>',
        "Downloading https://files.pythonhosted.org/packages/torch-2.1.0.whl (670.2 MB)",
        "NCCL INFO Channel 00/02 :    0   1   2   3",
        "drwxr-xr-x 2 root root 4096 Jan  1 10:00 data",
        "Epoch Times newspaper",
        "loss of connection after 3 retries",
    ):
        assert not ends(database, line), line


def test_naive_stamps_are_in_the_given_zone() -> None:
    line = "2024-07-01 10:00:00,250 epoch 3 loss 0.5"
    for zone, hours in ((ZoneInfo("America/Los_Angeles"), -7), (timezone(timedelta(hours=8)), 8)):
        [step] = Parser(zone).read(line, 1)
        assert step.ts == 1719828000.25 - 3600 * hours


@pytest.mark.parametrize(
    "stamp", ["2024-13-01 10:00:00", "2024-02-30 10:00:00", "9999-12-31 25:00:00", "0720 10:00:00"]
)
def test_impossible_stamps_are_none(stamp: str) -> None:
    [step] = Parser().read(f"{stamp} epoch 3 loss 0.5", 1)
    assert step.ts is None


def test_a_bar_is_read_once_a_second_and_at_its_end() -> None:
    parser = Parser()
    read = [
        parser.read(f"Epoch 1: {n:3}%|##| {n}/100 [00:0{n // 25}<00:01, 25.0it/s, loss={n}]", n) for n in range(1, 101)
    ]
    assert [steps[0].step for steps in read if steps] == [1, 25, 50, 75, 100]


def test_a_validation_loss_with_a_running_bar_is_of_the_epoch_before() -> None:
    parser = Parser()
    [step] = parser.read("Epoch 1:  50%|##| 5/10 [00:01<00:01, 5it/s, train_loss=0.3, val_loss=0.9]", 1)
    assert step.metric == "train_loss"
    end = parser.read("Epoch 1: 100%|##| 10/10 [00:02<00:00, 5it/s, train_loss=0.2, val_loss=0.8]", 2)
    assert [(step.metric, step.value) for step in end] == [("train_loss", 0.2), ("val_loss", 0.8)]
