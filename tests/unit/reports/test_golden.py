"""What readers and programs get, byte for byte. GPUCTL_UPDATE_GOLDEN=1 writes the files anew: read the diff."""

from __future__ import annotations

import io
import os
from pathlib import Path

import pytest

from gpuctl.reports.export.files import Format, write_tables
from gpuctl.reports.terminal.printer import print_analysis
from tests.unit.reports.fakes import make_analysis

FOLDER = Path(__file__).resolve().parents[2] / "golden" / "reports"


def compare(name: str, got: str) -> None:
    place = FOLDER / name
    if os.environ.get("GPUCTL_UPDATE_GOLDEN"):
        place.write_text(got, "utf-8", newline="")
    with place.open(encoding="utf-8", newline="") as file:
        assert got == file.read()


@pytest.mark.parametrize("width", [80, 200])
def test_terminal(width: int) -> None:
    out = io.StringIO()
    print_analysis(make_analysis(points=50, rows=30), console_width=width, color=False, file=out)
    compare(f"terminal-{width}.txt", out.getvalue())


@pytest.mark.parametrize(
    ("form", "name"), [("json", "analysis.json"), ("csv", "analysis.csv"), ("markdown", "analysis.md")]
)
def test_file(form: Format, name: str) -> None:
    out = io.BytesIO()
    write_tables(make_analysis(points=50, rows=12), form, out)
    compare(name, out.getvalue().decode())
