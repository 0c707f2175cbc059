"""Scripting and functional languages whose last words are one line, or one above a stack."""

from __future__ import annotations

import re
from typing import TYPE_CHECKING

from gpuctl.joblogs.structure.ending import Ending, Format, above, reason_of, single

if TYPE_CHECKING:
    from collections.abc import Sequence

_USAGE = re.compile(r"usage: ", re.IGNORECASE)
_ABOVE = 8
_RULE = re.compile(r"Error in (?:rule|group|checkpoint) \w")
"""What Snakemake prints in the same form."""
_R_OPEN = re.compile(r"Error in [^\n]{0,300} ?: ?$")


def r(lines: Sequence[str], at: int) -> Ending | None:
    """Parse an error of R: after a long call the message is in the next line."""
    if _RULE.match(lines[at]):
        return None
    place = at + 1 if _R_OPEN.match(lines[at]) and at + 1 < len(lines) else at
    return Ending(place, at, place, reason_of(lines[place]))


def plain_error(lines: Sequence[str], at: int) -> Ending:
    """Parse a line that begins with `error:`; below the program's usage it is about the command line."""
    usage = any(_USAGE.match(line) for line in lines[max(at - _ABOVE, 0) : at])
    return Ending(at, at, at, "wrong_arguments" if usage else reason_of(lines[at]))


def haskell(lines: Sequence[str], at: int) -> Ending:
    """Parse an exception of GHC 9.10 and newer: the message follows its class, after a blank line."""
    place = next((n for n in range(at + 1, min(at + 4, len(lines))) if lines[n].strip()), at)
    return Ending(place, at, place, reason_of(lines[place]))


FORMATS = (
    Format("r", (rb"^Error(?: in [^\n]{0,300})? ?: ?[^\n]{0,400}$",), r, "Error in f(3) : no", "R: ?stop"),
    Format(
        "ocaml",
        (rb"^Fatal error: exception ", rb"^Exception: (?:[A-Z]\w{0,60}\.){0,4}[A-Z]\w{0,60}(?: [^\n]{1,400})?\.\r?$"),
        single,
        'Fatal error: exception Failure("no")',
        "ocaml.org: Printexc",
    ),
    Format(
        "haskell",
        (rb"^CallStack \(from HasCallStack\):|^HasCallStack backtrace:",),
        above,
        "CallStack (from HasCallStack):",
        "hackage: GHC.Stack",
    ),
    Format(
        "haskell-uncaught",
        (rb"^[\w./-]{1,100}: Uncaught exception ",),
        haskell,
        "run: Uncaught exception ghc-internal:GHC.Internal.Exception.ErrorCall:",
        "GHC 9.10's release notes: backtraces of exceptions",
    ),
    Format(
        "perl",
        (rb"^[^\n]{0,400} at [^\s]{1,200} line \d{1,7}(?:, <[^>\n]{1,40}> (?:line|chunk) \d{1,9})?\.\r?$",),
        single,
        "no luck at run.pl line 3.",
        "perldoc -f die",
    ),
    Format(
        "php",
        (rb"^(?:PHP )?Fatal error: {1,2}Uncaught ",),
        single,
        "PHP Fatal error:  Uncaught Oops: no in /jobs/run.php:3",
        "php.net: set_exception_handler",
    ),
    Format("lua", (rb"^stack traceback:\r?$",), above, "stack traceback:", "lua.org: luac's standalone interpreter"),
    Format(
        "ruby",
        (rb"^[^\s:]{1,200}:\d{1,7}:in [`'][^'\n]{1,200}': [^\n]{1,400} \([A-Z][\w:]{1,80}\)",),
        single,
        "run.rb:3:in `go': no (Oops)",
        "ruby-doc.org: Exception#full_message",
    ),
    Format(
        "awk", (rb"^[gm]?awk: [^\n]{0,200}(?:fatal|error): ",), single, "gawk: cmd. line:1: fatal: no", "gawk's manual"
    ),
    Format("julia", (rb"^ERROR: (?:LoadError: )?[A-Z(]",), single, "ERROR: LoadError: Oops(3)", "docs.julialang.org"),
    Format(
        "octave",
        (rb"^error: [^\n]{1,300}$",),
        plain_error,
        "error: no such luck",
        "docs.octave.org: error; programs that print their usage before it",
        (("wrong_arguments", "error"),),
    ),
    Format(
        "fortran",
        (rb"^(?:Fortran runtime error|ERROR STOP|forrtl: severe)",),
        single,
        "ERROR STOP no luck",
        "gcc.gnu.org: libgfortran; Fortran 2018, 11.4",
    ),
    Format(
        "fortran-termination",
        (rb"^Error termination(?:\.|$)",),
        above,
        "Error termination. Backtrace:",
        "gcc.gnu.org: libgfortran, runtime/error.c",
    ),
    # below the message stand the command and where it is
    Format("tcl", (rb"^    while executing\r?$",), above, "    while executing", "tcl-lang.org: errorInfo"),
)
