"""Options are written once, and a group of them is the same to the command line as its fields."""

from __future__ import annotations

import ast
from collections import Counter
from dataclasses import dataclass
from pathlib import Path
from typing import Annotated

import typer
from typer.testing import CliRunner

import gpuctl.cli
from gpuctl.cli.options import grouped


@dataclass(frozen=True)
class Size:
    width: Annotated[int, typer.Option(help="How wide.")] = 3
    high: Annotated[bool, typer.Option("--high")] = False


@grouped
def draw(context: typer.Context, *, size: Size, names: Annotated[list[Path] | None, typer.Argument()] = None) -> None:
    """Draw."""
    typer.echo(f"{context.info_name} {size} {[str(n) for n in names or ()]}")


def test_a_group_is_its_options() -> None:
    app = typer.Typer(rich_markup_mode=None)
    app.command()(draw)
    run = CliRunner().invoke
    assert run(app, ["a", "--width", "7", "--high", "b"]).stdout == "draw Size(width=7, high=True) ['a', 'b']\n"
    assert run(app, []).stdout == "draw Size(width=3, high=False) []\n"
    told = run(app, ["--help"]).stdout
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
