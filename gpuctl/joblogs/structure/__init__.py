"""Formats in which languages, compilers, loggers and launchers report that a program died, one module per family.

Wordings change between versions, formats do not: a traceback ends in the exception's line, whatever its class. A reader
here finds that line; the signatures still decide its meaning. The reader's own reason counts only if no signature
matches the line.
"""

from __future__ import annotations

from typing import TYPE_CHECKING

from gpuctl.joblogs.structure import (
    boxes,
    compilers,
    launchers,
    loggers,
    managed_runtimes,
    native_programs,
    python,
    scripts,
    virtual_machines,
    watchdogs,
    workflows,
)

if TYPE_CHECKING:
    from gpuctl.joblogs.structure.ending import Format

FORMATS: tuple[Format, ...] = (
    python.FORMAT,
    *native_programs.FORMATS,
    *managed_runtimes.FORMATS,
    *scripts.FORMATS,
    *virtual_machines.FORMATS,
    *boxes.FORMATS,
    *workflows.FORMATS,
    *watchdogs.FORMATS,
    *loggers.FORMATS,
    *launchers.FORMATS,
    *compilers.FORMATS,
)
"""All of them; the signature of an ending is `structure-NAME`."""
PREFIX = "structure-"
