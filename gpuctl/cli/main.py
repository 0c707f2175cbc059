"""The ``gpuctl`` program: its commands, its global options, and how its errors end.

Nothing heavy is imported here or by the modules imported here: ``gpuctl --help`` must stay fast.
"""

from __future__ import annotations

import errno
import functools
import gc
import os
import signal
import sys
import threading
from importlib.machinery import ExtensionFileLoader
from typing import TYPE_CHECKING, Annotated

import typer

from gpuctl import __version__
from gpuctl.cli.analyze import analyze
from gpuctl.cli.calibrate import calibrate
from gpuctl.cli.classify import classify
from gpuctl.cli.common import color_allowed, message
from gpuctl.cli.convert import convert
from gpuctl.cli.doctor import doctor
from gpuctl.cli.examples import WithExamples
from gpuctl.cli.explain import explain
from gpuctl.cli.formats import formats
from gpuctl.cli.ingest import ingest
from gpuctl.cli.lessons import lessons
from gpuctl.cli.plan import plan
from gpuctl.cli.policies import policies
from gpuctl.cli.predict import predict, predictors
from gpuctl.cli.profile import profile
from gpuctl.cli.query import analyses, query, tables
from gpuctl.cli.questions import ByQuestion
from gpuctl.cli.replay import replay
from gpuctl.cli.report import report
from gpuctl.cli.sample import sample
from gpuctl.cli.settings import Settings
from gpuctl.cli.train_tree import train
from gpuctl.cli.workloads import fit, synth
from gpuctl.core.errors import ExitCode, GpuctlError, InputError

if TYPE_CHECKING:
    from collections.abc import Callable, Sequence
    from types import FrameType

_FORMER_OPTIONS = {"add-servers": "add-nodes", "servers": "nodes"}
"""Names that options had until version 0.2, without the dashes; they still work, and the help does not list them."""

app = typer.Typer(
    name="gpuctl",
    cls=ByQuestion,
    help="Turn the logs of a GPU cluster into answers: who waited, why, and what the GPUs did.",
    rich_markup_mode=None,
    pretty_exceptions_enable=False,
    no_args_is_help=True,
    context_settings={
        "help_option_names": ["-h", "--help"],
        "token_normalize_func": lambda name: _FORMER_OPTIONS.get(name, name),
    },
)

_EVERYWHERE = frozenset({"--quiet", "-q", "--debug", "--no-color", "--spreadsheet"})

_FULL = frozenset({errno.ENOSPC, errno.EDQUOT, errno.EFBIG, errno.EIO, errno.EROFS})

_MOMENT_S = 0.01

_GARBAGE = 50_000, 20, 50
"""When Python looks for garbage in cycles, see `gc.set_threshold`: a start makes many objects, and none of them is."""

# `gpuctl.cli.questions` lists them for --help, and imports the research commands when they are called
app.command(cls=WithExamples)(analyze)
app.command(cls=WithExamples)(explain)
app.command(cls=WithExamples)(replay)
app.command()(analyses)
app.command()(policies)
app.command()(lessons)
app.command()(calibrate)
app.command(cls=WithExamples)(plan)
app.command(cls=WithExamples)(report)
app.command(cls=WithExamples)(query)
app.command()(tables)
app.command(cls=WithExamples)(ingest)
app.command(cls=WithExamples)(classify)
app.command()(sample)
app.add_typer(train)
app.command()(predictors)
app.add_typer(predict)
app.command(cls=WithExamples)(fit)
app.command(cls=WithExamples)(synth)
app.command(cls=WithExamples)(convert)
app.add_typer(profile)
app.command()(formats)
app.command()(doctor)


def _print_version(wanted: bool) -> None:
    if wanted:
        sys.stdout.write(f"gpuctl {__version__}\n")
        raise typer.Exit


@app.callback()
def global_options(
    context: typer.Context,
    *,
    version: Annotated[
        bool, typer.Option("--version", callback=_print_version, is_eager=True, help="Print the version and exit.")
    ] = False,
    json: Annotated[bool, typer.Option("--json", help="Print results as JSON.")] = False,
    quiet: Annotated[bool, typer.Option("--quiet", "-q", help="Print results and errors only.")] = False,
    debug: Annotated[bool, typer.Option("--debug", help="Show a traceback with an internal error.")] = False,
    no_color: Annotated[
        bool, typer.Option("--no-color", help="Print without colours; NO_COLOR does the same.")
    ] = False,
    spreadsheet: Annotated[
        bool,
        typer.Option(
            "--spreadsheet", help="In CSV and TSV, put ' before text that a spreadsheet would treat as a formula."
        ),
    ] = False,
) -> None:
    """Take the options that stand before the command."""
    del version
    if quiet:
        import logging

        logger = logging.getLogger("gpuctl")
        context.call_on_close(functools.partial(logger.setLevel, logger.level))
        logger.setLevel(logging.ERROR)
    context.obj = Settings(
        json=json, quiet=quiet, debug=debug, color=color_allowed(no_color=no_color), spreadsheet=spreadsheet
    )


def main(early_handler: object = signal.default_int_handler) -> None:
    """Run the program and exit with the code that `ExitCode` gives its outcome.

    Args:
        early_handler: what handles Ctrl-C until now.
    """
    gc.set_threshold(*_GARBAGE)
    # its threads spin as they start, 0.05 s on each core, and nothing here multiplies matrices that are worth them
    os.environ.setdefault("OPENBLAS_NUM_THREADS", "1")
    _replace_closed()
    for stream in (sys.stdout, sys.stderr):
        # names from logs may hold characters that this terminal's encoding lacks
        if hasattr(stream, "reconfigure"):
            stream.reconfigure(errors="backslashreplace")
    arguments = sys.argv[1:]
    try:
        code = run(arguments, _install_sigint(early_handler))
        # all is done and said: what is left is the interpreter's own end, which a signal would only garble
        signal.signal(signal.SIGINT, signal.SIG_IGN)
    except KeyboardInterrupt:  # it came just as the command had ended
        signal.signal(signal.SIGINT, signal.SIG_IGN)
        message("gpuctl: interrupted")
        code = ExitCode.INTERRUPTED
    try:
        sys.stdout.flush()
    except BrokenPipeError:
        # the reader has seen what it wanted; what a check found stays
        _forget_stdout()
    except OSError as error:
        _forget_stdout()
        code = code or _report(_unwritten(error), debug="--debug" in arguments)
    if code == ExitCode.INTERRUPTED:
        # a library's thread that still runs would end the process with SIGABRT while the interpreter takes itself down
        sys.stderr.flush()
        os._exit(code)
    # the interpreter would look once more, through all that was imported, to free what the end of the process frees;
    # DuckDB complains on standard error of what is not freed
    if "duckdb" not in sys.modules:
        gc.freeze()
    sys.exit(code)


@functools.cache
def _command() -> Callable[..., object]:
    """The command line of `app`: several hundred options, made once."""
    return typer.main.get_command(app)


def _replace_closed() -> None:
    """Put /dev/null where the standard streams were closed (``>&-``).

    Otherwise the next file that is opened, perhaps the trace store, would be what is printed to.
    """
    for number, name in enumerate(("stdin", "stdout", "stderr")):
        try:
            os.fstat(number)
        except OSError:
            null = os.open(os.devnull, os.O_RDONLY if number == 0 else os.O_WRONLY)
            if null != number:
                os.dup2(null, number)
                os.close(null)
        if getattr(sys, name) is None:
            setattr(sys, name, open(number, "r" if number == 0 else "w", encoding="utf-8"))  # noqa: PTH123, SIM115


def _hoist_global_options(arguments: Sequence[str]) -> list[str]:
    """Move the options that every command has to the front: people write them at the end of the line."""
    end = arguments.index("--") if "--" in arguments else len(arguments)
    moved = [a for a in arguments[:end] if a in _EVERYWHERE]
    return [*moved, *(a for a in arguments[:end] if a not in _EVERYWHERE), *arguments[end:]]


def _install_sigint(early_handler: object) -> list[int]:
    """Let Ctrl-C leave a note beside raising: a library that is at work may turn the exception into one of its own."""
    interrupts: list[int] = []

    def note(number: int, frame: FrameType | None) -> None:
        if _loads_extension(frame):
            _resend_sigint()
            return
        interrupts.append(number)
        signal.default_int_handler(number, frame)

    # where it is ignored, as in a script that runs in the background, it stays so
    if signal.getsignal(signal.SIGINT) in {signal.default_int_handler, early_handler}:
        signal.signal(signal.SIGINT, note)
        sys.unraisablehook = _resend_lost
    return interrupts


def _loads_extension(frame: FrameType | None) -> bool:
    """Whether compiled code of a library is being loaded: an exception during that ends the process with SIGABRT."""
    while frame is not None:
        loader = frame.f_locals.get("self") if frame.f_code.co_name == "exec_module" else None
        if isinstance(loader, ExtensionFileLoader):
            return True
        frame = frame.f_back
    return False


def _resend_sigint() -> None:
    threading.Timer(_MOMENT_S, os.kill, (os.getpid(), signal.SIGINT)).start()


def _resend_lost(lost: sys.UnraisableHookArgs) -> None:
    """Raise Ctrl-C again a moment later where Python dropped it: it came while a finalizer or a callback of one ran."""
    if lost.exc_type is KeyboardInterrupt:
        # not at once: that would be inside this hook, from which nothing can be raised either
        _resend_sigint()
    else:
        sys.__unraisablehook__(lost)


def run(arguments: Sequence[str], interrupts: Sequence[int] = ()) -> int:
    """Run one command in this process and return its exit code (`ExitCode`).

    It prints to ``sys.stdout`` and ``sys.stderr``, handles no Ctrl-C, and may be called any number of times.

    Args:
        arguments: what follows ``gpuctl`` on the command line.
        interrupts: has an item as soon as Ctrl-C was pressed.
    """
    arguments = _hoist_global_options(arguments)
    debug = "--debug" in arguments
    try:
        _command()(arguments, prog_name="gpuctl")
    except SystemExit as end:
        # Typer turns both into exits of its own
        origin = _origin(end)
        if isinstance(origin, BrokenPipeError):
            # `gpuctl … | head`: the reader has seen what it wanted
            _forget_stdout()
            return ExitCode.OK
        if type(origin) is KeyboardInterrupt:
            message("gpuctl: interrupted")
        return end.code if isinstance(end.code, int) else ExitCode.OK
    except KeyboardInterrupt:
        message("gpuctl: interrupted")
        return ExitCode.INTERRUPTED
    except MemoryError as error:
        if debug:
            _traceback(error)
        message("gpuctl: out of memory")
        message("hint: is a file much larger than expected? Otherwise use a machine with more memory")
        return ExitCode.BAD_INPUT
    except Exception as error:
        if interrupts:
            if debug:
                _traceback(error)
            message("gpuctl: interrupted")
            return ExitCode.INTERRUPTED
        if isinstance(error, OSError) and error.errno in _FULL:
            return _report(_unwritten(error), debug=debug)
        return _report(error, debug=debug) if isinstance(error, GpuctlError) else _report_bug(error, debug=debug)
    except BaseException as error:  # a panic of a library in Rust is no Exception
        return _report_bug(error, debug=debug)
    return ExitCode.OK


def _origin(end: SystemExit) -> BaseException | None:
    error: BaseException | None = end
    while error is not None and not isinstance(error, (BrokenPipeError, KeyboardInterrupt)):
        error = error.__context__
    return error


def _unwritten(error: OSError) -> InputError:
    """What it means that something could not be written: most often standard output, which has no name."""
    place = os.fsdecode(error.filename) if isinstance(error.filename, str | bytes) else "standard output"
    return InputError(f"cannot be written: {error.strerror or error}", path=place, hint="free space on its disk")


def _report(error: GpuctlError, *, debug: bool) -> int:
    message(f"gpuctl: {error.message}")
    if error.hint:
        message(f"hint: {error.hint}")
    if debug:
        _traceback(error)
    return error.exit_code


def _report_bug(error: BaseException, *, debug: bool) -> int:
    if debug:
        _traceback(error)
    first = str(error).partition("\n")[0]
    message(f"gpuctl: internal error: {type(error).__name__}: {first}"[:400])
    message("hint: this is a bug in gpuctl; please report it with the output of `gpuctl --debug ...`")
    return ExitCode.BUG


def _traceback(error: BaseException) -> None:
    import traceback

    message("".join(traceback.format_exception(error)).rstrip())


def _forget_stdout() -> None:
    # otherwise the interpreter flushes once more at its end, and complains
    null = os.open(os.devnull, os.O_WRONLY)
    os.dup2(null, sys.stdout.fileno())
    os.close(null)
