"""A new user, who finds a command by the examples of ``--help`` and runs it on the logs of a made-up cluster."""

from __future__ import annotations

import json
import re
import shlex
import subprocess
from collections.abc import Callable
from dataclasses import dataclass, field
from typing import TYPE_CHECKING, Any

import pytest

from tests.synthetic_site import Made, make, write

if TYPE_CHECKING:
    from collections.abc import Iterable, Iterator, Mapping
    from pathlib import Path

Cli = Callable[..., subprocess.CompletedProcess[str]]
Rows = list[dict[str, Any]]
EXAMPLE = re.compile(r"^  # (.*)\n((?:  (?!# ).*\n?)+)", re.MULTILINE)


@dataclass
class User:
    """Someone who has never seen gpuctl, and knows the questions and what ``--help`` prints."""

    gpuctl: Cli
    folder: Path
    made: Made
    pages: dict[str, str] = field(default_factory=dict)

    def help(self, command: str) -> str:
        """A command's help page."""
        if command not in self.pages:
            self.pages[command] = self.gpuctl(*command.split(), "--help", env={"COLUMNS": "80"}).stdout
        return self.pages[command]

    def found(self, command: str, *words: str) -> list[list[str]]:
        """The lines of the one example of a command whose question has all these words."""
        page = self.help(command)
        fitting = [lines for question, lines in EXAMPLE.findall(page) if all(word in question for word in words)]
        assert len(fitting) == 1, f"{command} --help has {len(fitting)} examples with {words}"
        lines = [shlex.split(line) for line in _lines(fitting[0])]
        for line in lines:
            words_of_it = 2 if line[1] in {"predict", "train", "chain", "accel", "deferrable", "dag"} else 1
            options = self.help(" ".join(line[1 : 1 + words_of_it])).partition("\nExamples:")[0]
            known = set(re.findall(r"--?[a-z][a-z-]*", options))
            unknown = [each for each in line if re.match(r"--?[a-z]", each) and each not in known]
            assert not unknown, f"{shlex.join(line)}: not in the help page"
        return lines

    def run(
        self, command: str, *words: str, more: Iterable[object] = (), instead: Mapping[str, object] | None = None,
        code: int = 0,
    ) -> subprocess.CompletedProcess[str]:  # fmt: skip
        """Run an example, its last line with more options; words of it that are the site's own are replaced."""
        done = None
        lines = self.found(command, *words)
        for line in lines:
            given = [str((instead or {}).get(" ".join(each.split()), each)) for each in line[1:]]
            last = line is lines[-1]
            done = self.gpuctl(*given, *map(str, more if last else ()), cwd=self.folder, check=not last or code == 0)
        assert done is not None
        assert done.returncode == code, done.stderr
        return done

    def asked(
        self, command: str, *words: str, more: Iterable[object] = (), instead: Mapping[str, object] | None = None
    ) -> dict[str, Rows]:
        """The tables of an example's answer."""
        answer = json.loads(self.run(command, *words, more=[*more, "--json"], instead=instead).stdout)
        return {name: table["rows"] for name, table in answer["tables"].items()}


def _lines(example: str) -> Iterator[str]:
    """The command lines of an example: quotes and backslashes carry over ends of lines."""
    line = ""
    for part in example.replace("\\\n", " ").splitlines():
        line += part + "\n"
        if line.count("'") % 2 == 0:
            yield line
            line = ""


def someone(gpuctl: Cli, folder: Path) -> User:
    """A user whose logs of three days are in a store."""
    made = make(seed=7, jobs=420)
    write(made, folder)
    user = User(gpuctl, folder, made)
    user.run("ingest", "Read logs once", more=["--job-logs", "output/{job}/{attempt}/{stream}", "--cluster", "made"])
    return user


def by(rows: Rows, column: str) -> dict[Any, dict[str, Any]]:
    """The rows by the values of a column."""
    return {row[column]: row for row in rows}


def near(value: float, *, within: float = 1e-9) -> Any:
    """A number up to rounding."""
    return pytest.approx(value, rel=within, abs=1e-6)
