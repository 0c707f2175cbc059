"""The first lines of the program: until its modules are imported, Ctrl-C ends it at once and without a word.

Imports nothing but what the interpreter has imported already: before the handler below stands, Ctrl-C is a traceback.
"""

from __future__ import annotations

import os

INTERRUPTED = 130
"""`ExitCode.INTERRUPTED`, whose module is not imported yet."""


def leave(*_signal: object) -> None:
    """End the process on Ctrl-C: nothing has begun that would have to be ended or told of."""
    os._exit(INTERRUPTED)


def main() -> None:
    """Import the program and run it; the entry point of the command ``gpuctl``."""
    try:
        import signal

        # where it is ignored, as in a script that runs in the background, it stays so
        if signal.getsignal(signal.SIGINT) is signal.default_int_handler:
            signal.signal(signal.SIGINT, leave)
        from gpuctl.cli.main import main as run
    except KeyboardInterrupt:  # it came before the handler stood
        leave()
    run(leave)
