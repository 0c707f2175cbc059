"""Calls on workers of Dask: of an existing cluster, or in Slurm jobs submitted for them.

Dask's scheduler, workers and clients send each other pickles: anyone who can connect to one of them can run code as its
user. An existing cluster is therefore trusted by the user (use ``dask+tls://`` on a shared network); one started in
Slurm uses TLS with its own keys.
"""

from __future__ import annotations

import asyncio
import logging
import math
import platform
import shutil
import signal
import socket
import subprocess
import threading
import time
from concurrent.futures import CancelledError
from contextlib import ExitStack
from importlib.metadata import version
from typing import TYPE_CHECKING, Any, TypeVar

from gpuctl import __version__
from gpuctl.core.errors import DependencyError, GpuctlError, InputError, UsageError

if TYPE_CHECKING:
    from collections.abc import Callable, Iterator, Mapping
    from types import ModuleType

    from gpuctl.spread.engine import Engine

    S = TypeVar("S")
    T = TypeVar("T")
    R = TypeVar("R")

PATIENCE_S = 20
"""Timeout of a scheduler's answer."""

LOOK_S = 2.0
"""Idle time until workers are counted, and the interval from then on."""

ALONE_S = 600.0
"""Longest time without a worker at a scheduler's address."""

_LOGGERS = ("distributed", "distributed.client", "distributed.core", "tornado.application", "asyncio")
# shared data go to the scheduler once, and from there to the workers
_LARGE = {"distributed.admin.large-graph-warning-threshold": "1 TiB"}
_ALONE = threading.Lock()


def run(
    work: Callable[[S, T], R], shared: S, tasks: Mapping[str, T], engine: Engine, notify: Callable[[str], None]
) -> Iterator[tuple[str, R]]:
    """Call ``work(shared, task)`` for every task on workers of Dask: see `gpuctl.spread.run.run`.

    Raises:
        DependencyError: Dask is not installed.
        UsageError: there is no Slurm, or it rejects the job.
        InputError: no scheduler answers, it is gone, there is no worker for `ALONE_S`, or workers are killed again and
            again.
        GpuctlError: one that `work` raised, or a worker has other versions.
    """
    dask, distributed = _installed(engine)
    with ExitStack() as stack:
        stack.enter_context(dask.config.set(_LARGE))
        target = _slurm(engine, len(tasks), stack, notify) if engine.kind == "slurm" else engine.address
        client = stack.enter_context(_client(distributed, target))
        data = client.submit(_same, shared, pure=False)
        futures = {
            client.submit(_call, work, _versions(), data, task, pure=False, key=f"gpuctl-{number}-{data.key}"): key
            for number, (key, task) in enumerate(tasks.items())
        }
        stack.callback(_cancelled, client, [data, *futures])
        for future in _completed(distributed, client, list(futures), engine, notify):
            yield futures[future], _result(distributed, future, engine)


def _completed(
    distributed: Any, client: Any, futures: list[Any], engine: Engine, notify: Callable[[str], None]
) -> Iterator[Any]:
    """Yield futures as they finish; without workers, report it and wait for others, in Slurm's queue without limit.

    Raises:
        InputError: no worker comes.
    """
    done = distributed.as_completed(futures)
    alone: float | None = None
    looked = -math.inf
    while not done.is_empty():
        found = done.next_batch(block=False)
        yield from found
        now = time.monotonic()
        if found or now - looked < LOOK_S:
            time.sleep(0 if found else 0.02)
            continue
        looked = now
        if _workers(client):
            alone = None
        elif alone is None:
            alone = now
            limit = "" if engine.kind == "slurm" else f", for {ALONE_S / 60:g} min at most"
            notify(
                f"there is no worker at the moment: waiting for one{limit}; Ctrl-C ends this and keeps finished results"
            )
        elif engine.kind != "slurm" and now - alone > ALONE_S:
            raise InputError(
                f"{engine.address}: no worker for {ALONE_S / 60:g} min",
                hint="start workers with `dask worker HOST:PORT --nthreads 1`, and run the command again: finished "
                "results are reused",
            )


def _workers(client: Any) -> bool:
    """Whether futures were cancelled, which a lost scheduler does to all."""
    try:
        return client.status != "running" or bool(client.nthreads())
    except (OSError, TimeoutError, CancelledError, asyncio.CancelledError):
        return True


def _cancelled(client: Any, futures: list[Any]) -> None:
    """Cancel unfinished futures, unless the scheduler is gone."""
    if client.status == "running":
        client.cancel(futures)


def _same(value: S) -> S:
    return value


def _call(work: Callable[[S, T], R], wanted: dict[str, str], shared: S, task: T) -> R:
    """Run one call in a worker. One at a time: code is compiled and policies are loaded once per process."""
    own = _versions()
    if own != wanted:
        differences = ", ".join(
            f"{name} {own[name]} in place of {wanted[name]}" for name in own if own[name] != wanted[name]
        )
        raise InputError(
            f"the worker on {socket.gethostname()} has {differences}: its results might differ",
            hint="start the workers from an installation with the same versions",
        )
    with _ALONE:
        return work(shared, task)


def _versions() -> dict[str, str]:
    """Versions that results may depend on."""
    return {
        "gpuctl": __version__,
        "Python": ".".join(platform.python_version_tuple()[:2]),
        "machine": platform.machine(),
        **{name: version(name) for name in ("numpy", "numba", "duckdb", "polars")},
    }


def _installed(engine: Engine) -> tuple[ModuleType, ModuleType]:
    try:
        import dask
        import distributed

        if engine.kind == "slurm":
            import cryptography  # noqa: F401

            _jobqueue()
    except ImportError as error:
        raise DependencyError(
            f"--engine {engine.kind} needs packages that are not installed: {error}",
            hint="pip install 'gpuctl-toolkit[dask]'",
        ) from error
    # relevant messages come as exceptions; importing it has set the levels
    for name in _LOGGERS:
        logging.getLogger(name).setLevel(logging.CRITICAL)
    return dask, distributed


def _jobqueue() -> Any:
    """Import dask-jobqueue; its module ``runner`` installs a SIGINT handler that exits as if all were done."""
    answers = signal.getsignal(signal.SIGINT)
    try:
        import dask_jobqueue
    finally:
        signal.signal(signal.SIGINT, answers)
    return dask_jobqueue


def _client(distributed: Any, target: Any) -> Any:
    try:
        return distributed.Client(target, timeout=PATIENCE_S)
    except (OSError, TimeoutError, RuntimeError, ValueError, TypeError) as error:
        raise InputError(
            f"{target}: no scheduler of Dask answers there ({error})",
            hint="start one with `dask scheduler`, and workers with `dask worker HOST:PORT --nthreads 1`",
        ) from error


def _result(distributed: Any, future: Any, engine: Engine) -> Any:
    try:
        return future.result()
    except GpuctlError:
        raise
    except distributed.KilledWorker as error:
        raise InputError(
            f"{error.allowed_failures + 1} workers were killed one after the other at the same task (out of memory?)",
            hint="run the same command again, with workers that have more memory",
        ) from None
    except (CancelledError, asyncio.CancelledError, OSError, TimeoutError) as error:
        raise InputError(
            f"{engine.address or engine.kind}: the connection to the scheduler of Dask is lost",
            hint="run the same command again; finished results are reused",
        ) from error


def _slurm(engine: Engine, tasks: int, stack: ExitStack, notify: Callable[[str], None]) -> Any:
    """A cluster whose workers are Slurm jobs, with ``jobqueue.slurm`` of Dask's configuration."""
    from gpuctl.spread.engine import SLURM_JOBS

    program = shutil.which("sbatch")
    if program is None:
        raise UsageError("--engine slurm: there is no sbatch on this machine", hint="run it where jobs are submitted")
    from dask import config

    jobs_of_slurm = _jobqueue().SLURMCluster
    given = {name: value for name, value in config.get("jobqueue.slurm", {}).items() if value is not None}
    own: dict[str, Any] = {"cores": 1, "processes": 1, "memory": "4 GiB", "shared-temp-directory": "."}
    if engine.folder is not None:
        engine.folder.mkdir(parents=True, exist_ok=True)
        own["shared-temp-directory"] = own["log-directory"] = str(engine.folder.resolve())
    more = {name.replace("-", "_"): value for name, value in own.items() if name not in given}
    if "log_directory" not in more and "log-directory" not in given:
        more["job_extra_directives"] = ["--output=/dev/null", *given.get("job-extra-directives", ())]
    options = {"dashboard": False, "dashboard_address": ":0", **given.get("scheduler-options", {})}
    cluster = stack.enter_context(jobs_of_slurm(security=True, job_name="gpuctl", scheduler_options=options, **more))
    completed = subprocess.run(  # noqa: S603 - a script that Dask wrote
        [program, "--test-only"], input=cluster.job_script(), text=True, capture_output=True, check=False
    )
    if completed.returncode:
        message = completed.stderr.strip().removeprefix("sbatch: error: ")
        raise UsageError(
            f"--engine slurm: Slurm rejects the job: {message}",
            hint="DASK_JOBQUEUE__SLURM__QUEUE=PARTITION, __ACCOUNT, __MEMORY and __WALLTIME set what jobs request",
        )
    count = min(tasks, engine.processes or SLURM_JOBS)
    # jobs that end are replaced
    cluster.adapt(minimum_jobs=count, maximum_jobs=count)
    notify(f"submitted {count:,} jobs to Slurm")
    return cluster
