"""Options are written once, and a group of them is the same to the command line as its fields."""

from __future__ import annotations

import ast
import os
import subprocess
import sys
from collections import Counter
from dataclasses import dataclass
from pathlib import Path
from typing import Annotated

import pytest
import typer
from typer.testing import CliRunner

import gpuctl.cli
from gpuctl.cli.main import app
from gpuctl.cli.options import grouped
from gpuctl.core.errors import UsageError


@dataclass(frozen=True)
class Size:
    width: Annotated[int, typer.Option(help="How wide.")] = 3
    high: Annotated[bool, typer.Option("--high")] = False


@grouped
def draw(context: typer.Context, *, size: Size, names: Annotated[list[Path] | None, typer.Argument()] = None) -> None:
    """Draw."""
    typer.echo(f"{context.info_name} {size} {[str(n) for n in names or ()]}")


def test_a_group_is_its_options() -> None:
    drawing = typer.Typer(rich_markup_mode=None)
    drawing.command()(draw)
    run = CliRunner().invoke
    assert run(drawing, ["a", "--width", "7", "--high", "b"]).stdout == "draw Size(width=7, high=True) ['a', 'b']\n"
    assert run(drawing, []).stdout == "draw Size(width=3, high=False) []\n"
    told = run(drawing, ["--help"]).stdout
    assert told.index("How wide.") < told.index("--high")
    assert "Draw." in told


def test_no_option_is_written_twice() -> None:
    told: Counter[str] = Counter()
    for path in sorted(Path(str(gpuctl.cli.__file__)).parent.glob("*.py")):
        for node in ast.walk(ast.parse(path.read_text("utf-8"))):
            if isinstance(node, ast.Call) and ast.unparse(node.func) in {"typer.Option", "typer.Argument"}:
                told[ast.unparse(node)] += 1
    assert told
    assert [text for text, times in told.items() if times > 1] == []


@pytest.mark.parametrize("words", ["analyze x", "explain j x", "ingest x", "replay x", "train runtime x"])
def test_an_unknown_time_zone_is_rejected_everywhere(words: str) -> None:
    with pytest.raises(UsageError, match="--timezone 'Mars': no such time zone"):
        app([*words.split(), "--timezone", "Mars"])


@pytest.mark.parametrize(
    ("words", "found"),
    [
        ("analyze --table delay_c", ["delay_causes"]),
        ("analyze --section qual", ["quality"]),
        ("analyze --state out", ["out_of_memory"]),
        ("replay --table replay_vs_b", ["replay_vs_baseline"]),
        ("replay --policy tir", ["tiresias"]),
        ("replay --policy fifo,tir", ["fifo,tiresias"]),
        ("tables queue_s", ["queue_samples"]),
    ],
)
def test_completions_without_heavy_imports(words: str, found: list[str]) -> None:
    asked = f"gpuctl {words}"
    program = (
        "import atexit, sys\n"
        "heavy = {'duckdb', 'numba', 'polars', 'scipy'}\n"
        "atexit.register(lambda: sys.stderr.write(' '.join(heavy & set(sys.modules))))\n"
        "from gpuctl.cli.main import app\n"
        "app(prog_name='gpuctl')\n"
    )
    environment = {"COMP_WORDS": asked, "COMP_CWORD": str(len(asked.split()) - 1), "_GPUCTL_COMPLETE": "complete_bash"}
    done = subprocess.run(
        [sys.executable, "-c", program], env={**os.environ, **environment}, capture_output=True, text=True, check=False
    )
    assert done.stdout.split() == found
    assert done.stderr == ""
