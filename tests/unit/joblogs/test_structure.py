"""How languages, loggers and launchers say that a program died: each format's real shape, read by its reader."""

from __future__ import annotations

import io
import json
import re
import tracemalloc

import pytest

from gpuctl.core.states import State
from gpuctl.joblogs import learned
from gpuctl.joblogs.classify import LEARNED, classify
from gpuctl.joblogs.evidence import Facts, Verdict
from gpuctl.joblogs.scan import CHUNK, Scanner
from gpuctl.joblogs.structure import FORMATS
from gpuctl.joblogs.structure.ending import messages
from gpuctl.joblogs.structure.library_areas import area
from gpuctl.joblogs.table import load, reading_ids
from tests.signatures import scanner, table

FAILED = Facts(state=State.FAILED, exit_code=1)


def verdict(text: str, facts: Facts | None = FAILED) -> Verdict:
    scan = scanner().scan(io.BytesIO(text.encode()))
    return classify([*scan.matches, *scan.telling], table(), facts)


PYTHON = """step 1
Traceback (most recent call last):
  File "/jobs/run.py", line 9, in <module>
    go(3)
    ~~^^^
  File "/jobs/run.py", line 4, in go
    raise Stuck(n)
widgets.Stuck: belt 3
"""
LOGS = {
    "python": (PYTHON, "program_error", "widgets.Stuck: belt 3"),
    # the class is generic, the library that raised it is not
    "python area": (
        PYTHON.replace(
            '/jobs/run.py", line 4, in go', '/opt/lib/python3.11/site-packages/h5py/_hl/files.py", line 7, in f'
        ).replace("widgets.Stuck: belt 3", "ValueError: nothing to see here"),
        "incorrect_inputs",
        "ValueError: nothing to see here",
    ),
    "python cause": (
        PYTHON.replace("widgets.Stuck: belt 3", "FileNotFoundError: [Errno 2] No such file or directory: 'v.txt'")
        + "\nThe above exception was the direct cause of the following exception:\n\n"
        + PYTHON[7:],
        "incorrect_inputs",
        "FileNotFoundError: [Errno 2] No such file or directory: 'v.txt'",
    ),
    "cxx": (
        "terminate called after throwing an instance of 'Lost'\n  what():  ring broken\n",
        "program_error",
        "  what():  ring broken",
    ),
    # the message says more than the class
    "cxx message": (
        "terminate called after throwing an instance of 'Lost'\n  what():  cannot find mesh.dat\n",
        "incorrect_inputs",
        "cannot find mesh.dat",
    ),
    "rust": (
        "go\nthread 'main' panicked at src/main.rs:3:5:\nthe scale tipped\nnote: run\n",
        "program_error",
        "the scale tipped",
    ),
    "rust system": (
        "thread 'main' panicked at src/main.rs:3:5:\nno disk: Os { code: 28, kind: StorageFull, message: \"x\" }\n",
        "disk_full",
        None,
    ),
    "go": (
        "panic: the ring is out of order\n\ngoroutine 1 [running]:\nmain.main()\n",
        "program_error",
        "panic: the ring is out of order",
    ),
    "jvm": (
        'Exception in thread "main" org.acme.Late: slot 4\n\tat org.acme.Main.go(Main.java:3)\n'
        "Caused by: org.acme.Jam: tray 2\n"
        "\tat org.acme.Main.in(Main.java:9)\n\t... 1 more\n",
        "program_error",
        "Caused by: org.acme.Jam: tray 2",
    ),
    "dotnet": ("Unhandled exception. Acme.Jam: tray 2\n   at Acme.Main() in /r/p.cs:line 3\n", "program_error", None),
    "node": (
        "/jobs/run.js:3\n  throw new Gone('x')\n  ^\n\nGone [Error]: lease lost\n    at go (/jobs/run.js:3:7)\n"
        "    at Object.<anonymous> (/jobs/run.js:5:1)\n",
        "program_error",
        None,
    ),
    "r": (
        "Error in go(1) : left shoe lost\nCalls: go\nExecution halted\n",
        "program_error",
        "Error in go(1) : left shoe lost",
    ),
    "ocaml": ('Fatal error: exception Failure("house of cards")\n', "program_error", None),
    "ocaml system": (
        'Fatal error: exception Sys_error("w.dat: No such file or directory")\n',
        "incorrect_inputs",
        None,
    ),
    "haskell": (
        "run: the spool is crooked\nCallStack (from HasCallStack):\n  error, called at run.hs:3:8\n",
        "program_error",
        "run: the spool is crooked",
    ),
    "perl": ("the spool is crooked at run.pl line 3.\n", "program_error", None),
    "php": ("PHP Fatal error:  Uncaught Off: pump at rest in /j/run.php:3\n", "program_error", None),
    "lua": (
        "lua5.4: run.lua:1: the belt is slack\nstack traceback:\n\t[C]: in function 'error'\n",
        "program_error",
        "lua5.4: run.lua:1: the belt is slack",
    ),
    "ruby": ("run.rb:3:in `go': tray 2 (Jam)\n\tfrom run.rb:5:in `<main>'\n", "program_error", None),
    "awk": ("gawk: run.awk:1: fatal: the belt is slack\n", "program_error", None),
    "compiler": ("k.f90:3:12: error: the belt is slack\n", "compiler_error", None),
    "json": (
        '{"level": "info", "event": "boot"}\n{"level": "critical", "event": "row", "exc_type": "PermissionError", '
        '"exc_value": "[Errno 13] Permission denied: \'/x\'"}\n',
        "permission_error",
        None,
    ),
    "critical": ("2026-11-25 10:00:00,001 CRITICAL run: belt three is slack\n", "program_error", None),
    "elixir": (
        "go\n** (Acme.Jam) the belt is slack\n    run.exs:3: (file)\n    (elixir 1.14.0) lib/code.ex:1245: Code.f/1\n",
        "program_error",
        "** (Acme.Jam) the belt is slack",
    ),
    "erlang file": (
        "escript: exception error: no match of right hand side value {error,enoent}\n",
        "incorrect_inputs",
        None,
    ),
    "lisp": (
        "go\n"
        'Unhandled SIMPLE-ERROR in thread #<SB-THREAD:THREAD "main thread" RUNNING {1001}>:\n'
        "  checksum of tray 2 is wrong\n\nBacktrace for: #<SB-THREAD:THREAD>\n0: (SB-DEBUG::DEBUGGER-DISABLED-HOOK)\n",
        "integrity_mismatch",
        None,
    ),
    "prolog": (
        "Warning: /jobs/run.pl:3:\nWarning:    Goal (initialization) raised exception:\n",
        "program_error",
        None,
    ),
    "nim": (
        "/jobs/run.nim(3) run\nError: unhandled exception: the belt is slack [JamError]\n",
        "program_error",
        "Error: unhandled exception: the belt is slack [JamError]",
    ),
    "tcl": (
        'the belt is slack\n    while executing\n"error {the belt is slack}"\n    (file "run.tcl" line 3)\n',
        "program_error",
        "the belt is slack",
    ),
    "fortran backtrace": (
        "the belt is slack\n\nError termination. Backtrace:\n#0  0x7f1c\n",
        "program_error",
        "the belt is slack",
    ),
    "box of usage": (
        "usage: run.py [-h]\n\n╭─ Parsing error ───────────────╮\n"
        "│ Argument --rate: no number:   │\n│ 'fast'                        │\n"
        "╰───────────────────────────────╯\n",
        "wrong_arguments",
        None,
    ),
    "traceback in a box": (
        "╭───────────── Traceback (most recent call last) ──────────────╮\n"
        "│ /jobs/run.py:9 in <module>                   │\n"
        "│                                              │\n"
        "╰──────────────────────────────────────────────╯\nwidgets.Stuck: belt 3\n",
        "program_error",
        "widgets.Stuck: belt 3",
    ),
    "placed error": (
        "MissingInputException in rule score in file /jobs/Snakefile, line 3:\n"
        "Missing input files for rule score:\n    x.csv\n",
        "incorrect_inputs",
        None,
    ),
    "faulthandler": (
        'Timeout (0:00:02)!\nThread 0x00007f1c (most recent call first):\n  File "/jobs/run.py", line 3 in wait\n',
        "hang",
        "Timeout (0:00:02)!",
    ),
    # a parent's exception about an exit code says nothing of why
    "child": (
        PYTHON.replace("widgets.Stuck: belt 3", "StageFailed: stage 'score' failed with code 17"),
        "step_failed",
        None,
    ),
}


@pytest.mark.parametrize(("text", "reason", "evidence"), LOGS.values(), ids=LOGS)
def test_a_format_names_the_line_and_signatures_state_what_it_means(
    text: str, reason: str, evidence: str | None
) -> None:
    """Beside ordinary output, with a rank before each line, too."""
    for log in (text, "hello\n" + "".join(f"[rank3]: {line}\n" for line in text.splitlines())):
        found = verdict(log)
        assert (found.failed, found.reason) == (True, reason)
        if evidence is not None:
            assert (found.evidence or "").endswith(evidence)
    if reason in {"program_error", "compiler_error"}:
        # it is the format that knows: no word of it is in the tables
        assert (found.signature or "").startswith(("structure-", "py-", "learned"))


def test_every_format_has_an_example_that_its_anchor_finds() -> None:
    for form in FORMATS:
        assert any(re.search(start, form.example.encode(), re.MULTILINE) for start in form.starts), form.name


@pytest.mark.parametrize(
    "text",
    [
        "Exception ignored in: <function A.__del__ at 0x7f>\n" + PYTHON[7:] + "saved\n",
        "Exception in thread Thread-1 (f):\n" + PYTHON[7:] + "saved\n",
        # a handled exception, and few ordinary lines: perhaps, but not for certain
        PYTHON + "fell back to defaults\nsaved\n",
        "Common causes: out of memory, disk full\nWARNING: RuntimeError: odd\nok\n",
        '{"level": "info", "error": null, "event": "RuntimeError: handled"}\n',
    ],
    ids=["ignored", "thread", "handled", "listed", "json"],
)
def test_survived_errors_are_no_failure_without_an_exit_code(text: str) -> None:
    assert not verdict(text, None).failed


IGNORED = "Exception ignored in: <function A.__del__ at 0x7f>\n"
IGNORED += PYTHON[7:].replace("widgets.Stuck: belt 3", "KeyError: 'w'")


@pytest.mark.parametrize("times", [1, 5, 90])
def test_ignored_errors_are_no_evidence_however_often_printed(times: int) -> None:
    assert not verdict("a\nb\nc\n" + IGNORED * times, None).failed
    error = PYTHON.replace('/jobs/run.py", line 4', '/x/site-packages/h5py/f.py", line 4')
    error = error.replace("widgets.Stuck", "ValueError")
    assert verdict(error + IGNORED * times).reason == "incorrect_inputs"


def test_odd_json_neither_stops_a_scan_nor_hides_what_it_says() -> None:
    half = '{"level": "error", "message": "bad \\ud83d name"}\n'
    assert verdict(half).failed
    stack = "".join(f'  File "/jobs/m{n}.py", line {n}, in f{n}\n' for n in range(150))
    long = json.dumps({"level": "error", "exc_type": "MemoryError", "exc_value": "", "exc_info": stack}) + "\n"
    assert len(long) > 4096
    assert verdict(long).reason == "cpu_out_of_memory"
    assert not verdict('{"level": ' + "[" * 5000 + "\n", None).failed


def test_an_ignored_exception_of_one_rank_leaves_another_s_evidence() -> None:
    first, *others = IGNORED.splitlines()
    mixed = [f"[rank0]: {first}", "[rank1]: MemoryError", *(f"[rank0]: {line}" for line in others)]
    assert [m.signature for m in scanner().scan(io.BytesIO("\n".join(mixed).encode())).matches] == ["py-memory-error"]


def test_an_exception_followed_by_a_later_one_was_survived_for_every_reader() -> None:
    first = PYTHON.replace("widgets.Stuck: belt 3", "acme.StoreTrouble: put: [Errno 28] backend")
    log = first + "went on\nand on\n" + PYTHON.replace("widgets.Stuck: belt 3", "KeyError: 'x'")
    assert (verdict(log).reason, verdict(log).evidence) == ("program_error", "KeyError: 'x'")


def test_many_ranks_need_no_memory_of_their_own() -> None:
    log = "".join(f"{rank}: MemoryError\n" for rank in range(2000)) + "7: x\n" * 8000
    tracemalloc.start()
    scanner().scan(io.BytesIO(log.encode()))
    peak = tracemalloc.get_traced_memory()[1]
    tracemalloc.stop()
    assert peak < 20e6


def test_a_traceback_at_a_block_s_end_stays_whole() -> None:
    whole = ("x" * 99 + "\n") * (CHUNK // 100)
    for before in range(0, 400, 37):
        text = whole[: CHUNK - before - CHUNK % 100] + PYTHON + "y\n" * 3
        matches = scanner().scan(io.BytesIO(text.encode())).matches
        assert [match.text for match in matches if match.signature == "structure-python"] == ["widgets.Stuck: belt 3"]
        assert matches[-1].ordinary_after == 3


def test_lines_of_other_ranks_do_not_show_that_a_rank_went_on() -> None:
    broken = "".join(f"2: {line}\n" for line in PYTHON.splitlines())
    others = "".join(f"{rank}: still here {n}\n" for n in range(40) for rank in (0, 1, 3))
    (found,) = (
        m for m in scanner().scan(io.BytesIO((broken + others).encode())).matches if m.signature == "structure-python"
    )
    assert (found.rank, found.ordinary_after) == (2, 0)
    mixed = [line for pair in zip(broken.splitlines(), others.splitlines(), strict=False) for line in pair]
    assert verdict("\n".join(mixed)).evidence == "2: widgets.Stuck: belt 3"


@pytest.mark.parametrize(
    "summary",
    [
        "Root Cause (first observed failure):\n[0]:\n  time      : 2026-11-25_10:00:00\n  host      : n1\n"
        "  rank      : 1 (local_rank: 1)\n",
        "srun: error: n1: task 1: Exited with exit code 1\n",
        "mpirun detected that one or more processes exited with non-zero status, thus causing\n"
        "the job to be terminated. The first process to do so was:\n\n"
        "  Process name: [[1234,1],1]\n  Exit code:    1\n",
    ],
    ids=["torchrun", "srun", "mpirun"],
)
def test_a_launcher_s_summary_points_to_the_rank_whose_log_has_the_cause(summary: str) -> None:
    zero = "0: ValueError: peers are gone\n"
    one = "1: KeyError: 'gain'\n"
    assert (verdict(zero + one).evidence, verdict(zero + one + summary).evidence) == (zero.strip(), one.strip())
    # the blamed rank's own traceback is not taken for one that it survived
    raised = "".join(f"1: {line}\n" for line in PYTHON.splitlines()) + "step 3 loss 0.1\n"
    assert (
        verdict(zero.replace("0:", "2:") + raised + "launcher stops\n" + summary).evidence == "1: widgets.Stuck: belt 3"
    )


def test_a_system_error_is_known_by_its_number_in_any_output() -> None:
    assert "PermissionError: [Errno 13] Permission denied" in messages("no luck (os error 13)")
    assert {"ERROR: ring broken", "ring broken"} < {*messages("  what():  ring broken")}
    assert "ERROR: house of cards" in messages('Fatal error: exception Failure("house of cards")')


@pytest.mark.parametrize(
    ("frame", "reason"),
    [
        ("/x/lib/python3.11/site-packages/scipy/linalg/_basic.py", "numerical_error"),
        ("/usr/lib/python3.11/socket.py", "network_error"),
        ("/usr/lib/python3/dist-packages/yaml/scanner.py", "syntax_error"),
        ("/jobs/socket.py", None),
        (None, None),
    ],
)
def test_only_a_library_s_frame_stands_for_a_reason(frame: str | None, reason: str | None) -> None:
    assert area(frame) == reason


def test_the_learned_reader_answers_only_where_tables_would_guess() -> None:
    words = "boot\nthe host store refused the connection while tokens were streamed\n"
    scan = scanner().scan(io.BytesIO(words.encode()))
    lines = [*scan.matches, *scan.telling]
    learned_verdict = classify(lines, table(), FAILED)
    without = classify(lines, load(learned=False), FAILED)
    reading = learned.read(words.splitlines()[1])
    name = reading_ids(reading.reason, reading.confidence, reading.second)[0]
    assert (learned_verdict.reason, learned_verdict.signature, learned_verdict.confidence) == (
        reading.reason,
        LEARNED,
        table().signatures[name].confidence,
    )
    assert without.signature != LEARNED
    # what a signature knows stays
    assert verdict("MemoryError: the host store refused the connection\n").reason == "cpu_out_of_memory"


def test_tables_of_endings_are_part_of_the_version_and_are_compiled_into_no_pattern() -> None:
    made = [entry for entry in table().signatures.values() if not entry.pattern]
    assert {entry.id for entry in made} >= {f"structure-{form.name}" for form in FORMATS}
    assert Scanner(table()).numbers.keys() >= {entry.id for entry in made}
