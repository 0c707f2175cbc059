"""Which commands draw pictures on a terminal, and that a pipe gets none."""

from __future__ import annotations

import io
import logging
import sys
from typing import TYPE_CHECKING

import pytest

from gpuctl.cli.main import app

if TYPE_CHECKING:
    from pathlib import Path

COMMANDS = {
    "analyze": ("GPUs in use and attempts waiting over time", ("--table", "overview")),
    "explain": ("When it waited and ran", ()),
    "report": ("GPUs in use and attempts waiting over time", ("--all",)),
    "replay": (
        "Job completion times (JCT), by policy",
        ("--policy", "fifo,las", "--cluster", "8x8", "--all"),
    ),
}


class Stream(io.TextIOWrapper):
    """Standard output that says whether it is a terminal."""

    terminal = True

    def isatty(self) -> bool:
        return self.terminal


@pytest.fixture(scope="module")
def store(tmp_path_factory: pytest.TempPathFactory) -> Path:
    folder = tmp_path_factory.mktemp("pictures")
    log = folder / "sacct.txt"
    rows = [
        f"{number}|COMPLETED|2026-01-01T{hour:02}:00:00|2026-01-01T{hour + 2:02}:30:00|2026-01-01T{hour + 5:02}:00:00|"
        "billing=8,cpu=8,gres/gpu=4,node=1|n1|gpu|ann|proj"
        for number, hour in enumerate(range(12), 1)
    ]
    log.write_text("\n".join(["JobIDRaw|State|Submit|Start|End|AllocTRES|NodeList|Partition|User|Account", *rows, ""]))
    with pytest.raises(SystemExit) as end:
        app(["--quiet", "ingest", str(log), "--db", str(folder / "t.duckdb")], prog_name="gpuctl")
    assert end.value.code in {0, None}
    return folder / "t.duckdb"


@pytest.mark.parametrize(
    ("command", "terminal", "environ"),
    [
        *((command, terminal, {}) for command in COMMANDS for terminal in (True, False)),
        # one place decides on colours for all commands
        ("explain", True, {"NO_COLOR": "1"}),
    ],
)
def test_a_command_draws_on_a_terminal_only(
    monkeypatch: pytest.MonkeyPatch, store: Path, command: str, terminal: bool, environ: dict[str, str]
) -> None:
    title, options = COMMANDS[command]
    job = ["7"] if command == "explain" else []
    for name, value in {"COLUMNS": "80", "TERM": "xterm", "PAGER": "no-such-pager", **environ}.items():
        monkeypatch.setenv(name, value)
    with Stream(io.BytesIO(), encoding="utf-8") as out:
        out.terminal = terminal
        monkeypatch.setattr(sys, "stdout", out)
        with pytest.raises(SystemExit) as end:
            app(["--quiet", command, *job, str(store), *options], prog_name="gpuctl")
        out.flush()
        text = out.buffer.getvalue().decode()  # type: ignore[attr-defined]
        monkeypatch.undo()
    assert end.value.code in {0, None}
    assert (title in text) is terminal
    assert ("█" in text) is terminal
    assert ("\x1b[" in text) is (terminal and not environ)


def test_quiet_is_over_when_the_command_is(store: Path) -> None:
    assert store.exists()
    assert logging.getLogger("gpuctl").level == logging.NOTSET
