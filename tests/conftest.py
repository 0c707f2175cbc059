"""What all tests share: where things are, how to run the program, and a browser where there is one."""

from __future__ import annotations

import gc
import os
import shutil
import signal
import subprocess
import sys
from pathlib import Path
from typing import TYPE_CHECKING

import pytest
from hypothesis import HealthCheck, settings
from hypothesis.database import DirectoryBasedExampleDatabase

from tests import cli_runner, reduced_samples

if TYPE_CHECKING:
    from collections.abc import Callable, Iterator, Mapping

    from gpuctl.store.database import Store

ROOT = Path(__file__).resolve().parent.parent
READ_AT_START = ("LC_", "NUMBA_", "OMP_", "POLARS_", "PYTHON")
"""Beginnings of variables that only a new interpreter reads."""
BROWSERS = ("chromium", "chromium-browser", "google-chrome", "chrome")


# How long one example takes, and to make one, depends on what else the machine does.
_ANYWHERE = settings(deadline=None, suppress_health_check=(HealthCheck.too_slow,))
# `make test` draws from the same seeds on every machine, and Hypothesis adds constants of the modules that are loaded;
# `make fuzz` draws from other seeds each time and keeps examples that fail.
settings.register_profile("gpuctl", _ANYWHERE, derandomize=True, database=None)
settings.register_profile("fuzz", _ANYWHERE, derandomize=False, database=DirectoryBasedExampleDatabase(".hypothesis"))
settings.load_profile("fuzz" if os.environ.get("GPUCTL_FUZZ_SEED") else "gpuctl")

_DEFAULT_SIGNALS = (signal.SIGHUP, signal.SIGQUIT, signal.SIGTERM, signal.SIGCHLD, signal.SIGALRM)


def pytest_configure() -> None:
    """Make signals, new files and what subprocesses print the same wherever the tests are started from.

    Whoever starts them hands on which signals are ignored or blocked, and a script's background makes all that it
    starts deaf to SIGINT and SIGQUIT: the tests of Ctrl-C would then wait for ever.
    """
    if signal.getsignal(signal.SIGINT) is signal.SIG_IGN:
        signal.signal(signal.SIGINT, signal.default_int_handler)
    for number in _DEFAULT_SIGNALS:
        if signal.getsignal(number) is signal.SIG_IGN:
            signal.signal(number, signal.SIG_DFL)
    signal.pthread_sigmask(signal.SIG_SETMASK, ())
    os.umask(0o022)
    for name in ("NO_COLOR", "FORCE_COLOR", "CLICOLOR_FORCE", "PYTHONWARNINGS", "PYTHONPATH"):
        os.environ.pop(name, None)
    # else each of a hundred programs compiles all of its modules anew
    os.environ.pop("PYTHONDONTWRITEBYTECODE", None)
    os.environ.update(COLUMNS="100", LINES="40", TERM="xterm-256color", LC_ALL="C.UTF-8", TZ="UTC")
    # threads that wait for others would spin, on cores that other tests need
    os.environ.update(OMP_WAIT_POLICY="PASSIVE", OPENBLAS_NUM_THREADS="1")
    # as the program does: there are millions of objects, none of them is garbage
    gc.set_threshold(50_000, 20, 100)


@pytest.fixture(autouse=True)
def _ctrl_c_stays() -> Iterator[None]:
    """See that no test leaves this process deaf to Ctrl-C: programs that later ones start would be deaf as well."""
    yield
    assert signal.getsignal(signal.SIGINT) is not signal.SIG_IGN, "run the command line by tests.cli_runner"


@pytest.fixture(scope="session")
def root() -> Path:
    """The top of the checkout."""
    return ROOT


@pytest.fixture(scope="session")
def sample_data(root: Path) -> Path:
    """The folder of small inputs that the README uses."""
    return root / "sample_data"


@pytest.fixture(scope="session")
def thin_data(sample_data: Path, tmp_path_factory: pytest.TempPathFactory) -> Path:
    """A part of the sample data: all of it is what test_screens.py, test_truth.py and `make report` go by."""
    place = tmp_path_factory.mktemp("thin") / "sample_data"
    reduced_samples.make(sample_data, place)
    return place


@pytest.fixture
def store(tmp_path: Path) -> Iterator[Store]:
    """An empty store, open for writing."""
    from gpuctl.store.database import Store

    with Store(tmp_path / "gpuctl.duckdb", write=True) as opened:
        yield opened


@pytest.fixture(scope="session")
def program(tmp_path_factory: pytest.TempPathFactory) -> Path:
    """The installed program, alone in a folder that scripts may put into their PATH."""
    link = tmp_path_factory.mktemp("bin") / "gpuctl"
    link.symlink_to(Path(sys.executable).with_name("gpuctl"))
    return link


@pytest.fixture(scope="session")
def gpuctl(root: Path) -> Callable[..., subprocess.CompletedProcess[str]]:
    """Run this checkout's gpuctl as a user would, with no terminal.

    ``gpuctl("analyze", path, cwd=..., env={...}, check=True)``: ``check`` (the default) fails the test with all that
    was printed if the exit code is not 0. The command runs within this process (`tests.cli_runner`);
    ``own_process`` starts an interpreter for it, which reads variables such as PYTHONPATH at its start.
    """

    def run(
        *args: str | os.PathLike[str],
        cwd: Path | None = None,
        env: Mapping[str, str] | None = None,
        check: bool = True,
        own_process: bool = False,
    ) -> subprocess.CompletedProcess[str]:
        if own_process:
            done = subprocess.run(
                [sys.executable, "-m", "gpuctl", *map(os.fspath, args)],
                cwd=cwd, env={**os.environ, "PYTHONPATH": str(root), **(env or {})}, stdin=subprocess.DEVNULL,
                capture_output=True, text=True, check=False, timeout=240,
            )  # fmt: skip
        else:
            early = {name for name, value in (env or {}).items() if os.environ.get(name) != value}
            assert not any(name.startswith(READ_AT_START) for name in early), "this needs own_process=True"
            done = cli_runner.run_command(*args, cwd=cwd, env=env)
        if check and done.returncode != 0:
            printed = f"{' '.join(done.args)}: exit {done.returncode}\n{done.stdout}\n{done.stderr}"
            pytest.fail(printed, pytrace=False)
        return done

    return run


@pytest.fixture(scope="session")
def chromium() -> str:
    """The path of a Chromium to drive with playwright (``executable_path=``, ``args=["--no-sandbox"]``).

    Where there is none the test is skipped; where GPUCTL_REQUIRE_BROWSER is set (CI) it fails.
    """
    found = next((path for path in map(shutil.which, BROWSERS) if path), None)
    if found is None:
        if os.environ.get("GPUCTL_REQUIRE_BROWSER"):
            pytest.fail("GPUCTL_REQUIRE_BROWSER is set, and there is no Chromium: apt-get install chromium")
        pytest.skip("no Chromium on this machine: apt-get install chromium")
    return found
