"""The checks that any format must pass: built-in ones do, and each fault is found in a format that has it."""

from __future__ import annotations

from dataclasses import replace
from pathlib import Path
from typing import TYPE_CHECKING, Any

import pytest

from gpuctl.ingest.pipeline import registry
from gpuctl.ingest.pipeline.conformance import check
from tests.example_files import example_files

if TYPE_CHECKING:
    from collections.abc import Callable

    from gpuctl.ingest.core.format import Format

EXAMPLE = Path(__file__).resolve().parents[4] / "docs" / "examples" / "format"
SAMPLE = EXAMPLE / "jobs.turnstile"
FORMAT = registry.of_file(EXAMPLE / "turnstile_jobs.py", "FORMAT")


@pytest.mark.parametrize("name", ["slurm-sacct", "traffic-csv"])
def test_built_in_formats_pass(name: str, tmp_path: Path) -> None:
    file, data = example_files()[name]
    path = tmp_path / Path(file).name
    path.write_bytes(data)
    assert check(registry.named(name, registry.built_in()), path, cases=1) == []


def test_the_worked_example_passes() -> None:
    assert check(FORMAT, SAMPLE, cases=3) == []


def _whole(stream: Any, sink: Any) -> None:
    import io

    FORMAT.load(io.BytesIO(stream.read()), sink)


def _uncounted(stream: Any, sink: Any) -> None:
    FORMAT.load(stream, sink)
    sink.seen()


def _raises(stream: Any, sink: Any) -> None:
    FORMAT.load(stream, sink)
    raise KeyError("gpus")


@pytest.mark.parametrize(
    ("change", "finding"),
    [
        (lambda: replace(FORMAT, load=_whole), "reads the whole stream at once"),
        (lambda: replace(FORMAT, load=_uncounted), "rows"),
        (lambda: replace(FORMAT, load=_raises), "KeyError"),
        (lambda: replace(FORMAT, fills=("jobs",)), "rows are in attempts, placements, queues, which fills does not"),
        (lambda: replace(FORMAT, sniff=lambda name, head: None), "not recognised"),
        (lambda: replace(FORMAT, sniff=lambda name, head: "anything"), "an empty file is recognised"),
    ],
)
def test_each_fault_is_found(change: Callable[[], Format], finding: str) -> None:
    assert any(finding in line for line in check(change(), SAMPLE, cases=1))
