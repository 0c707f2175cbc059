"""Counts the bytes that an interface has received, once a second; runs beside the job, in its network namespace.

``python recorder.py INTERFACE T0 FILE``: T0 is the origin on the monotonic clock, seconds; FILE becomes a CSV of ``t``
(seconds since T0, as the clock said) and ``received``, ``sent`` (bytes since the interface is up). SIGTERM takes one
last sample and ends it.
"""

from __future__ import annotations

import signal
import sys
import time
from pathlib import Path

STEP_S = 1.0


def counters(iface: str) -> tuple[int, int]:
    """Bytes received and sent by an interface of this network namespace."""
    for line in Path("/proc/net/dev").read_text("ascii").splitlines():
        name, _, values = line.partition(":")
        if name.strip() == iface:
            fields = values.split()
            return int(fields[0]), int(fields[8])
    raise SystemExit(f"no interface {iface} in /proc/net/dev")


def main(iface: str, origin: float, file: Path) -> None:
    """Sample until SIGTERM."""
    signal.pthread_sigmask(signal.SIG_BLOCK, {signal.SIGTERM})
    due, ended = origin, False
    with file.open("w", encoding="ascii") as out:
        out.write("t,received,sent\n")
        while not ended:
            # waits for the next second or the signal, whichever is first
            ended = signal.sigtimedwait({signal.SIGTERM}, max(0.0, due - time.monotonic())) is not None
            received, sent = counters(iface)
            out.write(f"{time.monotonic() - origin:.3f},{received},{sent}\n")
            out.flush()
            due += STEP_S


if __name__ == "__main__":
    main(sys.argv[1], float(sys.argv[2]), Path(sys.argv[3]))
