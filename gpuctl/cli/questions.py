"""What ``gpuctl --help`` lists by question, and wrong options in the words of all other errors."""

from __future__ import annotations

import math
import re
from contextlib import contextmanager
from importlib import import_module
from typing import TYPE_CHECKING, Any, Final

import typer
from typer.core import TyperGroup
from typer.main import get_group_from_info
from typer.models import TyperInfo

from gpuctl.core.errors import UsageError

if TYPE_CHECKING:
    from collections.abc import Iterator

QUESTIONS: Final = {
    "What happened": {
        "analyze": "How busy the GPUs were, why jobs waited, what failed.",
        "analyses": "Tables that analyze can compute, and where each comes from.",
        "explain": "One job: why it waited, where it ran, why it failed.",
        "classify": "Why programs failed, from their output.",
        "report": "Results on one page, or as a check in CI.",
        "query": "Your own SQL on a trace store.",
        "tables": "Tables and columns for that SQL.",
    },
    "What if": {
        "replay": "The same jobs under other policies, loads and nodes.",
        "calibrate": "A trace's scheduling rules, and how close a replay is.",
        "plan": "How many GPUs waits need, now and next quarter.",
        "policies": "Policies for replay, and their parameters.",
        "lessons": "What the Philly study's lessons would have saved here.",
        "fit": "Fit a model of a trace's workload, and score it.",
        "synth": "Jobs generated from such a model.",
    },
    "What will happen": {
        "predict": "Run times, and the cost of suspending a job.",
        "train": "Train the models that predict uses.",
        "predictors": "Predictors of run times.",
        "profile": "Record jobs' network reads.",
    },
    "Research": {
        "chain": "When to submit the successor of a long job.",
        "deferrable": "Deferrable jobs in leftover capacity.",
        "accel": "Layers of many neural networks on shared accelerators.",
        "dag": "Jobs with stages: rules, a search, a tree distilled from it.",
    },
    "Data and upkeep": {
        "ingest": "Read cluster logs into a trace store.",
        "sample": "Record the queue and the nodes of a live Slurm.",
        "convert": "The same jobs as files for other tools.",
        "formats": "Log formats that gpuctl reads.",
        "doctor": "Check the installation, the node, stores and models.",
    },
}
"""The commands by the question that they answer, each with one line for the list."""
_RESEARCH: Final = {"chain": "chain_live", "deferrable": "deferrable", "accel": "accel_learning", "dag": "dag_learning"}
"""Groups of commands that are imported when they are called, by name: their modules in `gpuctl.cli.research`."""

_MOST_WHOLE: Final = 2**63 - 1
_Wrong: Any = next(kind for kind in typer.BadParameter.__mro__ if kind.__name__ == "UsageError")
"""Typer's own, which it exports only by its subclasses."""


class ByQuestion(TyperGroup):
    """The program's commands."""

    def list_commands(self, ctx: Any) -> list[str]:
        """Names of all commands, in the order in which they are listed."""
        return [name for commands in QUESTIONS.values() for name in commands]

    def format_commands(self, ctx: Any, formatter: Any) -> None:
        """List the commands below their questions."""
        width = max(map(len, self.list_commands(ctx)))
        for question, commands in QUESTIONS.items():
            with formatter.section(question):
                formatter.write_dl([(name.ljust(width), text) for name, text in commands.items()])
        formatter.write("\ngpuctl COMMAND --help lists the options of a command, usually with examples.\n")

    def get_command(self, ctx: Any, cmd_name: str) -> Any:
        """See Typer's; numbers of options are finite, and whole ones fit into 64 bits."""
        if cmd_name in _RESEARCH and cmd_name not in self.commands:
            self.commands[cmd_name] = _imported(cmd_name)
        found = super().get_command(ctx, cmd_name)
        if found is not None:
            _bound_numbers(found)
        return found

    def resolve_command(self, ctx: Any, args: list[str]) -> Any:
        """See Typer's, which suggests commands that are imported if none has the name given."""
        if self.get_command(ctx, args[0]) is None:
            for name in _RESEARCH:
                self.get_command(ctx, name)
        return super().resolve_command(ctx, args)

    def make_context(self, *args: Any, **more: Any) -> Any:
        """See Typer's; a wrong option is an error of ours."""
        with _in_our_words():
            return super().make_context(*args, **more)

    def invoke(self, ctx: Any) -> Any:
        """See Typer's; a wrong option of a command is an error of ours."""
        with _in_our_words():
            return super().invoke(ctx)


def _imported(name: str) -> Any:
    """The group of commands of that name in `gpuctl.cli.research`."""
    module = import_module(f"gpuctl.cli.research.{_RESEARCH[name]}")
    group = TyperInfo(getattr(module, name))
    return get_group_from_info(group, pretty_exceptions_short=True, suggest_commands=True, rich_markup_mode=None)


@contextmanager
def _in_our_words() -> Iterator[None]:
    try:
        yield
    except _Wrong as error:
        if type(error).__name__ == "NoArgsIsHelpError":
            raise
        text, _, meant = error.format_message().partition(" Did you mean ")
        if found := re.fullmatch(r"(.*) \(Possible options: (.*)\)", text):
            text, meant = found[1], found[2]
        command = error.ctx.command_path if error.ctx is not None else "gpuctl"
        hint = f"did you mean {meant.rstrip('?')}?" if meant else f"{command} -h lists the options"
        raise UsageError(text[:1].lower() + text[1:].rstrip("."), hint=hint) from error


def _bound_numbers(command: Any) -> None:
    """Let each option of a command, and of those below it, refuse numbers that nothing can reckon with."""
    for each in getattr(command, "commands", {}).values():
        _bound_numbers(each)
    for option in command.params:
        kind = option.type
        if not isinstance(kind, _Bounded) and kind.name.split()[0] in {"float", "integer"}:
            option.type = _bounded(kind)


class _Bounded:
    """Marks a type of option whose numbers are bounded."""


def _bounded(kind: Any) -> Any:
    """A type of numbers as Typer has it, without infinities, NaN, and whole numbers beyond 64 bits."""

    def convert(self: Any, value: Any, param: Any, ctx: Any) -> Any:
        number = type(kind).convert(self, value, param, ctx)
        if isinstance(number, int):
            if abs(number) > _MOST_WHOLE:
                self.fail(f"{value!r} is beyond 64 bits.", param, ctx)
        elif not math.isfinite(number):
            self.fail(f"{value!r} is not a finite number.", param, ctx)
        return number

    made: Any = type("BoundedNumber", (_Bounded, type(kind)), {"convert": convert})
    bounded = made.__new__(made)
    bounded.__dict__.update(kind.__dict__)
    return bounded
