"""Errors of compilers and linkers, which name a file and a line of the user's code."""

from __future__ import annotations

from typing import TYPE_CHECKING

from gpuctl.joblogs.structure.ending import Ending, Format

if TYPE_CHECKING:
    from collections.abc import Sequence


def read(_lines: Sequence[str], at: int) -> Ending:
    """Read one error of a compiler."""
    return Ending(at, at, at, "compiler_error")


FORMATS = (
    Format(
        "compiler",
        (
            # GCC, Clang, gfortran, nvcc's hosts, javac, GHC
            rb"^[^\s:(][^:\n(]{0,300}:\d{1,7}:(?:\d{1,6}(?:-\d{1,6})?:)? (?:fatal )?error: ",
            # bison gives places as line.column
            rb"^[^\s:(][^:\n(]{0,300}:\d{1,7}\.\d{1,6}(?:-[\d.]{1,12})?: error: ",
            # MSVC's style: nvcc, tsc, csc; D, Pascal
            rb"^[^\s(][^\n(]{0,300}\(\d{1,7}(?:, ?\d{1,6})?\):? (?:(?:fatal )?error\b|(?:Fatal|Error): )",
            # Kotlin; Groovy
            rb"^e: [^\s:][^\n:]{0,300}:\d{1,7}:\d{1,6}:? ",
            rb"^[^\s:]{1,300}\.groovy: \d{1,7}: ",
            rb"^error(?:\[E\d{4}\])?: (?:could not compile|aborting due to|linking with)",
            rb"^error\[E\d{4}\]: ",
            rb"^\./[^\s:]{1,200}\.go:\d{1,7}:\d{1,6}: ",
            rb"^(?:collect2|ld|clang|gcc|cc1\w{0,8}): (?:fatal )?error: ",
            rb": undefined reference to `|^ld(?:\.\w{1,5})?: cannot find -l",
        ),
        read,
        "k.cpp:2:35: error: expected ';'",
        "gcc.gnu.org and rustc's, javac's, go's and tsc's own diagnostics",
    ),
)
