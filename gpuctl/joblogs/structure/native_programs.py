"""Programs in C++, Rust and Go that end by an exception or a panic."""

from __future__ import annotations

import re
from typing import TYPE_CHECKING

from gpuctl.joblogs.structure.ending import Ending, Format, reason_of, single

if TYPE_CHECKING:
    from collections.abc import Sequence

_WHAT = re.compile(r"\s{1,4}what\(\):")
_RUST_WITHIN = 1


def cxx(lines: Sequence[str], at: int) -> Ending:
    """Read `terminate called`, and the `what()` in the next line, which states more than the class."""
    place = at + 1 if at + 1 < len(lines) and _WHAT.match(lines[at + 1]) else at
    return Ending(place, at, place, reason_of(lines[place]))


def rust(lines: Sequence[str], at: int) -> Ending:
    """Parse a panic: since Rust 1.73 the message is in the line after the location."""
    own = lines[at].rstrip().endswith(":") and at + _RUST_WITHIN < len(lines)
    place = at + _RUST_WITHIN if own else at
    return Ending(place, at, place, reason_of(lines[place]))


FORMATS = (
    Format(
        "cxx",
        (
            rb"terminate called after throwing an instance of '",
            rb"terminating (?:due to|with) uncaught (?:foreign )?exception",
        ),
        cxx,
        "terminate called after throwing an instance of 'Oops'",
        "GCC's libstdc++: __verbose_terminate_handler; LLVM's libc++abi: default handlers",
    ),
    Format(
        "rust",
        (rb"thread '[^'\n]{0,80}' (?:\(\d{1,12}\) )?panicked at ",),
        rust,
        "thread 'main' panicked at src/main.rs:3:5:",
        "doc.rust-lang.org/std/macro.panic.html",
    ),
    Format(
        "rust-main",
        (rb'^Error: (?:[A-Z]\w{1,60}(?: \{|\(|$)|")',),
        single,
        "Error: ParseIntError { kind: InvalidDigit }",
        "doc.rust-lang.org/std/process/trait.Termination.html: Err of main, by its Debug form",
    ),
    Format(
        "go",
        (rb"^[^\n]{0,60}(?:panic: |fatal error: )[^\n]{1,400}$",),
        single,
        "panic: open data.bin",
        "pkg.go.dev/builtin#panic",
    ),
)
