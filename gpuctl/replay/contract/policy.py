"""What a policy is: a name, parameters, a source, and a program that the engine runs."""

from __future__ import annotations

from contextlib import contextmanager
from dataclasses import dataclass, replace
from typing import TYPE_CHECKING, Any, ClassVar

from gpuctl.core.errors import GpuctlError, UsageError
from gpuctl.core.notes import literal, named
from gpuctl.core.plugins import own_fault
from gpuctl.replay.engine.program import Program

if TYPE_CHECKING:
    from collections.abc import Callable, Collection, Iterator, Mapping

    from gpuctl.compiled.jit import Loop
    from gpuctl.core.notes import Note
    from gpuctl.replay.engine.setup import Settings
    from gpuctl.replay.engine.state import State
    from gpuctl.replay.models.records import Cluster, Workload

MOST_NUMBERS = 100
"""Most numbers in a list parameter."""

_TRUTHS = {"true": True, "false": False, "1": True, "0": False}

Value = float | str | bool | tuple[float, ...]


@dataclass(frozen=True)
class Parameter:
    """One parameter of a policy.

    Attributes:
        name: as given with ``--param NAME=VALUE``.
        default: its type is the parameter's type; a tuple is written ``3250,7200``.
        text: what it does, its unit and its source.
        choices: the permitted words, if it is one of a few.
        least: the least number allowed.
        most: the greatest one.
        above: if 0 stands for none, the least number above it.
    """

    name: str
    default: Value
    text: str
    choices: tuple[str, ...] = ()
    least: float = 0.0
    most: float = 1e9
    above: float = 0.0

    def read(self, text: str, policy: str) -> Value:
        """The value that a text on the command line stands for.

        Raises:
            UsageError: the text is not of the parameter's type.
        """
        expected = self._expected()
        try:
            value = self._parse(text)
        except ValueError:
            raise UsageError(f"{policy}: {self.name}={text[:60]}: expected {expected}") from None
        return value

    @property
    def span(self) -> str:
        """Its range, to follow `text`; "" if the bounds are obvious."""
        if isinstance(self.default, (str, bool)):
            return ""
        bounded = self.most != Parameter.most
        if self.above:
            return f"; 0, or at least {self.above:g}"
        if self.least:
            return f"; from {self.least:g} to {self.most:.10g}" if bounded else f"; at least {self.least:g}"
        return f"; at most {self.most:.10g}" if bounded else ""

    def _expected(self) -> str:
        if self.choices:
            return "one of " + ", ".join(self.choices)
        if isinstance(self.default, bool):
            return "true or false"
        if isinstance(self.default, tuple):
            span = f"from {self.least:g} to {self.most:.10g}"
            return f"at most {MOST_NUMBERS} numbers {span} in ascending order, as 3250,7200"
        return f"{'0, or ' if self.above else ''}a number from {self.above or self.least:g} to {self.most:.10g}"

    def _parse(self, text: str) -> Value:
        if isinstance(self.default, bool):
            if text not in _TRUTHS:
                raise ValueError
            return _TRUTHS[text]
        if isinstance(self.default, str):
            if self.choices and text not in self.choices:
                raise ValueError
            return text
        if isinstance(self.default, tuple):
            numbers = tuple(self._number(part) for part in text.split(",") if part)
            if list(numbers) != sorted(set(numbers)) or len(numbers) > MOST_NUMBERS:
                raise ValueError
            return numbers
        return self._number(text)

    def _number(self, text: str) -> float:
        number = float(text)
        if not self.least <= number <= self.most or 0 < number < self.above:
            raise ValueError
        return number


SHARED_MODELS = {"rates": "traits", "overhead": "resume:62"}
"""Models of a comparison in which some policies assume models and some do not, so that it has one set of speeds and
costs: 62 s are those of `gpuctl.replay.models.preemption_cost.DEFAULT_S`."""

PATIENCE = Parameter(
    "patience",
    30.0,
    "preemptions of a job that together may cost it more than the turns between them bring; from then on it keeps its "
    "GPUs each time until its progress exceeds the cost of a preemption and a tenth of what it had done",
    least=1.0,
    most=200.0,
)
"""Parameter of preempting policies: jobs that take turns make progress whatever a switch costs."""


def patience_of(scheduler: str) -> Parameter:
    """The same for a policy that models a real scheduler, which has no such rule."""
    return replace(PATIENCE, text=f"{PATIENCE.text}; ours: {scheduler} would go on")


@contextmanager
def faults_of(method: Callable[..., Any], what: str) -> Iterator[None]:
    """Raise exceptions of a user's own policy as the user's error, see `own_fault`."""
    try:
        yield
    except (GpuctlError, NotImplementedError, KeyboardInterrupt):
        raise
    except BaseException as error:  # also sys.exit(), which would end gpuctl without a word
        raise own_fault(error, method.__code__.co_filename, what) from error


class Policy:
    """A scheduling policy: subclasses give a name, what they are, and a program.

    Attributes:
        name: as given with ``--policy``.
        title: what it does, one sentence.
        source: where it is from.
        oracle: whether it may read true run times; a parameter may set it per instance.
        predicts: whether predicted run times replace true ones if a workload has them.
        preempts: whether it takes GPUs from running jobs.
        plans: whether it plans ahead with time limits.
        traits: whether it uses the traits of `gpuctl.replay.models.traits`.
        sets: the parameters that set what it `assumes`, by model; they hold in every comparison.
        own_models: settings of a comparison that it replaces, by the name under which results show them, and by what.
        resources: whether it supports CPUs and memory in addition to GPUs.
        run: its compiled entry function; None: that of policies that are an order of jobs.
        reads: whose configuration files its parameter ``conf`` takes, ``yarn`` or ``slurm``; "" none.
        parameters: what can be set.
    """

    name: ClassVar[str] = ""
    title: ClassVar[str] = ""
    source: ClassVar[str] = ""
    oracle: bool = False
    predicts: ClassVar[bool] = False
    preempts: ClassVar[bool] = False
    plans: ClassVar[bool] = False
    traits: ClassVar[bool] = False
    sets: ClassVar[Mapping[str, tuple[str, ...]]] = {}
    own_models: ClassVar[Mapping[str, Note]] = {}
    resources: ClassVar[bool] = False
    run: ClassVar[Loop | None] = None
    reads: ClassVar[str] = ""
    parameters: ClassVar[tuple[Parameter, ...]] = ()

    def __init__(self, params: Mapping[str, str] | None = None) -> None:
        known = {p.name: p for p in self.parameters}
        self.params: dict[str, Any] = {p.name: p.default for p in self.parameters}
        for name, text in (params or {}).items():
            if name not in known:
                there = ", ".join(known) or "none"
                raise UsageError(f"{self.name} has no parameter {name!r}", hint=f"its parameters are: {there}")
            self.params[name] = known[name].read(text, self.name)

    def shown_params(self) -> dict[str, Any]:
        """Its parameters as results show them: words of fixed choices are literal, other text is untrusted."""
        words: dict[str, set[Value]] = {p.name: {p.default, *p.choices} for p in self.parameters}

        def as_note(name: str, value: str) -> Note:
            return literal(value) if value in words.get(name, ()) else named("value", value)

        params = self.params.items()
        return {name: as_note(name, value) if isinstance(value, str) else value for name, value in params}

    def assumes(self) -> dict[str, str]:
        """Models that hold unless the user sets them: ``rates`` and ``overhead``, as `gpuctl.replay.run` takes them.

        In a comparison with policies that assume nothing, `shared` applies.
        """
        return {}

    def shared(self, given: Collection[str]) -> dict[str, str]:
        """The models of a comparison of policies with models of their own and without: `SHARED_MODELS`.

        Args:
            given: parameters that the user has set; its own model holds if one of them sets it.
        """
        own = {model: text for model, text in self.assumes().items() if set(given) & set(self.sets.get(model, ()))}
        return {**SHARED_MODELS, **own}

    def asks_why(self) -> bool:
        """Whether it uses the reasons of failures (`Workload.failures`) under its parameters."""
        return False

    def requeues(self) -> tuple[str, ...]:
        """How a job whose node failed may queue again, if a replay sets that: ``head``, ``tail``, or neither.

        Head: with its first submission; tail: as a new arrival. Neither: it has an order of its own for such jobs.
        """
        return ()

    def extended(self, cluster: Cluster) -> Cluster:
        """The nodes that it schedules on: those given, followed by any that only it may borrow."""
        return cluster

    def program(self, workload: Workload, cluster: Cluster, settings: Settings, state: State) -> Program:
        """Make the program that runs this policy on a new simulation."""
        raise NotImplementedError
