"""Whatever a notebook has set up stays as it is after every public call."""

from __future__ import annotations

import os
import subprocess
import sys
from typing import TYPE_CHECKING

import gpuctl

if TYPE_CHECKING:
    from pathlib import Path

PROGRAM = '''
import decimal, faulthandler, gc, locale, logging, multiprocessing, os, random, signal, sys, threading, tempfile
import time, warnings

import matplotlib, numba, numpy, polars

numba.config.THREADING_LAYER = "workqueue"
numba.config.CACHE_DIR = os.path.join(os.getcwd(), "numba")
numba.set_num_threads(1)
polars.Config.set_tbl_rows(3)
polars.Config.set_fmt_float("full")
matplotlib.use("pdf")
matplotlib.rcParams.update({"font.size": 17.0, "axes.grid": True, "savefig.dpi": 33})
warnings.simplefilter("error", DeprecationWarning)
warnings.filterwarnings("ignore", message="mine")
logging.basicConfig(level=logging.INFO)
logging.getLogger("gpuctl").setLevel(logging.CRITICAL)
signal.signal(signal.SIGTERM, lambda *_: None)
signal.signal(signal.SIGINT, lambda *_: None)
locale.setlocale(locale.LC_ALL, "C.UTF-8")
random.seed(7)
numpy.random.seed(7)
numpy.seterr(all="raise", under="ignore")
numpy.set_printoptions(precision=3)
decimal.getcontext().prec = 7
sys.excepthook = lambda *found: sys.__excepthook__(*found)
threading.excepthook = lambda *_: None
gc.set_threshold(123, 4, 5)
gc.disable()
sys.setrecursionlimit(1234)
os.environ["MINE"] = "yes"


def settings():
    """Everything that a library might change, by name."""
    layers = {name: repr(getattr(numba.config, name)) for name in dir(numba.config) if name.isupper()}
    numbers = (getattr(signal, name) for name in dir(signal) if name.startswith("SIG") and name[3] != "_")
    found = {
        "numba.config": layers, "numba threads": numba.get_num_threads(),
        "polars": polars.Config.state(), "polars threads": polars.thread_pool_size(),
        "matplotlib": dict(matplotlib.rcParams), "backend": matplotlib.get_backend(),
        "warnings": [list(map(repr, warnings.filters)), warnings.showwarning],
        "logging": [list(logging.root.handlers), logging.root.level, logging.lastResort, logging.raiseExceptions,
                    logging.root.manager.disable],
        # a handler that prints nothing is a library's way to print nothing
        "gpuctl's logger": [[h for h in logging.getLogger("gpuctl").handlers if type(h) is not logging.NullHandler],
                            logging.getLogger("gpuctl").level],
        "signals": {number: signal.getsignal(number) for number in numbers},
        "signal mask": signal.pthread_sigmask(signal.SIG_BLOCK, []),
        "locale": locale.setlocale(locale.LC_ALL), "environment": dict(os.environ), "zone": time.tzname,
        "random": random.getstate(), "numpy random": repr(numpy.random.get_state()),
        "numpy errors": numpy.geterr(), "numpy printing": repr(numpy.get_printoptions()),
        "decimal": repr(decimal.getcontext()),
        "hooks": [sys.excepthook, sys.unraisablehook, threading.excepthook, sys.displayhook, sys.breakpointhook],
        "garbage": [gc.isenabled(), gc.get_threshold(), gc.get_freeze_count(), list(gc.callbacks)],
        "limits": [sys.getrecursionlimit(), sys.getswitchinterval(), sys.get_int_max_str_digits()],
        "folder": [os.getcwd(), tempfile.gettempdir()],
        "imports": [list(sys.path), list(sys.meta_path), list(sys.path_hooks), sys.dont_write_bytecode],
        "processes": multiprocessing.get_start_method(allow_none=True),
        "streams": [sys.stdout, sys.stderr, sys.stdin], "main": [sys.modules["__main__"], sys.argv],
        "profile": [sys.gettrace(), sys.getprofile(), faulthandler.is_enabled()],
    }
    old = os.umask(0o022)
    os.umask(old)
    return {**found, "umask": old}


import gpuctl

from gpuctl.plugins import RankPolicy


class Narrowest(RankPolicy):
    name = "narrowest"

    def rank(self, jobs):
        return jobs.gpus


def calls():
    yield "ingest", lambda: gpuctl.ingest(PHILLY, "philly.duckdb")
    yield "open", lambda: gpuctl.open(polars.read_csv(JOBS)).close()
    yield "sql", lambda: gpuctl.open("philly.duckdb").sql("SELECT * FROM held")
    results = {}

    def analyze():
        results["trace"] = gpuctl.analyze("philly.duckdb")
        str(results["trace"])

    yield "analyze", analyze
    yield "figure", lambda: results["trace"].figure("wait-cdf").save("wait.png")
    yield "pages", lambda: (results["trace"].to_html("page.html"), results["trace"].to_json("result.json"))
    yield "explain", lambda: str(gpuctl.explain(JOBS, "job007"))
    yield "classify", lambda: gpuctl.classify("torch.cuda.OutOfMemoryError: CUDA out of memory\\n")

    def replay():
        policies = ["fifo", "tiresias", Narrowest]
        results["replay"] = gpuctl.replay(JOBS, "4x8", policies, failures=0.05, checkpoint="none")
        str(results["replay"])

    yield "replay", replay
    yield "sweep", lambda: gpuctl.sweep(JOBS, "4x8", ["fifo", "srtf"], seeds=[1, 2], processes=2)
    yield "plan", lambda: str(gpuctl.plan(JOBS, "4x8", draws=10, policy="fifo"))
    yield "simulation", lambda: gpuctl.Simulation(JOBS, "4x8", "srtf").advance()
    yield "train", lambda: gpuctl.train("runtime", "philly.duckdb", "model")
    yield "load_model", lambda: gpuctl.load_model("model").predict(polars.DataFrame({"job_id": ["a"], "gpus": [8]}))
    yield "report", lambda: str(gpuctl.report([results["trace"], results["replay"]]))


if __name__ == "__main__":
    PHILLY, JOBS = sys.argv[1:]
    # SciPy adds filters for its own warnings when it is first imported, by whomever
    import scipy.sparse, scipy.special
    before, done = settings(), set()
    for name, call in calls():
        call()
        done.add(name)
        after = settings()
        for setting, value in before.items():
            if after[setting] != value:
                was, now = value, after[setting]
                if isinstance(was, dict):
                    keys = [key for key in {*was, *now} if was.get(key) != now.get(key)]
                    was, now = ({key: each.get(key) for key in keys} for each in (was, now))
                print(f"{name}: {setting}: {was} -> {now}")
        before = after
    print("called:", *sorted(done))
'''


def test_settings_of_a_notebook_stay(sample_data: Path, root: Path, tmp_path: Path) -> None:
    (tmp_path / "notebook.py").write_text(PROGRAM)
    done = subprocess.run(
        [sys.executable, "notebook.py", sample_data / "philly/cluster_job_log", sample_data / "jobs.csv"],
        cwd=tmp_path, env={**os.environ, "PYTHONPATH": str(root)}, capture_output=True, text=True, check=False,
    )  # fmt: skip
    changes, _, called = done.stdout.rpartition("called: ")
    assert (changes, done.stderr, done.returncode) == ("", "", 0)
    assert set(called.split()) >= {*gpuctl.__all__} - {"Result", "Simulation", "Trace"}
