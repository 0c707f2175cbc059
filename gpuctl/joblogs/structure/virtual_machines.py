"""Erlang, Elixir, Common Lisp, Prolog, Nim, Racket, Ada and others: a head, and a message beside or below it."""

from __future__ import annotations

import re
from typing import TYPE_CHECKING

from gpuctl.joblogs.structure.ending import Ending, Format, indented, reason_of, single

if TYPE_CHECKING:
    from collections.abc import Sequence

_MOST = 1000
_DETAILS = 9
_ELIXIR = re.compile(r"\*\* \(([^)]{1,120})\) ?(.{0,1000})")
_CONDITION = re.compile(r"(?:Unhandled |debugger invoked on an? )([\w:*-]{1,80})")
_STACK_OF_ELIXIR = re.compile(r"\s{4}(?:\(|[\w/.-]{1,200}:\d)")


def _said(lines: Sequence[str], at: int, last: int, text: str) -> Ending:
    return Ending(at, at, last, reason_of(text), texts=(text[:_MOST], f"ERROR: {text[:_MOST]}"))


def elixir(lines: Sequence[str], at: int) -> Ending | None:
    """Read `** (Class) message`, with the lines of the message up to the stack."""
    found = _ELIXIR.match(lines[at].strip())
    if found is None:
        return None
    words, last = [found[2]], at
    while last + 1 < len(lines) and last - at < 12 and lines[last + 1][:1] == " ":
        last += 1
        if not _STACK_OF_ELIXIR.match(lines[last]):
            words.append(lines[last].strip())
    return _said(lines, at, last, f"{found[1]}: {' '.join(words)}")


def erlang_report(lines: Sequence[str], at: int) -> Ending | None:
    """Read a report about a process that died: the term in the next lines is its reason."""
    words, last = [], at
    while last + 1 < len(lines) and last - at < 8 and lines[last + 1].strip() and not lines[last + 1].startswith("="):
        last += 1
        words.append(lines[last].strip())
    return _said(lines, at, last, " ".join(words)) if words else None


def lisp(lines: Sequence[str], at: int) -> Ending:
    """Read a condition that nothing handled: its message is indented below the head, or below the thread's name."""
    place = at
    while place + 1 < len(lines) and place - at < 2 and not lines[place].rstrip().endswith(":"):
        place += 1
    words, last = indented(lines, place)
    condition = _CONDITION.match(lines[at].strip())
    return _said(lines, at, last, f"{condition[1] if condition else 'Error'}: {words}")


def prolog(lines: Sequence[str], at: int) -> Ending:
    """Read an error of Prolog: what it says may go on in lines with the same head."""
    head = lines[at].split(":", 1)[0]
    words, last = [lines[at].split(":", 1)[1].strip()], at
    while last + 1 < len(lines) and last - at < 8 and lines[last + 1].startswith(f"{head}:  "):
        last += 1
        words.append(lines[last].split(":", 1)[1].strip())
    return _said(lines, at, last, " ".join(words))


def racket(lines: Sequence[str], at: int) -> Ending | None:
    """Read the lines above a context or a location: a head, and indented details, which name the system's error."""
    head = at - 1
    while head >= 0 and at - head < _DETAILS and lines[head].startswith("  "):
        head -= 1
    if head < 0 or not lines[head].strip():
        return None
    details = [line.strip() for line in lines[head + 1 : at]]
    said = _said(lines, head, at, " ".join([lines[head].strip(), *details]))
    return said._replace(texts=(*said.texts, lines[head].strip(), *details))


def pascal(lines: Sequence[str], at: int) -> Ending:
    """Read an exception, whose class and message follow its address, or the number of an error of the run time."""
    place = at + 1 if lines[at].rstrip().endswith(":") and at + 1 < len(lines) else at
    return Ending(place, at, place, reason_of(lines[place]))


FORMATS = (
    Format(
        "elixir",
        (rb"^\*\* \((?:[A-Z][\w.]{0,80}|EXIT from [^)\n]{1,60}|exit|throw|stop)\)",),
        elixir,
        "** (Acme.Jam) tray 2",
        "hexdocs.pm/elixir: Exception.format",
    ),
    Format(
        "erlang",
        (rb"^(?:escript|\*{1,2}):? exception (?:error|exit|throw): ", rb"init terminating in do_boot"),
        single,
        "escript: exception error: no match of right hand side value tray",
        "erlang.org: escript, erl's init",
    ),
    Format(
        "erlang-report",
        (rb"^(?:=(?:ERROR|CRASH) REPORT==== |Error in process <\d)",),
        erlang_report,
        "Error in process <0.84.0> with exit value:",
        "erlang.org: logger, error_logger",
    ),
    Format(
        "lisp",
        (rb"^Unhandled [A-Z][A-Z0-9:*-]{2,80}[ :]", rb"^debugger invoked on an? [A-Z][A-Z0-9:*-]{2,80}"),
        lisp,
        "Unhandled SIMPLE-ERROR in thread #<SB-THREAD:THREAD {1001}>:",
        "sbcl.org: --disable-debugger",
    ),
    Format(
        "prolog",
        (rb"^(?:Warning|ERROR): (?:-g |[^\s:]{1,200}:\d{1,7}:(?:\d{1,6}:)?)",),
        prolog,
        "ERROR: -g main: Unknown procedure: tray/1",
        "swi-prolog.org: print_message, initialization goals",
    ),
    Format(
        "nim",
        (rb"^(?:Error: )?unhandled exception: ",),
        single,
        "Error: unhandled exception: tray 2 [JamError]",
        "nim-lang.org: lib/system/excpt.nim",
    ),
    Format(
        "ada",
        (rb"^raised [A-Z][\w.]{2,80} : ",),
        single,
        "raised ACME.JAM : run.adb:5 tray 2",
        "gcc.gnu.org: GNAT's last chance handler",
    ),
    Format(
        "racket",
        (rb"^ {2}(?:context|location)\.\.\.:\r?$",),
        racket,
        "  context...:",
        "docs.racket-lang.org: error-display-handler",
    ),
    Format(
        "guile",
        (rb"^(?:ERROR: )?In procedure [^\s:]{1,80}: ?",),
        single,
        "In procedure tray: jam 2",
        "gnu.org/software/guile: exceptions",
    ),
    Format(
        "d",
        (rb"^(?:core|std|object)\.[\w.]{2,80}@[^\s(]{1,200}\(\d{1,7}\): ", rb"^object\.\w{2,60}: "),
        single,
        "object.Exception@run.d(3): tray 2",
        "dlang.org: druntime's rt_trapExceptions",
    ),
    Format(
        "pascal",
        (rb"^(?:Runtime error \d{1,3} at \$|An unhandled exception occurred at \$)",),
        pascal,
        "Runtime error 201 at $0000000000401135",
        "freepascal.org: run time errors",
    ),
    Format("cobol", (rb"^libcob: (?:[^\s:]{1,200}:\d{1,7}: )?error: ",), single, "libcob: error: tray 2", "GnuCOBOL"),
)
