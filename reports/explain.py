"""The explanation of a job in words; the terminal and the page show the same blocks of items.

JSON has the record itself. Text from logs is escaped on output.
"""

from __future__ import annotations

import io
import os
import shutil
import sys
from dataclasses import asdict, dataclass
from datetime import timedelta
from typing import TYPE_CHECKING, Literal, TextIO

from gpuctl.core.causes import BECAUSE, cause_name, may_be_main
from gpuctl.core.numbers import lasting, percent, timed, unit_of
from gpuctl.core.storable_text import plural
from gpuctl.reports.cell_text import between, shown, visible
from gpuctl.reports.export.values import json_value
from gpuctl.reports.html import render_page
from gpuctl.reports.terminal.picture import attempts
from gpuctl.reports.terminal.printer import MIN_WIDTH, encodable, make_console, print_picture, wants_color
from gpuctl.reports.terminal.text_graphics import BLOCKS, UNKNOWN, bars, signs_of

if TYPE_CHECKING:
    from collections.abc import Iterable, Iterator
    from datetime import datetime

    from gpuctl.core.job_explanation import Cause, Explanation, GpuUse, Interruption, Place, Training, Tried, Wait
    from gpuctl.core.numbers import Unit

    Span = tuple[Literal["waiting", "running"], datetime, datetime, str]

SCHEMA = 1
LINES = 12
"""Maximum lines shown from an attempt's logs."""
PLACES = 8
"""Maximum nodes of an attempt listed individually."""
GPUS = 8
"""Maximum GPUs of an attempt whose utilization over time is shown."""
TRIES = 40
"""Maximum attempts drawn on the page."""
DECISIONS = 40
"""Maximum decisions of a policy shown."""

WELL_COVERED = 0.95
"""From this share of an attempt's time on, the mean is stated without the share."""
EDGE = BLOCKS.edge
RESIZED = "resized"
"""State of an attempt that ended because the running job was resized."""
_SHOWN_BY = {
    "state": "the scheduler's state", "log": "its log", "event": "an event of a node", "xid": "an Xid",
    "counter": "telemetry of a GPU",
    "co_occurrence": "the failure of other jobs at the same time",
}  # fmt: skip
"""What shows the cause of an interruption, in words."""
_MEASURES = {
    "wait_s": "Wait to the first start",
    "run_s": "First start to last end",
    "util_pct": "Mean GPU utilization",
}
_LABELS = {
    "state": "State", "user": "User", "queue": "Queue", "account": "Account", "partition": "Partition", "qos": "QOS",
    "name": "Name", "gpus": "GPUs", "gpu_type": "GPU type", "nodes": "Nodes", "time_limit_s": "Time limit",
    "priority": "Priority", "submit_ts": "Submitted", "start_ts": "First start", "end_ts": "End",
    "attempts": "Attempts",
}  # fmt: skip


@dataclass(frozen=True)
class Item:
    """One line of a block.

    Attributes:
        kind: ``head`` (a subheading), ``text``, ``fact`` (label and value), ``code`` (a line of a log) or
            ``note``.
        text: the text, or the value.
        label: name of a fact; position of a line of a log.
    """

    kind: Literal["head", "text", "fact", "code", "note"]
    text: str
    label: str = ""


@dataclass(frozen=True)
class Bar:
    """A period in which an attempt waited or ran: per cent of the figure's width, and its description."""

    kind: Literal["waiting", "running"]
    start_pct: float
    width_pct: float
    words: str


@dataclass(frozen=True)
class Timeline:
    """The times at which each attempt waited and ran.

    Attributes:
        rows: name and bars of each.
        first: time at the left edge.
        last: time at the right edge.
        left_out: number of attempts that are not drawn.
    """

    rows: tuple[tuple[str, tuple[Bar, ...]], ...]
    first: str
    last: str
    left_out: int


@dataclass(frozen=True)
class Block:
    """A heading and its items; `name` is its anchor in the page."""

    name: str
    title: str
    items: tuple[Item, ...]


def blocks(found: Explanation) -> tuple[Block, ...]:
    """Return the blocks to show, in order, without empty ones."""
    failed = any(tried.cause for tried in found.attempts)
    made = (
        ("job", "The job", _facts(found)),
        ("why-failed", "Why it failed" if failed else "Lines of its logs", _causes(found)),
        ("why-waited", "Why it waited", _waits(found)),
        ("where", "Where it ran", _places(found)),
        ("use", "How it used its GPUs", _uses(found)),
        ("training", "Training progress", _trainings(found)),
        ("similar", "Compared with similar jobs", _similar(found)),
        ("retries", "Attempts", _attempts(found)),
        ("decisions", "What the policy decided", _decisions(found)),
        ("notes", "Caveats", (Item("note", note) for note in found.notes)),
    )
    every = (Block(name, title, tuple(items)) for name, title, items in made)
    return tuple(block for block in every if block.items)


def ranges(numbers: Iterable[int]) -> str:
    """Return integers in short: ``0-3, 6``."""
    runs: list[list[int]] = []
    for number in sorted(numbers):
        if runs and number == runs[-1][1] + 1:
            runs[-1][1] = number
        else:
            runs.append([number, number])
    return ", ".join(str(first) if first == last else f"{first}-{last}" for first, last in runs)


def _facts(found: Explanation) -> Iterator[Item]:
    for key, label in _LABELS.items():
        value = found.facts.get(key)
        if value is None:
            continue
        text = lasting(float(str(value))) if key == "time_limit_s" else shown(value)
        text += " UTC" if key.endswith("_ts") else ""
        if key == "gpus" and any(tried.state == RESIZED for tried in found.attempts):
            text += " at most: it was resized while it ran"
        own = str(found.facts.get("source_state") or value)
        if key == "state" and own.casefold() != str(value):
            text += f" ({shown(found.facts['source_state'])})"
        yield Item("fact", text, label)


def _heading(found: Explanation, tried: Tried) -> Iterator[Item]:
    if len(found.attempts) > 1:
        yield Item("head", f"Attempt {tried.number}: {tried.state}")


def _causes(found: Explanation) -> Iterator[Item]:
    for tried in found.attempts:
        if tried.cause is None and tried.interrupted is None and not tried.lines:
            continue
        yield from _heading(found, tried)
        if tried.cause is not None:
            yield from _cause(tried.cause, tried, several=len(found.attempts) > 1)
        else:
            yield Item("text", f"It did not fail; scheduler state: {tried.state}.")
        if tried.interrupted is not None:
            yield from _interruption(tried.interrupted)
        own = tried.cause
        rest = [line for line in tried.lines if own is None or (line.stream, line.line_no) != (own.stream, own.line_no)]
        if rest:
            yield Item("text", "Other log lines:" if own else "Log lines:")
        for line in rest[:LINES]:
            often = f", {line.count} times" if line.count > 1 else ""
            kind = f": {line.reason}" if line.reason else ""
            yield Item("code", line.text, f"{line.stream}, line {line.line_no}{often}{kind}")
        if len(rest) > LINES:
            yield Item("text", f"… and {plural(len(rest) - LINES, 'more line')}: --json")
    if not found.attempts and found.facts.get("state") in {"failed", "node_fail"}:
        yield Item("text", "It failed without an attempt.")


def _interruption(found: Interruption) -> Iterator[Item]:
    """What interrupted an attempt, by all evidence: of a crash of its program, its log says more."""
    if found.cause in {"user_program", "time_limit", "unknown"}:
        return
    what = found.cause.replace("_", " ") + (f" ({found.component.replace('_', ' ')})" if found.component else "")
    text = f"Interrupted by {what}"
    if found.evidence:
        where = f" on {shown(found.machine)}" if found.machine else ""
        text += f", as {_SHOWN_BY.get(found.evidence, found.evidence)}{where} shows"
    if found.attempts and found.attempts > 1:
        text += f"; the same fault ended {plural(found.attempts, 'attempt')}"
    if found.second_order:
        text += "; it made room for a job that a fault of the infrastructure had ended before"
    yield Item("text", f"{text}.")


def _cause(cause: Cause, tried: Tried, *, several: bool) -> Iterator[Item]:
    kinds = f" ({' or '.join(cause.category.replace('_', ' ').split('+'))})" if cause.category else ""
    sure = f", confidence {cause.confidence:.2f}" if cause.confidence else ""
    if cause.reason == "no_signature":
        yield Item("text", f"Unknown: no signature was found{' in its logs' if tried.logs else ''}.")
    else:
        yield Item("text", f"{cause.title}{kinds}{sure}.")
    if cause.evidence is not None and cause.stream == "scheduler":
        by = "an event of its GPUs" if cause.evidence.startswith("NVRM: Xid (") else "the scheduler's record"
        yield Item("code", cause.evidence, by)
    elif cause.evidence is not None:
        yield Item("code", cause.evidence, f"{cause.path or cause.stream}, line {cause.line_no}")
    if cause.others:
        yield Item("text", f"Also seen: {', '.join(other.replace('_', ' ') for other in cause.others)}.")
    ended = [f"exit code {tried.exit_code}"] if tried.exit_code is not None else []
    ended += [f"signal {tried.exit_signal}"] if tried.exit_signal else []
    ended += [f"preempted by {tried.preempted_by}"] if tried.preempted_by else []
    if ended:
        yield Item("text", f"Scheduler: {', '.join([tried.state, *ended])}.")
    if not tried.logs:
        yield Item("note", "No log of this attempt is in the store (gpuctl ingest --job-logs).")
    elif several and any(log.of_all for log in tried.logs):
        yield Item("note", "Its log does not name its attempt; it is assigned to the last one.")


def _waits(found: Explanation) -> Iterator[Item]:
    if found.never_started is not None:
        yield from _wait(found.never_started)
    for tried in found.attempts:
        if tried.wait is not None:
            yield from _heading(found, tried)
            yield from _wait(tried.wait)


def _wait(wait: Wait) -> Iterator[Item]:
    since = f", since {shown(wait.queued_ts)} UTC" if wait.queued_ts is not None else ""
    if wait.seconds is None:
        yield Item("text", f"It waited without starting{since}; when it gave up is unknown.")
        return
    if not wait.seconds and not wait.still_waits:
        yield Item("text", "It did not wait.")
        return
    how = (
        "It has been waiting for"
        if wait.still_waits
        else "It waited without starting for"
        if wait.never_started
        else "It waited"
    )
    unit = unit_of([wait.seconds])
    yield Item("text", f"{how} {lasting(wait.seconds, unit)}{since}.")
    yield from _parts(wait, wait.seconds, unit)
    if wait.behind_s:
        yield Item(
            "text",
            f"For {lasting(wait.behind_s, unit)} of that time, other jobs of its queue that could have started had "
            "waited longer.",
        )
    if wait.scheduler_reason:
        yield Item("fact", wait.scheduler_reason, "scheduler's reason")
    for sampled in wait.sampled:
        cause = f"; the cluster's state: {cause_name(sampled.cause)}" if sampled.cause else ""
        before = "" if sampled.eligible else ", before it was eligible"
        yield Item("fact", f"{plural(sampled.samples, 'sample')}{before}{cause}", sampled.reason)


def _parts(wait: Wait, whole: float, unit: Unit) -> Iterator[Item]:
    """Return the causes of the wait: the certain ones, or the possible ones."""
    possible = [part for part in wait.parts if part.high_s > 0]
    ranges = {part.cause: (part.low_s, part.high_s) for part in possible}
    if wait.main is None and len(may_be_main(ranges)) > 1:
        names = [cause_name(cause) for cause in may_be_main(ranges)]
        yield Item("text", f"The main cause is unknown: {' or '.join(names)}.")
    for part in sorted(possible, key=lambda part: (-part.low_s, -part.high_s)):
        low, high = (min(100.0, 100 * seconds / whole) for seconds in (part.low_s, part.high_s))
        share = percent(low) if low == high else between(low, high).replace("\u00a0", " ")
        ends = timed(part.low_s, unit), timed(part.high_s, unit)
        took = lasting(part.seconds, unit) if ends[0] == ends[1] else f"{ends[0]} to {lasting(part.high_s, unit)}"
        if not part.low_s and part.high_s:
            took = f"up to {lasting(part.high_s, unit)}"
        yield Item("fact", f"{took} ({share}): {BECAUSE[part.cause]}", cause_name(part.cause))


def _places(found: Explanation) -> Iterator[Item]:
    for tried in found.attempts:
        if tried.places:
            yield from _heading(found, tried)
            yield Item("text", _locality(tried))
            for place in tried.places[:PLACES]:
                yield Item("fact", _place(place), place.machine)
            if len(tried.places) > PLACES:
                rest = ", ".join(place.machine for place in tried.places[PLACES:])
                yield Item("fact", rest, f"and {len(tried.places) - PLACES} more")


def _locality(tried: Tried) -> str:
    text = f"{_gpus(tried.gpus)} on {plural(len(tried.places), 'node')}"
    if tried.fewest_servers and len(tried.places) > tried.fewest_servers:
        text += f" ({tried.fewest_servers} would have sufficed)"
    if tried.racks:
        text += f", {plural(tried.racks, 'rack')}"
        if tried.fewest_racks and tried.racks > tried.fewest_racks:
            text += f" ({tried.fewest_racks} would have sufficed)"
    return f"{text}."


def _gpus(count: float | None) -> str:
    return "1 GPU" if count == 1 else f"{shown(count)} GPUs"


def _place(place: Place) -> str:
    text = f"{shown(place.gpus)}{f' of {place.machine_gpus}' if place.machine_gpus else ''} GPUs"
    if place.estimated:
        text += ", estimated"
    if place.gpu_indices is not None:
        text += f" (index {ranges(place.gpu_indices)})" if place.gpu_indices else ""
    text += "".join(f", {word}" for word in (place.gpu_type, place.rack and f"rack {place.rack}") if word)
    if not place.others:
        return f"{text}; not shared"
    others = [f"{other.job} ({_gpus(other.gpus)}, {lasting(other.seconds)})" for other in place.longest]
    more = place.others - len(others)
    return f"{text}; shared with {', '.join(others)}{f' and {more} more' if more > 0 else ''}"


def _uses(found: Explanation) -> Iterator[Item]:
    for tried in found.attempts:
        use = tried.use
        if use is None and not tried.gpus_over_time:
            continue
        yield from _heading(found, tried)
        yield from _over_time(tried.gpus_over_time)
        if use is None:
            continue
        yield Item(
            "text",
            f"Utilization: mean {percent(use.mean_pct)}, median {percent(use.p50_pct)}, idle in "
            f"{percent(use.idle_pct)} of {plural(use.samples, 'sample')}.",
        )
        if use.whole_machines:
            yield Item("note", "Mean over all GPUs of its nodes: the source does not record which of them it held.")


def _over_time(gpus: tuple[GpuUse, ...]) -> Iterator[Item]:
    """The utilization of each GPU as a line of bars; the least used ones if there are many."""
    if not gpus:
        return
    chosen = sorted(gpus, key=lambda gpu: gpu.mean_pct)[:GPUS] if len(gpus) > GPUS else list(gpus)
    periods = {lasting(gpu.period_s) for gpu in chosen}
    which = f"the {GPUS} least used of {len(gpus)} GPUs" if len(gpus) > GPUS else "each GPU"
    of_periods = f", a bar per {periods.pop()}" if len(periods) == 1 else ""
    yield Item("text", f"Utilization of {which} over time{of_periods} (full height: 100%; {UNKNOWN}: no samples):")
    for gpu in chosen:
        number = gpu.slot if gpu.gpu is None else f"{gpu.gpu}{f' instance {gpu.instance}' if gpu.instance else ''}"
        where = " ".join(part for part in (gpu.machine, f"GPU {number}" if number is not None else "") if part)
        [line] = bars(gpu.pct, 100.0, BLOCKS)
        part = "" if gpu.coverage >= WELL_COVERED else f" in the {percent(100 * gpu.coverage)} of its time with samples"
        yield Item("fact", f"{EDGE}{line}{EDGE} mean {percent(gpu.mean_pct)}{part}", where)


def _trainings(found: Explanation) -> Iterator[Item]:
    for tried in found.attempts:
        if tried.training:
            yield from _heading(found, tried)
            for training in tried.training:
                yield Item("fact", _training(training), training.metric or "steps")


def _training(training: Training) -> str:
    parts = []
    if training.last_epoch is not None:
        of = f" of {shown(training.epochs)}" if training.epochs is not None else ""
        parts.append(f"epoch {shown(training.last_epoch)}{of}")
    if training.last_step is not None:
        of = f" of {shown(training.steps)}" if training.steps is not None else ""
        parts.append(f"step {shown(training.last_step)}{of}")
    if training.last is not None:
        parts.append(f"first {shown(training.first)}, lowest {shown(training.lowest)}, last {shown(training.last)}")
    if training.not_finite:
        parts.append(f"{plural(training.not_finite, 'value')} not finite")
    where = f"{training.stream}, line {training.line_no}" if training.line_no else ""
    return "; ".join([*parts, f"{plural(training.points, 'line')}{f', the last one {where}' if where else ''}"])


def _similar(found: Explanation) -> Iterator[Item]:
    similar = found.similar
    if similar is None:
        return
    words = {"user": "of user {}", "name": "named {}", "queue": "in queue {}", "gpus": "with {}"}
    alike = ", ".join(
        words[key].format(_gpus(value) if isinstance(value, float) else shown(value))
        for key, value in similar.alike.items()
    )
    yield Item("text", f"{plural(similar.jobs, 'job')} {alike}, submitted closest in time; {similar.failed} failed.")
    for one in similar.measures:
        unit = unit_of((one.own, one.p50, one.p10, one.p90))
        lines = (
            "not known" if value is None else percent(value) if one.name == "util_pct" else lasting(value, unit)
            for value in (one.own, one.p50, one.p10, one.p90)
        )
        own, *values = lines
        others = f"median {values[0]}, 10th to 90th percentile {values[1]} to {values[2]}"
        few = "" if one.known == similar.jobs else f" (known for {one.known})"
        yield Item("fact", f"{own}; similar jobs: {others}{few}", _MEASURES[one.name])


def _attempts(found: Explanation) -> Iterator[Item]:
    if len(found.attempts) < 2:
        return
    before: Tried | None = None
    for tried in found.attempts:
        text = tried.state
        if tried.run_s is not None:
            text += f" after {lasting(tried.run_s)}"
        if tried.gpu_hours is not None:
            text += f", {shown(tried.gpu_hours)} GPU-h"
        if tried.cause is not None:
            text += f": {tried.cause.title}"
            if before is not None and before.cause is not None and before.cause.reason == tried.cause.reason:
                text += " again" if tried.cause.category else ""
        yield Item("fact", text, f"attempt {tried.number}")
        before = tried


def _decisions(found: Explanation) -> Iterator[Item]:
    if found.decisions_from is None:
        return
    if not found.decisions:
        yield Item("text", f"{found.decisions_from} contains no decision about this job.")
    for one in found.decisions[:DECISIONS]:
        size = f", {plural(one.gpus, 'GPU')}" if one.gpus else ""
        on = f" on {plural(one.nodes, 'node')}" if one.nodes else ""
        yield Item("fact", f"{one.decision}{size}{on}: {one.reason}", f"after {lasting(one.t_s)}")
    if len(found.decisions) > DECISIONS:
        yield Item("text", f"… and {plural(len(found.decisions) - DECISIONS, 'more decision')}: --json")


def spans(found: Explanation) -> list[tuple[str, list[Span]]]:
    """Return when each attempt waited and ran: kind, begin, end, and in words."""
    tries: list[tuple[str, Wait | None, datetime | None, datetime | None, str]] = []
    if found.never_started is not None:
        tries.append(("no attempt", found.never_started, None, None, ""))
    tries += [(f"attempt {one.number}", one.wait, one.start_ts, one.end_ts, one.state) for one in found.attempts]
    every = []
    for name, wait, start, end, state in tries:
        own: list[Span] = []
        if wait is not None and wait.queued_ts is not None and wait.seconds:
            until = wait.queued_ts + timedelta(seconds=wait.seconds)
            own.append(("waiting", wait.queued_ts, until, f"waited {lasting(wait.seconds)}"))
        if start is not None and end is not None and end > start:
            own.append(("running", start, end, f"ran {lasting((end - start).total_seconds())}: {state}"))
        every.append((name, own))
    return every


def timeline(found: Explanation) -> Timeline | None:
    """Return the figure of the page; None if no attempt has a known time."""
    every = spans(found)
    shown_rows = every[:TRIES]
    times = [time for _, own in shown_rows for _, start, end, _ in own for time in (start, end)]
    if not times or min(times) == max(times):
        return None
    first, last = min(times), max(times)
    whole = (last - first).total_seconds()
    rows = tuple(
        (
            name,
            tuple(
                Bar(
                    kind,
                    round(100 * (start - first).total_seconds() / whole, 3),
                    round(100 * (end - start).total_seconds() / whole, 3),
                    f"{name} {words}, {shown(start)} to {shown(end)} UTC",
                )
                for kind, start, end, words in own
            ),
        )
        for name, own in shown_rows
    )
    return Timeline(rows, f"{shown(first)} UTC", f"{shown(last)} UTC", len(every) - len(shown_rows))


def title(found: Explanation) -> str:
    """Return the heading of an explanation."""
    job = found.job if found.asked == found.job else f"{found.asked} ({found.job})"
    return f"Job {job} of {found.cluster}: {found.facts.get('state', 'unknown')}"


def as_json(found: Explanation) -> dict[str, object]:
    """Return an explanation as JSON values; times are ISO 8601 in UTC, durations seconds."""
    value = json_value(asdict(found))
    assert isinstance(value, dict)  # noqa: S101 - asdict makes nothing else
    return {"schema": SCHEMA, **value}


def print_explanation(
    found: Explanation,
    *,
    console_width: int | None = None,
    color: bool | None = None,
    file: TextIO | None = None,
    pictures: bool = False,
) -> None:
    """Print an explanation for people; nothing is cut, lines wrap.

    Args:
        found: the explanation.
        console_width: characters of a line; None: that of the terminal.
        color: use colours and bold type; None: if the stream suits.
        file: output stream; None: standard output.
        pictures: also show when it waited and ran.
    """
    from rich.padding import Padding
    from rich.text import Text

    out = sys.stdout if file is None else file
    color = wants_color(out, os.environ) if color is None else color
    width = max(MIN_WIDTH, shutil.get_terminal_size().columns if console_width is None else console_width)
    made = io.StringIO()
    console = make_console(made, width, color)

    def say(text: Text, indent: int) -> None:
        text.overflow = "fold"
        console.print(Padding(text, (0, 0, 0, indent)), overflow="fold", no_wrap=False)

    encoding = getattr(out, "encoding", None) or "utf-8"
    picture = attempts(found, width, signs_of(encoding)) if pictures else None
    say(Text(visible(title(found)), "bold"), 0)
    for number, block in enumerate(blocks(found)):
        if number == 1 and picture is not None:
            console.print()
            print_picture(console, picture)
        console.print()
        say(Text(visible(block.title), "bold cyan"), 0)
        for item in block.items:
            text, label = visible(item.text), visible(item.label)
            if item.kind == "code":
                say(Text(label, "dim"), 2)
                say(Text(f"| {text}"), 4)
            elif item.kind == "fact":
                say(Text.assemble((f"{label}: ", "dim"), text), 2)
            else:
                say(Text(text, {"head": "bold", "note": "dim"}.get(item.kind, "")), 1 if item.kind == "head" else 2)
    trimmed = "".join(f"{line.rstrip()}\n" for line in made.getvalue().split("\n")[:-1])
    out.write(encodable(trimmed, encoding))


def render_explanation(found: Explanation) -> str:
    """Return an explanation as one self-contained HTML page."""
    drawn = timeline(found)
    return render_page("explain.html.j2", found=found, title=title(found), blocks=blocks(found), timeline=drawn)
