"""Runs the command line within this process, as a user would with no terminal."""

from __future__ import annotations

import io
import logging
import os
import sys
import time
from contextlib import redirect_stderr, redirect_stdout
from pathlib import Path
from subprocess import CompletedProcess
from typing import TYPE_CHECKING

import pytest

from gpuctl.cli import main

if TYPE_CHECKING:
    from collections.abc import Mapping


def run_command(
    *arguments: object, cwd: Path | None = None, env: Mapping[str, str] | None = None
) -> CompletedProcess[str]:
    """Run one command; afterwards streams, environment, working directory and logging are as they were.

    Args:
        arguments: what follows ``gpuctl``.
        cwd: the working directory.
        env: variables to set meanwhile. Those that an interpreter or a library reads at its start have no effect.
    """
    words = [os.fsdecode(each) if isinstance(each, os.PathLike | bytes) else str(each) for each in arguments]
    out, err = (io.TextIOWrapper(io.BytesIO(), "utf-8", "backslashreplace", write_through=True) for _ in range(2))
    # as Python does with warnings that nobody handles; under pytest somebody does
    warnings = logging.StreamHandler(err)
    warnings.setLevel(logging.WARNING)
    root = logging.getLogger()
    root.addHandler(warnings)
    try:
        with (
            pytest.MonkeyPatch.context() as patch,
            redirect_stdout(out), redirect_stderr(err),
            Path(os.devnull).open(encoding="utf-8") as nothing,
        ):  # fmt: skip
            patch.setattr(sys, "argv", ["gpuctl", *words])
            patch.setattr(sys, "stdin", nothing)
            patch.chdir(cwd or Path.cwd())
            for name, value in (env or {}).items():
                patch.setenv(name, value)
            time.tzset()
            code = main.run(words)
    finally:
        time.tzset()
        root.removeHandler(warnings)
    return CompletedProcess(["gpuctl", *words], code, _text(out), _text(err))


def _text(stream: io.TextIOWrapper) -> str:
    """What was printed, with the ends of lines as `subprocess.run` gives them."""
    stream.seek(0)
    return io.TextIOWrapper(stream.buffer, "utf-8").read()
