"""The tests find the same surroundings wherever they start from (tests/conftest.py)."""

from __future__ import annotations

import os
import subprocess
import sys
from typing import TYPE_CHECKING

if TYPE_CHECKING:
    from pathlib import Path

_DEAF = """
import os, signal, sys
for number in (signal.SIGINT, signal.SIGQUIT, signal.SIGHUP, signal.SIGTERM, signal.SIGCHLD):
    signal.signal(number, signal.SIG_IGN)
signal.pthread_sigmask(signal.SIG_BLOCK, [signal.SIGINT, signal.SIGALRM])
os.umask(0o077)
os.execv(sys.executable, [sys.executable, *sys.argv[1:]])
"""
_LOOK = """
import os, signal

def test_findings():
    # whoever starts the tests may ignore others, such as the real-time ones that thread libraries keep for themselves
    ours = [signal.SIGQUIT, signal.SIGHUP, signal.SIGTERM, signal.SIGCHLD]
    assert [number for number in ours if signal.getsignal(number) is signal.SIG_IGN] == []
    assert signal.getsignal(signal.SIGINT) is signal.default_int_handler
    assert signal.pthread_sigmask(signal.SIG_BLOCK, []) == set()
    assert os.umask(0o022) == 0o022
"""


def test_signals_and_umask_are_the_usual_ones(root: Path, tmp_path: Path) -> None:
    test = tmp_path / "test_look.py"
    test.write_text(_LOOK)
    command = ["-m", "pytest", "-q", "-p", "no:cacheprovider", "-c", root / "pyproject.toml", "--rootdir", tmp_path]
    done = subprocess.run(
        [sys.executable, "-c", _DEAF, *command, "-p", "tests.conftest", test],
        cwd=tmp_path, env={**os.environ, "PYTHONPATH": str(root)}, stdin=subprocess.DEVNULL, capture_output=True,
        text=True, check=False, timeout=120,
    )  # fmt: skip
    assert done.returncode == 0, done.stdout + done.stderr
