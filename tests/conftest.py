"""What all tests share: where things are, how to run the program, and a browser where there is one."""

from __future__ import annotations

import functools
import gc
import os
import shutil
import signal
import subprocess
import sys
import tempfile
from pathlib import Path
from typing import TYPE_CHECKING

import pytest
import typer.main
from hypothesis import HealthCheck, settings
from hypothesis.database import DirectoryBasedExampleDatabase
from hypothesis.internal.conjecture import providers

from tests import databases, new_stores, remembered, small_samples, warm
from tests.warm import Warm

if TYPE_CHECKING:
    from collections.abc import Callable, Iterator, Mapping

    from xdist.remote import Producer
    from xdist.scheduler import LoadFileScheduling

    from gpuctl.store.database import Store

ROOT = Path(__file__).resolve().parent.parent
SERVER = "TESTS_SERVER"
"""A variable that tells workers the folder of their server of forks."""
BROWSERS = ("chromium", "chromium-browser", "google-chrome", "chrome")


# How long one example takes, and to make one, depends on what else the machine does.
_ANYWHERE = settings(deadline=None, suppress_health_check=(HealthCheck.too_slow,))
# `make test` draws the same examples on every machine; `make fuzz` draws others each time and keeps those that fail.
settings.register_profile("gpuctl", _ANYWHERE, derandomize=True, database=None)
settings.register_profile("fuzz", _ANYWHERE, derandomize=False, database=DirectoryBasedExampleDatabase(".hypothesis"))
settings.load_profile("fuzz" if os.environ.get("GPUCTL_FUZZ_SEED") else "gpuctl")
if settings.default is not None and settings.default.derandomize:
    # Hypothesis takes constants from those of our modules that are loaded, and which ones those are depends on what
    # this worker ran before.
    providers._get_local_constants = lambda: providers._local_constants


_DEFAULT_SIGNALS = (signal.SIGHUP, signal.SIGQUIT, signal.SIGTERM, signal.SIGCHLD, signal.SIGALRM)


def pytest_configure(config: pytest.Config) -> None:
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
    new_stores.copy()
    # of several hundred options, the same each time that a command runs within this process
    typer.main.get_command = functools.cache(typer.main.get_command)
    # threads that wait for others would spin, on cores that other tests need
    os.environ.update(OMP_WAIT_POLICY="PASSIVE", OPENBLAS_NUM_THREADS="1")
    if not hasattr(config, "workerinput"):
        os.environ.pop(SERVER, None)
        if config.getoption("numprocesses", None):
            _begin_for_all_workers(config)


def _begin_for_all_workers(config: pytest.Config) -> None:
    """Begin the one server of forks that all workers use, while they collect."""
    folder = Path(tempfile.mkdtemp(prefix="gpuctl-tests-"))
    os.environ[SERVER] = str(folder)
    server = Warm(folder, ROOT)
    server.begin()
    config.add_cleanup(lambda: shutil.rmtree(folder))
    config.add_cleanup(server.stop)


@pytest.hookimpl(optionalhook=True)
def pytest_xdist_make_scheduler(config: pytest.Config, log: Producer) -> LoadFileScheduling | None:
    """With ``--dist loadfile`` have one worker run all browser tests: they share a browser and its open pages."""
    if config.getoption("dist") != "loadfile":
        return None
    from xdist.scheduler import LoadFileScheduling

    class OneBrowser(LoadFileScheduling):
        def _split_scope(self, nodeid: str) -> str:
            return "tests/browser" if nodeid.startswith("tests/browser/") else super()._split_scope(nodeid)

    return OneBrowser(config, log)


def pytest_collection() -> None:
    """Collect without looking for garbage: thousands of tests are made, and all of them stay."""
    gc.disable()


def pytest_collection_finish() -> None:
    """Look for garbage again, but not among the tests, and less often: a twentieth of the time of an analysis."""
    gc.freeze()
    gc.set_threshold(*warm.GARBAGE)
    gc.enable()


def pytest_unconfigure() -> None:
    """Let what the tests held go: DuckDB tells on standard error of what is left of it at the end."""
    gc.unfreeze()


@pytest.fixture(autouse=True)
def _ctrl_c_stays() -> Iterator[None]:
    """See that no test leaves this process deaf to Ctrl-C: programs that later ones start would be deaf as well."""
    yield
    assert signal.getsignal(signal.SIGINT) is not signal.SIG_IGN, "run the command line by tests.damage.command"


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
    small_samples.make(sample_data, place)
    return place


@pytest.fixture
def store(tmp_path: Path) -> Iterator[Store]:
    """An empty store, open for writing."""
    from gpuctl.store.database import Store

    with Store(tmp_path / "gpuctl.duckdb", write=True) as opened:
        yield opened


@pytest.fixture
def own_databases() -> Iterator[None]:
    """Have stores make databases for themselves, which reach nothing beside them (tests/databases.py)."""
    databases.make()
    yield
    databases.share()


@pytest.fixture(scope="module")
def drawn_once(tmp_path_factory: pytest.TempPathFactory) -> Iterator[None]:
    """Draw the same chart of the same table once for all pages of a file of tests: a tenth of what they take."""
    from gpuctl.reports.charts import registry

    draw = registry.draw
    remembered.drawings(tmp_path_factory.mktemp("drawn"))
    yield
    registry.draw = draw


@pytest.fixture(scope="session")
def _warm(root: Path, tmp_path_factory: pytest.TempPathFactory) -> Iterator[Warm]:
    """The server that has imported the program (tests/warm.py): one for all workers."""
    if SERVER in os.environ:
        yield Warm(Path(os.environ[SERVER]), root)
        return
    server = Warm(tmp_path_factory.mktemp("warm"), root)
    server.begin()
    yield server
    server.stop()


@pytest.fixture(scope="session")
def stand_in(_warm: Warm, tmp_path_factory: pytest.TempPathFactory) -> Path:
    """A program called gpuctl, alone in its folder, for scripts to start instead of the one that is installed."""
    _warm.start()
    program = tmp_path_factory.mktemp("bin") / "gpuctl"
    program.write_text(warm.stand_in(_warm.place))
    program.chmod(0o755)
    return program


@pytest.fixture(scope="session")
def gpuctl(root: Path, _warm: Warm) -> Callable[..., subprocess.CompletedProcess[str]]:
    """Run this checkout's gpuctl as a user would, in a process of its own, with no terminal.

    ``gpuctl("analyze", path, cwd=..., env={...}, check=True)``: ``check`` (the default) fails the test with
    all that was printed where the exit code is not 0. The process is a fork of one that has imported everything
    (tests/warm.py), unless ``env`` needs an interpreter of its own, or ``started`` asks for one.
    """

    def run(
        *args: str | os.PathLike[str],
        cwd: Path | None = None,
        env: Mapping[str, str] | None = None,
        check: bool = True,
        timeout_s: float = 240,
        started: bool = False,
    ) -> subprocess.CompletedProcess[str]:
        command = [sys.executable, "-m", "gpuctl", *(os.fspath(arg) for arg in args)]
        environment = {**os.environ, "PYTHONPATH": str(root), **(env or {})}
        if not started and warm.can_run(environment, _warm.start()):
            place = str(cwd or Path.cwd())
            done = _warm.run(command[3:], cwd=place, environment=environment, timeout_s=timeout_s)
        else:
            done = subprocess.run(
                command,
                cwd=cwd,
                env=environment,
                stdin=subprocess.DEVNULL,
                capture_output=True,
                text=True,
                check=False,
                timeout=timeout_s,
            )
        if check and done.returncode != 0:
            pytest.fail(f"{' '.join(command)}: exit {done.returncode}\n{done.stdout}\n{done.stderr}", pytrace=False)
        return done

    return run


@pytest.fixture(scope="session")
def remember(tmp_path_factory: pytest.TempPathFactory) -> dict[str, str]:
    """Variables for ``gpuctl(env=...)``: what is dear is made once for all commands that have them, in all workers.

    For tests of what commands take and write, not of what they find (tests/remembered.py).
    """
    shared = Path(os.environ[SERVER], "remembered") if SERVER in os.environ else tmp_path_factory.mktemp("remembered")
    shared.mkdir(exist_ok=True)
    return {warm.REMEMBER: str(shared)}


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


@pytest.fixture(scope="session")
def kill_gpuctl(root: Path, _warm: Warm) -> Callable[..., float | None]:
    """Run gpuctl and kill it: ``kill_gpuctl("ingest", path, after_s=1.5)``.

    Returns after how many seconds it had ended by then, or None where it was killed. It imports nothing before it
    begins, so every moment is one of its work; its store is made as users have it made.
    """

    def run(*args: str | os.PathLike[str], after_s: float) -> float | None:
        environment = {**_warm.start(), "PYTHONPATH": str(root), warm.MAKE_STORES: "1"}
        words = [os.fspath(arg) for arg in args]
        return _warm.kill(words, cwd=str(Path.cwd()), environment=environment, after_s=after_s)

    return run
