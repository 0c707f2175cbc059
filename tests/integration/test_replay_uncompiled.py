"""The same source runs uncompiled, for debugging, and decides alike to the byte."""

from __future__ import annotations

import os
import subprocess
import sys

from tests import replay_digest


def test_compiled_and_uncompiled_decide_alike() -> None:
    environ = dict(os.environ, NUMBA_DISABLE_JIT="1", PYTHONHASHSEED="7")
    found = subprocess.run(
        [sys.executable, replay_digest.__file__], env=environ, capture_output=True, text=True, check=True, timeout=240
    )
    assert found.stdout.split() == replay_digest.digests()
