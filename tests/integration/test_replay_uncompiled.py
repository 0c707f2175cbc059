"""The same source runs uncompiled, for debugging, and decides alike to the byte."""

from __future__ import annotations

import os
import subprocess
import sys

from tests import replay_digest


def test_compiled_and_uncompiled_decide_alike_whatever_the_parameters() -> None:
    environ = dict(os.environ, NUMBA_DISABLE_JIT="1", PYTHONHASHSEED="7")
    found = subprocess.run(
        [sys.executable, replay_digest.__file__], env=environ, capture_output=True, text=True, check=True, timeout=240
    )
    lines = replay_digest.digests()
    assert found.stdout.splitlines() == lines
    # those that a policy refuses: texts that are neither numbers nor names with numbers
    refused = [line for line in lines if "! " in line]
    assert len(refused) < len(lines) / 6, refused
