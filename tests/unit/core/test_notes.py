"""Sentences that know their names: nothing but templates and words written out in the code can make one."""

from __future__ import annotations

import ast
import copy
from pathlib import Path
from typing import TYPE_CHECKING

import pytest
from hypothesis import given
from hypothesis import strategies as st

from gpuctl.core.notes import (
    NamedValue,
    Note,
    Span,
    counted,
    is_untrusted,
    listed,
    literal,
    named,
    note,
    together,
    untrusted,
)

if TYPE_CHECKING:
    from collections.abc import Iterator

ROOT = Path(__file__).resolve().parents[3]
MAKERS = {"note": 0, "together": 0, "counted": 1}
"""What makes sentences -> which argument has to be written out where it is called."""
WORDS = {
    "gpuctl/research/accel/tables.py": {
        "pays", "row.rule", "more", "'dropped' if rules.drop else 'kept'", "machine.system.text",
        "f\"{', '.join(machine.system.kinds)}; {number(machine.system.bandwidth)} bytes/us\"",
        "f'each {number(rules.period_us)} us' if rules.period_us else 'whenever one can start'",
    },
    "gpuctl/research/dag/tables.py": {"'' if limit is None else _LIMITS[limit.value]", "best"},
    "gpuctl/research/dag/training.py": {"', '.join((f'{load:g}' for load in wanted.loads))"},
    "gpuctl/research/deferrable/compare.py": {"f'{mean:+.3f}'", "f'{high:+.3f}'", "f'{low:+.3f}'"},
    "gpuctl/research/deferrable/tables.py": {
        "why", "'the latest start' if evict == 'newest' else 'the run that loses the fewest GPU-hours'",
    },
    "gpuctl/research/learn/imitation_tables.py": {"best.policy", "' --param tree.preempt=true' if preempts else ''"},
    "gpuctl/lessons/locality.py": {
        "level", "size", "measured.clusters",
        "', '.join((f'{size} GPUs {one:.2f}' for size, (one, _) in zip(SIZES, pairs, strict=True)))",
    },
    "gpuctl/lessons/run.py": {"_BLOCKS[case.blocks()[1]]", "case.overhead"},
    "reports/screens/lessons.py": {"column.description"},
    "gpuctl/analyze/delay_table.py": {"source"},
    "gpuctl/analyze/caveats.py": {"name", "row['at']"},
    "gpuctl/analyze/run.py": {
        *("PODS.format(unit=unit)", "options.definition", "shared.duration", "what"),
        *("options.by or 'month'", "options.period_zone or 'the zone of the log'"),  # a period, a zone that there is
    },
    "gpuctl/capacity/sentences.py": {
        'ahead.model',
        'f"{(\'-\' if count < 0 else \'+\')}{100 * gpus / total:.0f} %"',
        "f'{100 * users.weekly:+.1f}'",
        "f'{100 * value:+.1f}'",
        "f'{end:%d %B %Y}'.lstrip('0')",
        'found.base.question.goal.what',
        'goal.bound',
        'goal.shown(high)',
        'goal.shown(low)',
        'goal.shown(math.inf if value is None else value)',
        'goal.shown(middle)',
        'goal.shown(now)',
        'goal.shown(own.recorded)',
        'goal.shown(own.replayed)',
        'goal.shown(then)',
        'goal.what',
    },
    "gpuctl/services/plans.py": {
        "f'{found.base.question.goal.what} of at most {found.base.question.goal.bound}'",
        'goal.shown(own.recorded)',
        'goal.shown(own.replayed)',
        'goal.what',
        'str(found.base.question.seed)',
    },
    "gpuctl/calibrate/tables.py": {
        "f'mean of ln(1 + minutes between replayed and recorded start): {fit.distance:.4g}'",
    },
    "gpuctl/research/chain/live_tables.py": {"end"},
    "gpuctl/research/chain/log.py": {"what"},
    "gpuctl/services/predictions.py": {"name"},
    "gpuctl/services/replays.py": {"source.locality"},
    "gpuctl/core/job_filter.py": {"kind", "name"},
    "gpuctl/doctor/run.py": {"name", "status"},
    "gpuctl/replay/engine/never.py": {"why"},
    "gpuctl/replay/engine/setup.py": {"name", "HOW_TEXT[self.mode]", "self.placement"},
    "gpuctl/replay/contract/policy.py": {"value"},
    "gpuctl/services/sweeps.py": {"_OPTIONS[name]"},
    "gpuctl/replay/experiments/result.py": {"locality"},
    "gpuctl/replay/inputs/clusters.py": {"key"},
    "gpuctl/replay/inputs/trace.py": {"why"},
    "gpuctl/replay/models/resources.py": {"word"},
    "gpuctl/replay/models/traits.py": {"name"},
    "gpuctl/replay/policies/yarn/capacity.py": {"name"},
    "gpuctl/replay/results/settings.py": {"replays.cluster.quota_source", "cluster.name", "k", "name", "str(value)"},
    "gpuctl/replay/results/tables.py": {"reason", "str(width)"},
    "gpuctl/replay/run.py": {"TOO_LARGE"},
    "gpuctl/services/replay_inputs.py": {"option"},
    "gpuctl/services/unchanged.py": {"name", "key", "str(models[name])"},
    "gpuctl/services/waits.py": {"trained.unit"},
    "gpuctl/waits/forecast.py": {"model.unit"},
    "gpuctl/workloads/convert.py": {"_MODEL", "trace.unit", "why"},
    "gpuctl/workloads/tables.py": {
        "CAPACITY.get(capacity_from, '')", "CAPACITY[trace.capacity_from]", "CAPACITY[jobs.capacity_from]",
        "METHODS[method]", "UNITS[jobs.unit]",
        "UNITS[unit]", "model.arrivals", "quality.LIKE", "unit",
    },
    "gpuctl/waits/tables.py": {
        "_date(trained.cut_s[-1])", "f'{name}: {text}'", "row['load']", "row['forecast']", "text",
    },
    "predictors/history_tables.py": {
        "text", "f'{name}: {text}'", "f'{name} [{unit}]: {text}'", "_date(a, trained)", "_date(b, trained)",
    },
    "predictors/overhead_tables.py": {"suspension.mode"},
    "predictors/runtime.py": {"moved.method"},
    "reports/screens/experiments.py": {"column.description"},
}  # fmt: skip
"""Words of ours that no template has, by file: each is one of a fixed set that the code holds. Whoever adds one says
so here, and why it cannot be a name: tables of ours, dates, numbers, and choices that an option allows."""


def calls() -> Iterator[tuple[str, int, str, ast.Call]]:
    """All calls of functions that make sentences: (file, line, function, call)."""
    for room in ("gpuctl", "predictors", "reports"):
        for path in sorted((ROOT / room).rglob("*.py")):
            text = path.read_text()
            if "gpuctl.core.notes" not in text:
                continue
            names = {
                alias.asname or alias.name
                for one in ast.walk(ast.parse(text))
                if isinstance(one, ast.ImportFrom) and one.module == "gpuctl.core.notes"
                for alias in one.names
            }
            for one in ast.walk(ast.parse(text)):
                if isinstance(one, ast.Call) and isinstance(one.func, ast.Name) and one.func.id in names:
                    yield path.relative_to(ROOT).as_posix(), one.lineno, one.func.id, one


def test_templates_are_written_out_where_they_are_used() -> None:
    found = list(calls())
    assert len(found) > 300
    wrong = [
        (path, line)
        for path, line, maker, call in found
        if maker in MAKERS
        and not (isinstance(call.args[MAKERS[maker]], ast.Constant))
        # the sentence of a table's population stands in the first lines of its SQL
        and ast.unparse(call.args[MAKERS[maker]]) != "query.population"
    ]
    assert wrong == []


def _is_a_number(argument: ast.expr) -> bool:
    """Whether it is written by `gpuctl.core.numbers`: digits and a unit, never a name."""
    return isinstance(argument, ast.Call) and getattr(argument.func, "id", "") in {
        "lasting", "number", "decimal", "percent", "size_of",
    }  # fmt: skip


def test_literal_words_are_known() -> None:
    found: dict[str, set[str]] = {}
    for path, _, maker, call in calls():
        if maker == "literal" and not isinstance(call.args[0], ast.Constant) and not _is_a_number(call.args[0]):
            found.setdefault(path, set()).add(ast.unparse(call.args[0]))
    assert found == WORDS


def test_only_documents_make_notes_in_another_way() -> None:
    assert {path for path, _, maker, _ in calls() if maker in {"Note", "Span"}} == {"reports/export/document.py"}


def test_a_note_is_its_text_and_knows_its_names() -> None:
    made = note(
        "{n:,} jobs of {user}: {more}", n=1234, user=NamedValue("user", "ada"), more=listed("job", ["7", "", "8"])
    )
    assert made == "1,234 jobs of ada: 7, , 8"
    assert made.named == (Span(14, 17, "user"), Span(19, 20, "job"), Span(24, 25, "job"))
    assert made.replaced(lambda kind, name: f"<{kind} {name}>") == "1,234 jobs of <user ada>: <job 7>, , <job 8>"
    assert note("a {{b}}") == "a {b}"
    assert together(" and ", [named("job", "1"), literal("x")]).named == (Span(0, 1, "job"),)
    assert (counted(1, "job"), counted(2000, "job")) == ("1 job", "2,000 jobs")


@pytest.mark.parametrize("argument", ["ada", None, b"ada", ["ada"]])
def test_text_is_no_argument(argument: object) -> None:
    with pytest.raises(TypeError, match="say with Named whose"):
        note("the user {user}", user=argument)  # type: ignore[arg-type]


@given(st.text(min_size=1), st.text())
def test_notes_survive_copies(name: str, text: str) -> None:
    made = together("", [Note(text), named("user", name)])
    for again in (copy.deepcopy(made), copy.copy(made)):
        assert (again, again.named) == (made, made.named)
    assert is_untrusted(untrusted(name))
    assert untrusted(made) is made
