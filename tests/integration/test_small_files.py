"""Every option that takes a small file, and files that are none: endless, sparse, silent, links in a circle."""

from __future__ import annotations

import json
import os
import resource
import subprocess
import sys
from pathlib import Path
from typing import TYPE_CHECKING

import pytest

from tests.synthetic_store import make_store

if TYPE_CHECKING:
    from collections.abc import Callable

MEMORY = 6 << 30
"""Of addresses, of which threads and mapped libraries take up the most."""

OPTIONS = {
    "analyze --signatures": ("analyze", "LOGS", "--signatures", "FILE"),
    "classify --signatures": ("classify", "LOGS", "--signatures", "FILE"),
    "ingest --signatures": ("ingest", "LOGS", "--db", "NEW", "--signatures", "FILE"),
    "explain --signatures": ("explain", "j", "LOGS", "--signatures", "FILE"),
    "analyze --quotas": ("analyze", "STORE", "--quotas", "FILE"),
    "analyze --racks": ("analyze", "STORE", "--racks", "FILE"),
    "analyze PATH": ("analyze", "FILE"),
    "explain --quotas": ("explain", "j", "STORE", "--quotas", "FILE"),
    "explain --decisions": ("explain", "j", "STORE", "--decisions", "FILE"),
    "explain PATH": ("explain", "j", "FILE"),
    "replay PATH": ("replay", "FILE", "--policy", "fifo", "--cluster", "4x8"),
    "replay --cluster": ("replay", "JOBS", "--policy", "fifo", "--cluster", "FILE"),
    "replay --quotas": ("replay", "STORE", "--policy", "fifo", "--quotas", "FILE"),
    "replay --racks": ("replay", "STORE", "--policy", "fifo", "--racks", "FILE"),
    "replay --policy": ("replay", "JOBS", "--policy", "FILE:Mine", "--cluster", "4x8"),
    "replay --slurm-conf": ("replay", "JOBS", "--policy", "slurm", "--cluster", "4x8", "--slurm-conf", "FILE"),
    "replay --yarn-conf": ("replay", "JOBS", "--policy", "yarn-fair", "--cluster", "4x8", "--yarn-conf", "FILE"),
    "replay --run-times": ("replay", "JOBS", "--policy", "sjf", "--cluster", "4x8", "--run-times", "FILE"),
    "replay --limits-from": ("replay", "JOBS", "--policy", "easy", "--cluster", "4x8", "--limits-from", "FILE"),
    "report PATH": ("report", "FILE"),
    "report --baseline": ("report", "RESULT", "--baseline", "FILE"),
    "report --anonymise-key": ("report", "RESULT", "--anonymise-key", "FILE"),
    "policies NAME": ("policies", "FILE:Mine"),
    "train runtime PATH": ("train", "runtime", "FILE", "-o", "MODEL"),
    "predict runtime --jobs": ("predict", "runtime", "--model", "CARD", "--jobs", "FILE"),
    "predict runtime PROFILE": ("predict", "runtime", "FILE"),
    "predict runtime --model": ("predict", "runtime", "--model", "BROKEN", "--jobs", "JOBS"),
    "doctor --model": ("doctor", "--model", "BROKEN"),
    "doctor --db": ("doctor", "--db", "FILE"),
    "ingest PATH": ("ingest", "FILE", "--db", "NEW"),
    "classify FILE": ("classify", "FILE"),
}
READ_LOGS = {
    "analyze PATH",
    "explain PATH",
    "ingest PATH",
    "classify FILE",
    "replay PATH",
    "train runtime PATH",
    "predict runtime PROFILE",
}
"""They read logs, of which a hole of a terabyte is one that takes its time."""
SUFFIX = {"--policy": ".py", "NAME": ".py", "report": ".json", "--baseline": ".json"}


def sparse(path: Path) -> None:
    with path.open("wb") as file:
        file.truncate(1 << 40)


def endless(path: Path) -> None:
    path.symlink_to("/dev/zero")


def begun(path: Path) -> None:
    """A sound beginning, of whatever it is for, before a hole."""
    path.write_text('{"schema": 1, "x":\n\n')
    with path.open("r+b") as file:
        file.truncate(1 << 40)


def circle(path: Path) -> None:
    path.symlink_to(path)


KINDS: dict[str, Callable[[Path], object]] = {
    "sparse": sparse,
    "endless": endless,
    "begun": begun,
    "pipe": os.mkfifo,
    "folder": Path.mkdir,
    "circle": circle,
    "empty": Path.touch,
}

PROGRAM = """
import contextlib, io, json, sys
from gpuctl.cli import main
from gpuctl.core import file_io
file_io.IDLE_S, file_io.PIPE_S = 0.2, 0.4
for line in sys.stdin:
    err = io.StringIO()
    out = io.TextIOWrapper(io.BytesIO(), "utf-8")
    with contextlib.redirect_stdout(out), contextlib.redirect_stderr(err):
        code = main.run(json.loads(line))
    print(json.dumps([int(code), err.getvalue()]), flush=True)
"""


@pytest.fixture(scope="module")
def places(tmp_path_factory: pytest.TempPathFactory, sample_data: Path, root: Path) -> dict[str, str]:
    folder = tmp_path_factory.mktemp("small")
    jobs = sample_data / "jobs.csv"
    logs = folder / "logs.txt"
    logs.write_text("RuntimeError: CUDA out of memory\n")
    result = folder / "result.json"
    store = make_store(folder / "store.duckdb")
    done = subprocess.run(
        [sys.executable, "-m", "gpuctl", "replay", jobs, "--policy", "fifo", "--cluster", "4x8", "--json", "--output",
         result], env={**os.environ, "PYTHONPATH": str(root)}, check=True, capture_output=True,
    )  # fmt: skip
    assert done.returncode == 0
    return {
        "LOGS": str(logs), "STORE": str(store), "JOBS": str(jobs), "RESULT": str(result),
        "NEW": str(folder / "new.duckdb"), "MODEL": str(folder / "model"), "CARD": str(folder / "none"),
    }  # fmt: skip


def test_no_small_file_hangs_fills_the_memory_or_is_a_bug(places: dict[str, str], tmp_path: Path, root: Path) -> None:
    """All in one process with little memory; the exit code is that of bad input, or of a wrong command line."""
    commands = {}
    for kind, make in KINDS.items():
        for name, command in OPTIONS.items():
            if name in READ_LOGS and kind in {"sparse", "begun"}:
                continue
            suffix = next((s for word, s in SUFFIX.items() if word in name), ".txt")
            file = tmp_path / f"f{len(commands)}{suffix}"
            make(file)
            broken = tmp_path / f"m{len(commands)}"
            broken.mkdir()
            make(broken / "card.json")
            named = {**places, "FILE": str(file), "FILE:Mine": f"{file}:Mine", "BROKEN": str(broken)}
            commands[kind, name] = [named.get(word, word) for word in command]
    done = subprocess.run(
        [sys.executable, "-c", PROGRAM],
        input="".join(json.dumps(command) + "\n" for command in commands.values()),
        env={**os.environ, "PYTHONPATH": str(root), "NUMBA_DISABLE_JIT": "1", "OMP_NUM_THREADS": "1"},
        preexec_fn=lambda: resource.setrlimit(resource.RLIMIT_AS, (MEMORY, MEMORY)),
        capture_output=True, text=True, check=False, timeout=300, cwd=tmp_path,
    )  # fmt: skip
    answers = [json.loads(line) for line in done.stdout.splitlines()]
    assert len(answers) == len(commands), done.stderr
    wrong = [
        (name, code, said)
        for name, (code, said) in zip(commands, answers, strict=True)
        if code not in ({0, 1, 2, 3, 4} if name[0] in {"empty", "folder"} else {1, 2, 3, 4})
        or "Traceback" in said
        or "gpuctl: out of memory" in said
    ]
    assert not wrong, "\n".join(map(str, wrong))
