"""Runs commands within this process."""

from __future__ import annotations

import io
import sys
import traceback
from contextlib import redirect_stderr, redirect_stdout
from typing import NamedTuple

from gpuctl.cli.main import run


class Ended(NamedTuple):
    """How a command ended: its exit code, None where it did not end as a command should; and what it printed."""

    code: int | None
    out: str
    err: str


def command(*arguments: object) -> Ended:
    """Run a command in this process as ``gpuctl`` would."""
    out, err = (io.TextIOWrapper(io.BytesIO(), "utf-8", "backslashreplace", write_through=True) for _ in range(2))
    argv, sys.argv = sys.argv, ["gpuctl", *map(str, arguments)]
    try:
        with redirect_stdout(out), redirect_stderr(err):
            code: int | None = run(["--debug", *sys.argv[1:]])
    except KeyboardInterrupt:
        raise
    except BaseException:  # a panic of Rust is no Exception
        code = None
        err.write(traceback.format_exc())
    finally:
        sys.argv = argv
    texts = [stream.buffer.getvalue().decode() for stream in (out, err)]
    return Ended(code, *texts)
