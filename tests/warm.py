"""Runs ``gpuctl`` in processes that need not import anything: forks of one that has imported it all.

A command spends more on its imports than on its work. A server imports them once; for each command it forks a child
that gets the caller's arguments, working directory, environment and streams, calls the program's own ``main`` and
ends. So a command still has a process of its own, with signals, exit code and descriptors, and leaves nothing
behind; what it has not is an interpreter's start and end. `can_run` says which environments need those.

As a program it stands in for ``gpuctl`` in a shell: ``python -ISE tests/warm.py SOCKET argument...``.
"""

from __future__ import annotations

import json
import os
import signal
import socket
import sys
from contextlib import suppress
from pathlib import Path

if False:  # typing.TYPE_CHECKING: stand-ins start a hundred times
    from collections.abc import Callable, Mapping, Sequence
    from subprocess import CompletedProcess, Popen
    from typing import TextIO

_READ_AT_THE_START = (
    "ARROW", "DUCKDB", "GOTO", "HOME", "KMP", "LANG", "LC_", "LD_", "MALLOC", "MKL", "MPL", "NPY", "NUMBA",
    "OMP", "OPENBLAS", "POLARS", "PYTHON", "RAYON", "VECLIB", "XDG",
)  # fmt: skip
"""What the variables begin with that the interpreter or a library reads once, at its start.

Not _RJEM_MALLOC_CONF: Polars sets it where it is imported, in a worker that has collected tests, but not in the process
that began the server.
"""
_HEAVY = (
    "duckdb", "hyperscan", "jinja2", "lightgbm", "matplotlib.backends.backend_agg", "matplotlib.backends.backend_svg",
    "matplotlib.figure", "networkx", "numba", "numpy", "polars", "pyarrow.parquet", "rich.progress", "rich.table",
    "scipy.optimize", "scipy.stats", "zstandard",
)  # fmt: skip
GARBAGE = 50_000, 20, 100
"""How rarely Python looks for garbage in tests and their commands; memory is not short."""
REMEMBER = "TESTS_REMEMBER"
"""A variable that names a folder for what is made once of the same inputs (tests/remembered.py)."""
_LONGEST_START_S = 200
MAKE_STORES = "TESTS_MAKE_STORES"
"""A variable that has a command make its store as the program does, not as a copy (tests/new_stores.py)."""


# ---- the server


def serve(place: str, alive: int) -> None:
    """Take commands at a socket until the descriptor ``alive`` is closed at its other end."""
    import gc
    import selectors
    import weakref

    environment = json.dumps(dict(os.environ))
    _import_all()
    _prepare(Path(place).parent)
    # what a parent has is never freed in a child: no page is copied for being looked at
    gc.collect()
    gc.freeze()
    gc.set_threshold(*GARBAGE)
    for each in list(weakref.finalize._registry):
        each.atexit = False
    _take_large_pages()
    door = socket.socket(socket.AF_UNIX)
    door.bind(place)
    door.listen()
    told = Path(f"{place}.environment")
    told.with_suffix(".part").write_text(environment, "utf-8")
    told.with_suffix(".part").rename(told)
    ready = selectors.DefaultSelector()
    ready.register(door, selectors.EVENT_READ)
    ready.register(alive, selectors.EVENT_READ)
    running: dict[int, tuple[int, socket.socket]] = {}  # by what says that it has ended
    callers: dict[socket.socket, int] = {}
    while True:
        for key, _ in ready.select():
            if key.fileobj == alive:
                for pid, _caller in running.values():
                    os.kill(pid, signal.SIGKILL)
                os._exit(0)
            elif key.fileobj is door:
                caller, _ = door.accept()
                try:
                    pid = _start(caller, [door, *callers], [alive, ready.fileno(), *running])
                except (OSError, ValueError):  # has gone before it said what it wants
                    caller.close()
                    continue
                ended = os.pidfd_open(pid)
                running[ended], callers[caller] = (pid, caller), pid
                with suppress(OSError):
                    caller.sendall(f"{pid}\n".encode())
                ready.register(ended, selectors.EVENT_READ)
                ready.register(caller, selectors.EVENT_READ)
            elif key.fd in running:
                pid, caller = running.pop(key.fd)
                code = os.waitstatus_to_exitcode(os.waitpid(pid, 0)[1])
                ready.unregister(key.fd)
                os.close(key.fd)
                if caller in callers:
                    del callers[caller]
                    ready.unregister(caller)
                    with suppress(OSError):  # has gone at this very moment
                        caller.sendall(f"{code}\n".encode())
                    caller.close()
            elif key.fileobj in callers:
                # has gone, and with it whoever wanted to know
                caller = key.fileobj
                os.kill(callers.pop(caller), signal.SIGKILL)
                ready.unregister(caller)
                caller.close()


def _import_all() -> None:
    """Import all that a command may: libraries first, then each module of ours."""
    import importlib

    root = Path(__file__).resolve().parents[1]
    for name in _HEAVY:
        importlib.import_module(name)
    for room in ("gpuctl", "queries", "predictors", "reports"):
        for file in sorted((root / room).rglob("*.py")):
            words = file.relative_to(root).with_suffix("").parts
            words = words if words[0] == "gpuctl" else ("gpuctl", *words)
            if all(word.isidentifier() for word in words) and words[-1] != "__main__":
                importlib.import_module(".".join(words).removesuffix(".__init__"))


def _prepare(folder: Path) -> None:
    """Make what every command makes for itself and none changes: Numba's types, loaded code, templates, tables.

    No data frame, and no database that has threads: a fork would have locks of theirs, and not the threads.
    """
    import ast
    import functools
    from io import BytesIO

    import typer.core
    import typer.main
    from matplotlib.figure import Figure

    from gpuctl.analyze import racks, registry, shared_sql
    from gpuctl.cli.main import app
    from gpuctl.ingest.pipeline.registry import all_formats
    from gpuctl.joblogs import table
    from gpuctl.replay.policies import installed as installed_policies
    from gpuctl.reports import html
    from gpuctl.store import schema
    from tests import databases, new_stores, remembered  # noqa: F401 - children find it among the modules

    _load_code()
    table.load()
    # which packages there are: those on another path are found by an interpreter of its own
    registry.known()
    all_formats()
    installed_policies()
    for name in ("population", "counts"):
        shared_sql.numbers(name)
    # the library compiles what it looks at its arguments with
    racks.infer_racks([["a", "b"], ["b", "c"]])
    newest, made = len(schema.MIGRATIONS), schema.ours
    known = schema.Objects(*ast.literal_eval(_told_by_a_child(lambda: tuple(made(newest)))))
    schema.ours = functools.cache(lambda version: known if version == newest else made(version))
    _told_by_a_child(lambda: new_stores.empty(folder / "empty.duckdb"))
    new_stores.copy(folder / "empty.duckdb")
    databases.hand_down(3)
    for template in (Path(html.__file__).parent / "templates").glob("*.html*"):
        html._environment().get_template(template.name)
    figure = Figure()
    figure.add_subplot().plot([0, 1], label="text")
    figure.legend()
    figure.savefig(BytesIO(), format="svg")
    typer.main.get_command = functools.cache(typer.main.get_command)
    typer.main.get_command(app)


def _told_by_a_child(tell: Callable[[], object]) -> str:
    """The ``repr`` of what a fork finds out, whose threads end with it."""
    end, other = os.pipe()
    if not os.fork():
        with os.fdopen(other, "w") as file:
            file.write(repr(tell()))
        os._exit(0)
    os.close(other)
    with os.fdopen(end) as file:
        told = file.read()
    os.wait()
    return told


def _take_large_pages() -> None:
    """Have the kernel put what is in memory into pages of 2 MB: to fork and to end is work for each page.

    Without it a fork of half a gigabyte costs 27 ms, with it 11. Where the kernel (below 6.1) cannot, all stays.
    """
    import ctypes

    large, collapse = 1 << 21, 25  # MADV_COLLAPSE, which Python does not name
    advise = ctypes.CDLL(None).madvise
    advise.argtypes = [ctypes.c_void_p, ctypes.c_size_t, ctypes.c_int]
    with suppress(OSError):
        for line in Path("/proc/self/maps").read_text().splitlines():
            where, rights, _, _, inode, *_ = line.split()
            begin, end = (int(each, 16) for each in where.split("-"))
            begin, end = -(-begin // large) * large, end // large * large
            if rights == "rw-p" and inode == "0":
                for part in range(begin, end, large):
                    advise(part, large, collapse)


def _load_code() -> None:
    """Load the compiled code that `make kernels` and earlier tests have left, as the first call of each would."""
    from gpuctl.compiled import jit, loading

    loading.load_compiler()
    from gpuctl.compiled.compiler import cpu_target

    codegen = cpu_target.target_context.codegen()
    modules = [module for name, module in sys.modules.items() if name.startswith("gpuctl.")]
    loops = {id(each): each for module in modules for each in vars(module).values() if isinstance(each, jit.Loop)}
    for loop in loops.values() if not loading.UNCOMPILED else ():
        cache = loop.fast._cache
        for key in cache._cache_file._load_index():
            if key == cache._index_key(key[0], codegen):
                loop.fast.compile(key[0])


def _start(caller: socket.socket, doors: Sequence[socket.socket], descriptors: Sequence[int]) -> int:
    """Fork a child that runs what a caller sends; returns its id."""
    head, streams, _, _ = socket.recv_fds(caller, 8, 3)
    if len(streams) != 3:
        raise ConnectionAbortedError
    left, parts = int.from_bytes(head, "big"), []
    while left:
        parts.append(caller.recv(left))
        left -= len(parts[-1])
        if not parts[-1]:
            raise ConnectionAbortedError
    pid = os.fork()
    if not pid:
        for door in (caller, *doors):
            door.close()
        for number in descriptors:
            os.close(number)
        _child(json.loads(b"".join(parts)), streams)
    for number in streams:
        os.close(number)
    return pid


def _child(told: dict[str, list[str] | dict[str, str] | str], streams: list[int]) -> None:
    code = 70
    try:
        for number, stream in enumerate(streams):
            os.dup2(stream, number)
            os.close(stream)
        sys.stdin, sys.stdout, sys.stderr = map(_opened_anew, (sys.stdin, sys.stdout, sys.stderr))
        import time

        signal.signal(signal.SIGINT, signal.default_int_handler)
        os.chdir(str(told["cwd"]))
        os.environ.clear()
        os.environ.update(told["env"])
        time.tzset()
        sys.path[0] = str(told["cwd"])
        sys.argv = ["gpuctl", *told["args"]]
        if os.environ.pop(MAKE_STORES, ""):
            sys.modules["tests.new_stores"].make()
        if REMEMBER in os.environ:
            sys.modules["tests.remembered"].begin(Path(os.environ.pop(REMEMBER)))
        code = _as_the_interpreter_ends(sys.modules["gpuctl.cli.main"].main)
    finally:
        os._exit(code)


def _opened_anew(stream: TextIO) -> TextIO:
    """A standard stream as the interpreter makes it: whether it can seek or is a terminal is seen when it is made."""
    number = stream.fileno()
    return open(
        number, stream.mode, encoding=stream.encoding, errors=stream.errors, closefd=False,
        buffering=1 if number == 2 or os.isatty(number) else -1,
    )  # fmt: skip


def _as_the_interpreter_ends(main: object) -> int:
    """Call it, and do what the interpreter does at its end but for taking everything down."""
    import atexit
    import threading
    import traceback

    code = 0
    try:
        main()
    except SystemExit as end:
        code = end.code if isinstance(end.code, int) else int(end.code is not None)
    except BaseException:
        traceback.print_exc()
        code = 1
    threading._shutdown()
    atexit._run_exitfuncs()
    for stream in (sys.stdout, sys.stderr):
        stream.flush()
    return code


# ---- the caller


def can_run(environment: Mapping[str, str], servers: Mapping[str, str]) -> bool:
    """Whether a command with this environment runs in a child as it would alone: nothing read at the start differs."""
    return all(
        environment.get(name) == servers.get(name)
        for name in {*environment, *servers}
        if name.startswith(_READ_AT_THE_START)
    )


def call(
    place: str, arguments: Sequence[str], cwd: str, environment: Mapping[str, str], streams: Sequence[int]
) -> tuple[socket.socket, int]:
    """Have a command started; the connection that will give its exit code, and its process."""
    server = socket.socket(socket.AF_UNIX)
    server.connect(place)
    request = json.dumps({"args": list(arguments), "cwd": cwd, "env": dict(environment)}).encode()
    socket.send_fds(server, [len(request).to_bytes(8, "big")], list(streams))
    server.sendall(request)
    return server, int(_line(server))


def ended(server: socket.socket) -> int:
    """Wait for the exit code; of a signal the negative number."""
    with server:
        return int(_line(server))


def _line(server: socket.socket) -> bytes:
    found = b""
    while not found.endswith(b"\n"):
        more = server.recv(1)
        if not more:
            sys.exit("the server of tests/warm.py has gone")
        found += more
    return found


class Warm:
    """A server of forks in a folder; whoever begins it has it end, others wait until it answers."""

    def __init__(self, folder: os.PathLike[str], root: os.PathLike[str]) -> None:
        self.place = f"{os.fspath(folder)}/warm"
        self._root = os.fspath(root)
        self._environment: dict[str, str] = {}
        self._server: Popen[bytes] | None = None

    def begin(self) -> None:
        """Start it, and do not wait until it has imported everything."""
        import subprocess

        environment = {**os.environ, "PYTHONPATH": self._root}
        theirs, self._alive = os.pipe()
        self._server = subprocess.Popen(
            [sys.executable, "-c", f"from tests import warm; warm.serve({self.place!r}, {theirs})"],
            env=environment, pass_fds=[theirs], stdin=subprocess.DEVNULL, stdout=subprocess.DEVNULL,
        )  # fmt: skip
        os.close(theirs)

    def start(self) -> dict[str, str]:
        """Wait until it answers; the environment it was started in."""
        import time

        told = Path(f"{self.place}.environment")
        until = time.monotonic() + _LONGEST_START_S
        while not self._environment:
            if told.exists():
                self._environment = json.loads(told.read_text("utf-8"))
            elif time.monotonic() > until or (self._server and self._server.poll() is not None):
                sys.exit("the server of tests/warm.py does not start")
            else:
                time.sleep(0.02)
        return self._environment

    def stop(self) -> None:
        """Have it end."""
        if self._server is not None:
            os.close(self._alive)
            self._server.wait(30)

    def run(
        self, arguments: Sequence[str], *, cwd: str, environment: Mapping[str, str], timeout_s: float
    ) -> CompletedProcess[str]:
        """Run a command as `subprocess.run` would with both outputs captured as text and nothing to read."""
        import subprocess
        import time

        out_end, out = os.pipe()
        err_end, err = os.pipe()
        nothing = os.open(os.devnull, os.O_RDONLY)
        until = time.monotonic() + timeout_s
        try:
            server, pid = call(self.place, arguments, cwd, environment, (nothing, out, err))
        finally:
            for number in (nothing, out, err):
                os.close(number)
        try:
            texts = _read_all((out_end, err_end), until)
        except TimeoutError:
            os.kill(pid, signal.SIGKILL)
            server.close()
            raise subprocess.TimeoutExpired(list(arguments), timeout_s) from None
        return subprocess.CompletedProcess(["gpuctl", *arguments], ended(server), *texts)

    def kill(
        self, arguments: Sequence[str], *, cwd: str, environment: Mapping[str, str], after_s: float
    ) -> float | None:
        """Run a command and kill it; after how many seconds it had ended by then, or None where it was killed."""
        import select
        import time

        nothing = os.open(os.devnull, os.O_RDWR)
        begun = time.monotonic()
        try:
            server, pid = call(self.place, arguments, cwd, environment, (nothing, nothing, nothing))
        finally:
            os.close(nothing)
        if select.select([server], [], [], after_s)[0]:
            ended(server)
            return time.monotonic() - begun
        with suppress(ProcessLookupError):  # it has ended at this very moment
            os.kill(pid, signal.SIGKILL)
        ended(server)
        return None


def _read_all(ends: Sequence[int], until: float) -> list[str]:
    """What comes out of some pipes until all are closed, as text."""
    import selectors
    import time

    found: dict[int, list[bytes]] = {end: [] for end in ends}
    with selectors.DefaultSelector() as ready:
        for end in ends:
            ready.register(end, selectors.EVENT_READ)
        try:
            while ready.get_map():
                some = ready.select(max(0.0, until - time.monotonic()))
                if not some:
                    raise TimeoutError
                for key, _ in some:
                    part = os.read(key.fd, 1 << 16)
                    found[key.fd].append(part)
                    if not part:
                        ready.unregister(key.fd)
        finally:
            for end in ends:
                os.close(end)
    return [b"".join(found[end]).decode().replace("\r\n", "\n").replace("\r", "\n") for end in ends]


def stand_in(place: str) -> str:
    """The text of a program that stands in for ``gpuctl``, for a shell: from a server where that gives the same."""
    return f'#!/bin/sh\nexec {sys.executable} -ISE {__file__} {place} "$@"\n'


def _is_plain(number: int) -> bool:
    """Whether a descriptor is open, and no terminal."""
    with suppress(OSError):
        os.fstat(number)
        return not os.isatty(number)
    return False


def _stand_in(place: str, arguments: list[str]) -> int:
    # before anything is opened: its number would be that of a stream that is closed
    plain = all(map(_is_plain, (0, 1, 2)))
    servers = json.loads(Path(f"{place}.environment").read_text("utf-8"))
    if not can_run(os.environ, servers) or not plain:
        os.execv(sys.executable, [sys.executable, "-m", "gpuctl", *arguments])
    server, pid = call(place, arguments, str(Path.cwd()), os.environ, (0, 1, 2))
    for number in (signal.SIGINT, signal.SIGTERM, signal.SIGHUP):
        signal.signal(number, lambda number, _: os.kill(pid, number))
    code = ended(server)
    return code if code >= 0 else 128 - code


if __name__ == "__main__":
    sys.exit(_stand_in(sys.argv[1], sys.argv[2:]))
