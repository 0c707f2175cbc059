"""Every number that an option of any command takes is finite and fits into 64 bits."""

from __future__ import annotations

from typing import TYPE_CHECKING, Any

import pytest
import typer

from gpuctl.cli.main import app

if TYPE_CHECKING:
    from collections.abc import Iterator


def numbers() -> Iterator[tuple[str, Any, str]]:
    """Command, option and the kind of its numbers."""
    root: Any = typer.main.get_command(app)
    todo = [(name, root.get_command(None, name)) for name in root.list_commands(None)]
    while todo:
        name, command = todo.pop()
        todo += [(f"{name} {below}", each) for below, each in getattr(command, "commands", {}).items()]
        for option in command.params:
            kind = option.type.name.split()[0]
            if kind in {"float", "integer"}:
                yield name, option, kind


OPTIONS = list(numbers())


def test_there_are_such_options() -> None:
    assert len(OPTIONS) > 40
    assert {("analyze", "idle_below"), ("accel generate", "load")} <= {
        (name, option.name) for name, option, _ in OPTIONS
    }


@pytest.mark.parametrize(("command", "option", "kind"), OPTIONS, ids=[f"{c} {o.name}" for c, o, _ in OPTIONS])
def test_numbers_that_are_none_are_refused(command: str, option: Any, kind: str) -> None:
    bad = ["nan", "inf", "-inf", "1e400"] if kind == "float" else [str(10**30), str(-(10**30)), "1" * 4000]
    for text in bad:
        with pytest.raises(typer.BadParameter):
            option.type.convert(text, option, None)


def test_nan_is_wrong_usage(gpuctl: Any) -> None:
    found = gpuctl("analyze", ".", "--idle-below", "nan", check=False)
    assert found.returncode == 2
    assert "'nan' is not a finite number" in found.stderr
