"""The progress line moves while nothing is heard of the work, and is not there where nobody sees it."""

from __future__ import annotations

import os
import pty
import re
import subprocess
import sys
import time

WORK = """
import time
from gpuctl.cli.progress import Bar
with Bar(steps=True) as bar:
    bar.tell("compiling the simulator (once)")
    until = time.monotonic() + 4
    while time.monotonic() < until:  # holds the GIL as a compiler does
        sum(range(10_000))
"""


def test_seconds_follow_on_a_terminal_while_the_work_reports_nothing() -> None:
    ours, theirs = pty.openpty()
    with subprocess.Popen([sys.executable, "-c", WORK], stderr=theirs, env={**os.environ, "TERM": "xterm"}) as work:
        os.close(theirs)
        began, told, seen = time.monotonic(), b"", dict[str, float]()
        while True:
            try:
                told += os.read(ours, 65_536)
            except OSError:  # the other end is closed
                break
            plain = re.sub(r"\x1b\[[0-9;?]*[A-Za-z]", "", told.decode("utf-8", "replace"))
            for second in re.findall(r"compiling the simulator [^\r\n]* (0:00:\d\d)", plain):
                seen.setdefault(second, time.monotonic() - began)
        assert work.wait() == 0
    os.close(ours)
    assert told.startswith(b"compiling the simulator (once)\r\n")
    assert {"0:00:01", "0:00:02"} <= set(seen), told


def test_it_is_one_plain_line_elsewhere() -> None:
    work = WORK.replace("+ 4", "+ 1")
    found = subprocess.run([sys.executable, "-c", work], capture_output=True, check=True, text=True)
    assert (found.stdout, found.stderr) == ("", "compiling the simulator (once)\n")
