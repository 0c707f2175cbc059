"""How the program ends: what a user is told of a signal, whatever a library made of it."""

from __future__ import annotations

import os
import signal
import subprocess
import sys
import time
import weakref
from importlib.machinery import ExtensionFileLoader
from typing import TYPE_CHECKING

import pytest

from gpuctl.cli import main
from gpuctl.core.errors import ExitCode, StoreError
from gpuctl.store.database import Store

if TYPE_CHECKING:
    from collections.abc import Iterator
    from pathlib import Path


@pytest.fixture
def interrupts() -> Iterator[list[int]]:
    before, hook = signal.signal(signal.SIGINT, signal.default_int_handler), sys.unraisablehook
    yield main._install_sigint(signal.default_int_handler)
    signal.signal(signal.SIGINT, before)
    sys.unraisablehook = hook


def _as(error: BaseException, *, after_ctrl_c: bool) -> object:
    def app(*_args: object, **_options: object) -> None:
        if after_ctrl_c:
            try:
                os.kill(os.getpid(), signal.SIGINT)
            except KeyboardInterrupt:
                raise error from None
        raise error

    return app


@pytest.mark.parametrize(
    "error", [SystemError("returned a result with an exception set"), StoreError("x"), ValueError()]
)
def test_ctrl_c_inside_a_library_is_reported_as_ctrl_c(
    error: Exception, interrupts: list[int], monkeypatch: pytest.MonkeyPatch, capsys: pytest.CaptureFixture[str]
) -> None:
    monkeypatch.setattr(main, "_command", lambda: _as(error, after_ctrl_c=True))
    assert main.run([], interrupts) == ExitCode.INTERRUPTED
    assert capsys.readouterr().err == "gpuctl: interrupted\n"


def test_the_same_without_ctrl_c_is_a_bug(
    interrupts: list[int], monkeypatch: pytest.MonkeyPatch, capsys: pytest.CaptureFixture[str]
) -> None:
    monkeypatch.setattr(main, "_command", lambda: _as(SystemError("x"), after_ctrl_c=False))
    assert main.run([], interrupts) == ExitCode.BUG
    assert "internal error: SystemError: x" in capsys.readouterr().err


@pytest.mark.usefixtures("interrupts")
def test_ctrl_c_waits_for_compiled_code_that_is_being_loaded() -> None:
    """What sets up a library's types cannot pass on an exception: ``nanobind`` ends the process."""
    loaded = []

    class Loader(ExtensionFileLoader):
        def exec_module(self, _module: object) -> None:
            os.kill(os.getpid(), signal.SIGINT)
            loaded.append(self.name)

    def go() -> None:
        Loader("types", "types.so").exec_module(sys)
        time.sleep(10)

    with pytest.raises(KeyboardInterrupt):
        go()
    assert loaded == ["types"]


def test_ctrl_c_that_python_drops_is_raised_again(
    interrupts: list[int], monkeypatch: pytest.MonkeyPatch, capsys: pytest.CaptureFixture[str]
) -> None:
    """It may come while a callback of the garbage collection runs, from which nothing can be raised."""

    class Thing:
        pass

    def app(*_args: object, **_options: object) -> None:
        thing = Thing()
        watched = weakref.ref(thing, lambda _: os.kill(os.getpid(), signal.SIGINT))
        del thing
        assert watched() is None
        time.sleep(10)

    monkeypatch.setattr(main, "_command", lambda: app)
    assert main.run([], interrupts) == ExitCode.INTERRUPTED
    assert len(interrupts) == 2
    assert capsys.readouterr().err == "gpuctl: interrupted\n"


@pytest.mark.parametrize("closed", [">&-", "2>&-", ">&- 2>&- <&-"])
def test_closed_streams_are_as_the_null_device(closed: str, root: Path, sample_data: Path, tmp_path: Path) -> None:
    """Of a command that prints, one that opens a store, one that is wrong; no file takes the place of a stream."""
    db = tmp_path / "g.duckdb"
    jobs = sample_data / "philly" / "cluster_machine_list"
    for command, code in ((["formats"], 0), (["nosuch"], 2), (["ingest", jobs, "--db", db], 0)):
        done = subprocess.run(
            ["sh", "-c", f'exec "$@" {closed}', "sh", sys.executable, "-m", "gpuctl", *map(str, command)],
            env={**os.environ, "PYTHONPATH": str(root)}, capture_output=True, text=True, check=False, timeout=120,
        )  # fmt: skip
        assert (done.returncode, "Traceback" in done.stderr) == (code, False), (command, done.stderr)
        assert done.stdout == "" or ">&-" not in closed.split()
    with Store(db) as store:
        assert store.frame("SELECT count(*) AS n FROM sources")["n"][0] > 0
