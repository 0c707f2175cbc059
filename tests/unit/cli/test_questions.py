"""The list of commands in ``gpuctl --help``: all of them, each in one line."""

from __future__ import annotations

from typing import Any

from typer.main import get_command

from gpuctl.cli.main import app
from gpuctl.cli.questions import QUESTIONS


def test_every_command_answers_one_question_in_one_line_of_80() -> None:
    listed = [name for commands in QUESTIONS.values() for name in commands]
    group: Any = get_command(app)
    assert all(group.get_command(None, name) is not None for name in listed)
    assert sorted(listed) == sorted(group.commands)
    width = max(map(len, listed))
    assert all(2 + width + 2 + len(text) < 80 for commands in QUESTIONS.values() for text in commands.values())
