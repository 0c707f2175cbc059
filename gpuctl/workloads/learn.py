"""Fits the laws of `gpuctl.workloads.parametric` to a trace, optionally only from groups of jobs and users."""

from __future__ import annotations

from dataclasses import dataclass
from typing import TYPE_CHECKING

import numpy as np

from gpuctl.core.errors import InputError, UsageError
from gpuctl.workloads import mixture
from gpuctl.workloads.jobs import DAY_S, HOUR_S, WEEK_S
from gpuctl.workloads.parametric import ARRIVALS, HOURS, THINK_S, Parametric

if TYPE_CHECKING:
    from numpy.typing import NDArray

    from gpuctl.workloads.jobs import Floats, Ints, Jobs

LEAST_JOBS, LEAST_USERS = 10, 5
"""Fewest jobs and users behind each number of an anonymous model."""
MODAL_LIMITS = 20
_LEAST_CLASS, _LEAST_TO_FIT = 200, 30


@dataclass(frozen=True)
class Groups:
    """Criteria for groups of jobs that may be disclosed.

    Attributes:
        jobs: in a group, at least.
        users: in a group, at least.
        digits: significant digits of numbers about all jobs together.
    """

    jobs: int = 1
    users: int = 1
    digits: int = 6

    def good(self, which: NDArray[np.bool_], user: Ints) -> bool:
        """Return whether a group has enough jobs and users."""
        if int(which.sum()) < self.jobs:
            return False
        return self.users <= 1 or np.unique(user[which]).size >= self.users

    def short(self, value: float) -> float:
        """Return a number rounded to the permitted digits."""
        return float(f"{value:.{self.digits}g}") if np.isfinite(value) else value


ALL = Groups()
ANONYMOUS = Groups(LEAST_JOBS, LEAST_USERS, 3)


def fit(jobs: Jobs, arrivals: str | None = None, *, anonymous: bool = False) -> Parametric:
    """Fit the laws.

    Args:
        jobs: of the trace.
        arrivals: one of `ARRIVALS`; None: ``sessions`` if users are known, else ``nhpp``.
        anonymous: disclose nothing based on fewer than `LEAST_JOBS` jobs or `LEAST_USERS` users: rarer sizes, limits
            and hours are omitted or merged; no names, dates or values of single jobs; three digits.

    Raises:
        UsageError: no such arrivals, or users are needed but unknown.
        InputError: there are too few jobs, or too few users for an anonymous model.
    """
    groups = ANONYMOUS if anonymous else ALL
    known = bool((jobs.user >= 0).any())
    arrivals = arrivals or ("sessions" if known else "nhpp")
    if arrivals not in ARRIVALS:
        raise UsageError(f"--arrivals {arrivals}: not understood", hint=f"expected {', '.join(ARRIVALS)}")
    _check(jobs, known, arrivals, anonymous=anonymous)
    session, order = _sessions(jobs)
    begins, counts = _first_of(jobs, session, order), np.bincount(session)
    single, more = _session_sizes(counts)
    come = jobs.submit_s[begins] if arrivals == "sessions" else jobs.submit_s
    who = jobs.user[begins] if arrivals == "sessions" else jobs.user
    rate = _rates(come, who, jobs, groups)
    kind, kinds = _kinds(jobs, groups)
    class_top = _classes(jobs, groups)
    scores = _run_scores(jobs, class_top)
    template, same_inside, same_across = _templates(jobs, kind, session, order)
    limits, limit_share, limited, rho_limit = _limits(jobs, scores, groups)
    share = kinds.share
    least_sd = 0.3 if anonymous else 0.02
    group = np.searchsorted(class_top, jobs.size)
    runs = tuple(
        _law(np.log(jobs.run_s[group == k]), jobs.user[group == k], groups, least_sd) for k in range(class_top.size)
    )
    return Parametric(
        name="" if anonymous else jobs.name, unit=jobs.unit, capacity=groups.short(jobs.capacity),
        capacity_from=jobs.capacity_from, calendar=jobs.calendar, offered_=groups.short(jobs.offered),
        jobs_a_week=groups.short(jobs.count / max(jobs.span_s / WEEK_S, 1 / 7)), arrivals=arrivals,
        rate=np.array([groups.short(value) for value in rate.tolist()]),
        day_shape=groups.short(_day_shape(come, jobs, rate)), single=groups.short(single), more=groups.short(more),
        gap=_gaps(jobs, session, order, groups, least_sd),
        users=int(np.unique(jobs.user[jobs.user >= 0]).size) if known else 0,
        zipf=_zipf(who, groups) if known else (1.0, 0.0),
        same_inside=groups.short(same_inside), same_across=groups.short(same_across), sizes=kinds.size,
        kind_queue=kinds.queue, kind_gpu_type=kinds.gpu_type,
        kind_share=np.array([groups.short(value) for value in share.tolist()]), class_top=class_top, runs=runs,
        longest=np.array([groups.short(_longest(jobs, group == k, groups)) for k in range(class_top.size)]),
        within=groups.short(_within(scores, template)), rho_size=groups.short(_rho_size(jobs, scores, class_top)),
        limits=limits, limit_share=limit_share, limited=groups.short(limited), rho_limit=groups.short(rho_limit),
        queues=() if anonymous else jobs.queues, gpu_types=() if anonymous else jobs.gpu_types,
    )  # fmt: skip


def _check(jobs: Jobs, known: bool, arrivals: str, *, anonymous: bool) -> None:
    if arrivals == "sessions" and not known:
        raise UsageError("--arrivals sessions: this trace names no users", hint="--arrivals nhpp")
    if jobs.count < _LEAST_TO_FIT or jobs.span_s < DAY_S:
        raise InputError(
            f"{jobs.name}: {jobs.count:,} jobs in {jobs.span_s / DAY_S:.1f} days; laws are fitted to at least "
            f"{_LEAST_TO_FIT} jobs and a day"
        )
    if anonymous and (not known or not ANONYMOUS.good(np.ones(jobs.count, bool), jobs.user) or (jobs.user < 0).any()):
        raise UsageError(
            f"--anonymous: {jobs.name} must name the users of all jobs, at least {LEAST_USERS}, to see that no number "
            "is of one of them alone",
            hint="a model with --method parametric and no --anonymous holds fewer details than one of the trace's jobs",
        )


def _sessions(jobs: Jobs) -> tuple[Ints, Ints]:
    """The session of each job, and the jobs in order of user and time."""
    order = np.lexsort((jobs.submit_s, jobs.user))
    user, submit = jobs.user[order], jobs.submit_s[order]
    new = np.ones(jobs.count, bool)
    new[1:] = (user[1:] != user[:-1]) | (np.diff(submit) > THINK_S)
    session = np.empty(jobs.count, np.int64)
    session[order] = np.cumsum(new) - 1
    return session, order


def _first_of(jobs: Jobs, session: Ints, order: Ints) -> Ints:
    first = np.unique(session[order], return_index=True)[1]
    return np.asarray(order[first], np.int64)


def _session_sizes(counts: Ints) -> tuple[float, float]:
    """The share of sessions of one job, and the mean number beyond two of the others."""
    several = counts[counts > 1]
    return float((counts == 1).mean()), float(several.mean() - 2) if several.size else 0.0


def _rates(come: Floats, who: Ints, jobs: Jobs, groups: Groups) -> Floats:
    """Arrivals per hour by hour of the week; small groups of hours are merged."""
    hours = np.arange(int(jobs.submit_s[0] // HOUR_S), int(jobs.submit_s[-1] // HOUR_S) + 1)
    seen = np.bincount(hours % HOURS, minlength=HOURS).astype(np.float64)
    at = (come // HOUR_S).astype(np.int64) % HOURS
    hour = np.arange(HOURS)
    levels = (hour, hour % 24 + 24 * (hour // 24 >= 5), hour % 24, np.zeros(HOURS, np.int64))
    for level in levels:
        counts, exposed = np.bincount(level[at], minlength=HOURS), np.bincount(level, seen, minlength=HOURS)
        cells = np.unique(level)
        if (exposed[cells] == 0).any():
            continue
        small = groups.jobs > 1 and not all(groups.good(level[at] == cell, who) for cell in cells.tolist())
        if not small:
            return np.asarray((counts / np.maximum(exposed, 1e-9))[level], np.float64)
    return np.full(HOURS, come.size / hours.size)


def _day_shape(come: Floats, jobs: Jobs, rate: Floats) -> float:
    """Shape of the gamma law of a day's factor: the variance of days beyond that of a Poisson process."""
    first, last = int(jobs.submit_s[0] // DAY_S) + 1, int(jobs.submit_s[-1] // DAY_S)
    if last - first < 7:
        return np.inf
    days = np.arange(first, last)
    counts = np.bincount((come // DAY_S).astype(np.int64), minlength=last)[first:last]
    mean = rate.reshape(7, 24).sum(axis=1)[days % 7]
    beyond = float(((counts - mean) ** 2 - mean).sum() / np.maximum((mean**2).sum(), 1e-9))
    return 1 / beyond if beyond > 1e-3 else np.inf


def _gaps(jobs: Jobs, session: Ints, order: Ints, groups: Groups, least_sd: float) -> mixture.Mixture:
    inside = np.diff(session[order]) == 0
    gaps = np.diff(jobs.submit_s[order])[inside]
    who = jobs.user[order][1:][inside]
    if gaps.size < max(10, groups.jobs) or not groups.good(np.ones(gaps.size, bool), who):
        return mixture.Mixture(np.ones(1), np.array([np.log(60.0)]), np.ones(1))
    return _law(np.log(np.maximum(gaps, 0.5)), who, groups, least_sd, most=3)


def _law(
    values: Floats, who: Ints, groups: Groups, least_sd: float, *, most: int = mixture.MOST_PARTS
) -> mixture.Mixture:
    """A mixture of normal laws; in an anonymous model, no part belongs to few users or mostly to one."""
    least_jobs = max(5.0, groups.jobs)
    found = mixture.fit(values, most=most, least_jobs=least_jobs, least_sd=least_sd)
    if groups.users <= 1:
        return found
    for parts in range(found.weight.size - 1, 0, -1):
        if _of_many(found.part(values), found.weight.size, who, groups):
            break
        found = mixture.fit(values, most=parts, least_jobs=least_jobs, least_sd=least_sd)
    return found.coarse()


def _of_many(part: Ints, parts: int, who: Ints, groups: Groups) -> bool:
    """Whether each part has enough jobs of enough users, and no user more than half of its jobs."""
    return all(
        groups.good(part == k, who)
        and 2 * int(np.unique(who[part == k], return_counts=True)[1].max()) <= (part == k).sum()
        for k in range(parts)
    )


def _zipf(who: Ints, groups: Groups) -> tuple[float, float]:
    """Exponent and offset of a Zipf-Mandelbrot law of users' counts, by least squares of ln count on ln rank."""
    counts = np.sort(np.bincount(who[who >= 0]))[::-1]
    counts = counts[counts > 0].astype(np.float64)
    rank = np.arange(1, counts.size + 1)
    if counts.size < 3:
        return 0.0, 0.0
    best = (np.inf, 1.0, 0.0)
    weight = np.sqrt(counts)
    for offset in (0, 0.5, 1, 2, 3, 5, 8, 12, 20, 35, 60, 100):
        x = np.log(rank + offset)
        slope, level = np.polyfit(x, np.log(counts), 1, w=weight)
        error = float((weight * (np.log(counts) - slope * x - level) ** 2).sum())
        if error < best[0]:
            best = (error, -float(slope), float(offset))
    return groups.short(best[1]), best[2]


@dataclass(frozen=True)
class _Kinds:
    size: Ints
    queue: Ints
    gpu_type: Ints
    share: Floats


def _kinds(jobs: Jobs, groups: Groups) -> tuple[Ints, _Kinds]:
    """The kind of each job (-1: not disclosed), and the kinds; anonymous ones are sizes only."""
    parts = (jobs.size, jobs.queue, jobs.gpu_type)
    if groups.jobs > 1:
        parts = (jobs.size, np.full(jobs.count, -1), np.full(jobs.count, -1))
    rows, kind = np.unique(np.column_stack(parts), axis=0, return_inverse=True)
    kind = kind.reshape(-1)
    good = (
        np.array([groups.good(kind == k, jobs.user) for k in range(len(rows))])
        if groups.jobs > 1
        else np.ones(len(rows), bool)
    )
    if not good.any():
        raise InputError(f"{jobs.name}: no size has {groups.jobs} jobs of {groups.users} users")
    number = np.where(good, np.cumsum(good) - 1, -1)
    kind = number[kind]
    templates = rows[good]
    # not of new draws only: repetition is equal for all kinds, so that these shares result
    share = np.bincount(kind[kind >= 0], minlength=len(templates)).astype(np.float64)
    return kind, _Kinds(templates[:, 0], templates[:, 1], templates[:, 2], share / share.sum())


def _classes(jobs: Jobs, groups: Groups) -> Ints:
    """Largest sizes of classes: powers of two, merged until each has enough jobs and users."""
    top = [1 << k for k in range(int(jobs.size.max()).bit_length() + 1)]
    found: list[int] = []
    low = 0
    for edge in top:
        inside = (jobs.size > low) & (jobs.size <= edge)
        rest = jobs.size > edge
        enough = int(inside.sum()) >= _LEAST_CLASS and groups.good(inside, jobs.user)
        left = not rest.any() or (int(rest.sum()) >= _LEAST_CLASS and groups.good(rest, jobs.user))
        if enough and left:
            found.append(edge)
            low = edge
        if not rest.any():
            break
    if not found or found[-1] < jobs.size.max():
        found.append(top[-1])
    return np.array(found, np.int64)


def _longest(jobs: Jobs, which: NDArray[np.bool_], groups: Groups) -> float:
    """The longest run time of a class; in an anonymous model, one that enough jobs of enough users reach.

    The latter is rounded up to the next tenth of its logarithm, so that it is no job's exact duration.
    """
    if not which.any():
        return 1.0
    order = np.argsort(-jobs.run_s[which], kind="stable")
    run, user = jobs.run_s[which][order], jobs.user[which][order]
    at = min(groups.jobs, run.size) - 1
    while groups.users > 1 and at + 1 < run.size and np.unique(user[: at + 1]).size < groups.users:
        at += 1
    return float(run[at]) if groups.users <= 1 else float(np.exp(np.ceil(10 * np.log(run[at])) / 10))


def _run_scores(jobs: Jobs, class_top: Ints) -> Floats:
    """The normal score of each job's run time inside its class of sizes, by the middle of its ranks."""
    group = np.searchsorted(class_top, jobs.size)
    scores = np.zeros(jobs.count)
    for k in range(class_top.size):
        mine = group == k
        if mine.any():
            scores[mine] = normal_scores(jobs.run_s[mine])
    return scores


def normal_scores(values: Floats) -> Floats:
    """Standard normal quantiles of ranks; equal values share the middle of theirs."""
    from scipy.special import ndtri
    from scipy.stats import rankdata

    return np.asarray(ndtri((rankdata(values) - 0.5) / values.size), np.float64)


def _templates(jobs: Jobs, kind: Ints, session: Ints, order: Ints) -> tuple[Ints, float, float]:
    """Runs of equal jobs, and how often a job equals its user's previous one, within and at the start of a session."""
    same_user = jobs.user[order][1:] == jobs.user[order][:-1]
    same = same_user & (kind[order][1:] == kind[order][:-1])
    inside = np.diff(session[order]) == 0
    across = same_user & ~inside
    template = np.empty(jobs.count, np.int64)
    template[order] = np.cumsum(np.append(True, ~same)) - 1
    return template, _mean(same[inside]), _mean(same[across])


def _mean(found: NDArray[np.bool_]) -> float:
    return float(found.mean()) if found.size else 0.0


def _within(scores: Floats, template: Ints) -> float:
    """The share of the variance of run times within runs of equal jobs, by analysis of variance."""
    count = np.bincount(template)
    mean = np.bincount(template, scores) / count
    several = count > 1
    left = float(((scores - mean[template]) ** 2).sum())
    free = int((count[several] - 1).sum())
    total = float(scores.var())
    if free < 10 or total <= 0:
        return 1.0
    return float(np.clip(left / free / total, 0.0, 1.0))


def _rho_size(jobs: Jobs, scores: Floats, class_top: Ints) -> float:
    from gpuctl.workloads.parametric import size_scores

    at = size_scores(jobs.size, np.ones(jobs.count), class_top)
    return _correlation(at, scores)


def _correlation(a: Floats, b: Floats) -> float:
    a, b = a - a.mean(), b - b.mean()
    below = float(np.sqrt((a**2).sum() * (b**2).sum()))
    return float(np.clip((a * b).sum() / below, -0.99, 0.99)) if below > 0 else 0.0


def _limits(jobs: Jobs, scores: Floats, groups: Groups) -> tuple[Floats, Floats, float, float]:
    """The most frequent limits with frequencies, the share of jobs with a limit, and its correlation with run time."""
    known = np.isfinite(jobs.limit_s)
    none = (np.zeros(0), np.zeros(0), 0.0, 0.0)
    if not known.any() or not groups.good(known, jobs.user):
        return none
    values, place, count = np.unique(jobs.limit_s[known], return_inverse=True, return_counts=True)
    modal = np.argsort(-count, kind="stable")[:MODAL_LIMITS]
    if groups.jobs > 1:
        who = jobs.user[known]
        modal = np.array([k for k in modal.tolist() if groups.good(place == k, who)], np.int64)
    if not modal.size:
        return none
    modal = np.sort(modal)
    rho = _correlation(normal_scores(jobs.limit_s[known]), scores[known]) if known.sum() > 30 else 0.0
    share = count[modal] / count[modal].sum()
    return values[modal], np.array([groups.short(v) for v in share.tolist()]), float(known.mean()), rho
