"""Fair-share and usage worked out by hand, and the examples of SchedMD's own pages."""

from __future__ import annotations

from datetime import UTC, datetime

import numpy as np
import pytest
from hypothesis import given, settings
from hypothesis import strategies as st

from gpuctl.core.errors import InputError, UsageError
from gpuctl.replay.policies.slurm.fairshare import Tree, build_tree
from gpuctl.replay.policies.slurm.usage import billable, next_reset, second_factor
from gpuctl.slurm.associations import USE_PARENT, Association
from tests.slurm_fairshare import Classic, Usage, classic_factor, fair_tree


def _tree(*rows: tuple[str, str | None, str | None, int]) -> Tree:
    """Rows of account, user, parent account, shares; the root stands before them."""
    return build_tree([Association("root"), *(Association(a, u, None if u else p or "root", s) for a, u, p, s in rows)])


def _raw(tree: Tree, users: dict[tuple[str, str], float]) -> np.ndarray:
    raw = np.zeros(len(tree.parent))
    for (account, user), used in users.items():
        at = tree.index(account, user)
        while at >= 0:
            raw[at] += used
            at = tree.parent[at]
    return raw


def _factors(tree: Tree, used: dict[tuple[str, str], float], **how: bool) -> dict[str, float]:
    found = fair_tree(tree, _raw(tree, used), **how)
    return {f"{a.account}.{a.user}": found.factor[i] for i, a in enumerate(tree.associations) if a.user}


# ---- vector 11 of the spec
def test_fair_tree_of_two_accounts() -> None:
    tree = _tree(
        ("A", None, None, 1), ("A", "a1", None, 1), ("A", "a2", None, 1), ("B", None, None, 1), ("B", "b1", None, 1)
    )
    raw = _raw(tree, {("A", "a1"): 0.4, ("A", "a2"): 0.4, ("B", "b1"): 0.2})
    found = fair_tree(tree, raw)
    assert found.level[tree.index("A")] == 0.5 / 0.8
    assert found.level[tree.index("B")] == 0.5 / 0.2
    assert found.factor[tree.index("B", "b1")] == 1.0
    assert found.factor[tree.index("A", "a1")] == found.factor[tree.index("A", "a2")] == 2 / 3
    assert found.factor[tree.index("A")] == 0


# ---- SchedMD's page Classic Fairshare Algorithm, section Example
def test_the_example_of_the_classic_page() -> None:
    tree = _tree(
        ("A", None, None, 40), ("D", None, None, 60), ("B", None, "A", 30), ("C", None, "A", 10), ("E", None, "D", 25),
        ("F", None, "D", 35), ("B", "u1", None, 1), ("C", "u2", None, 1), ("C", "u3", None, 1), ("E", "u4", None, 1),
        ("F", "u5", None, 1),
    )  # fmt: skip
    # the page's usage is of the whole machine, 30 % of which was idle; another association at the root stands for that
    idle = build_tree([*tree.associations, Association("root", "idle", None, 0)])
    raw = _raw(idle, {("B", "u1"): 20, ("C", "u2"): 25, ("E", "u4"): 25, ("root", "idle"): 30})
    classic = Classic(idle)
    none = np.zeros(0)
    usage = Usage(idle.parent, 0, raw=raw)
    classic.calculate(usage, none.astype(int), none.astype(bool), starts_s=none, rates=none, now_s=0)
    for user in np.flatnonzero(idle.is_user):
        classic.user(int(user), raw)
    effective = {a.user or a.account: round(float(classic.effective[i]), 6) for i, a in enumerate(idle.associations)}
    assert {k: effective[k] for k in "ADBCEF"} == {
        "A": 0.45, "D": 0.25, "B": 0.3875, "C": 0.3, "E": 0.25, "F": 0.145833,
    }  # fmt: skip
    factors = classic.factors()
    found = {
        u: round(float(factors[idle.index(a, u)]), 4)
        for a, u in zip("BCCEF", ("u1", "u2", "u3", "u4", "u5"), strict=True)
    }
    assert found == {"u1": 0.4085, "u2": 0.0221, "u3": 0.125, "u4": 0.5, "u5": 0.7492}


def test_nobody_has_used_anything() -> None:
    tree = _tree(
        ("A", None, None, 3), ("A", "a", None, 1), ("B", None, None, 1), ("B", "b", None, 1), ("B", "c", None, 0)
    )
    assert _factors(tree, {}) == {"A.a": 1.0, "B.b": 1.0, "B.c": 1 / 3}


def test_a_user_that_ties_with_an_account_ranks_as_its_first_user() -> None:
    tree = _tree(("root", "u", None, 1), ("A", None, None, 1), ("A", "a", None, 1), ("A", "b", None, 1))
    assert _factors(tree, {("root", "u"): 6, ("A", "a"): 2, ("A", "b"): 4}) == {"root.u": 1.0, "A.a": 1.0, "A.b": 1 / 3}


def test_accounts_that_tie_are_merged_only_where_asked() -> None:
    # levels: A and B alike; inside A: .5/.25 and .5/.75, inside B: .5/.4 and .5/.6
    rows = [("A", None, None, 1), ("A", "a1", None, 1), ("A", "a2", None, 1)]
    rows += [("B", None, None, 1), ("B", "b1", None, 1), ("B", "b2", None, 1)]
    tree = _tree(*rows)
    used = {("A", "a1"): 25, ("A", "a2"): 75, ("B", "b1"): 40, ("B", "b2"): 60}
    # as slurmctld: B after A, its first child tied with A's last one
    assert _factors(tree, used) == {"A.a1": 1.0, "A.a2": 3 / 4, "B.b1": 3 / 4, "B.b2": 1 / 4}
    # as the page says
    assert _factors(tree, used, merge_tied=True) == {"A.a1": 1.0, "B.b1": 3 / 4, "B.b2": 2 / 4, "A.a2": 1 / 4}


def test_children_of_an_account_without_shares_of_its_own_compete_one_level_up() -> None:
    tree = _tree(
        ("P", None, None, USE_PARENT), ("P", "p", None, 2), ("A", None, None, 6), ("A", "a", None, 1),
        ("A", "q", None, USE_PARENT),
    )  # fmt: skip
    assert tree.level_norm[tree.index("P", "p")] == 2 / 8
    assert tree.norm[tree.index("A", "q")] == 6 / 8
    # p: .25 / .5 below A: .75 / .5; q has no level of its own and comes first in A
    found = _factors(tree, {("P", "p"): 10, ("A", "a"): 5, ("A", "q"): 5})
    assert found == {"A.q": 1.0, "A.a": 2 / 3, "P.p": 1 / 3}


def test_no_shares_at_all_count_nothing() -> None:
    tree = _tree(("A", None, None, 0), ("A", "a", None, 0), ("A", "b", None, 0))
    assert tree.level_norm[1:].tolist() == [0, 0, 0]
    assert _factors(tree, {("A", "a"): 5}) == {"A.a": 1.0, "A.b": 1.0}
    assert classic_factor(np.array([0.2, 0.0]), np.array([0.0, 0.5])).tolist() == [0.0, 1.0]
    assert classic_factor(np.array([0.5]), np.array([0.5]), dampening=2).tolist() == [2**-0.5]


@pytest.mark.parametrize(
    ("rows", "message"),
    [
        ([], "0 root accounts"),
        ([Association("root"), Association("other")], "2 root accounts"),
        ([Association("root"), Association("A", "u")], "account A has members"),
        ([Association("root"), Association("A", None, "root"), Association("A", None, "root")], "occurs twice"),
    ],
)
def test_trees_that_are_none(rows: list[Association], message: str) -> None:
    with pytest.raises(InputError, match=message):
        build_tree(rows)


# ---- Fair Tree against a few lines that follow the page, merging as it says
def _reference(tree: Tree, raw: np.ndarray) -> dict[int, float]:
    levels = fair_tree(tree, raw).level
    kids = {i: list(tree.children[tree.first[i] : tree.first[i + 1]]) for i in range(len(tree.parent))}
    total = free = rank = int(tree.is_user.sum())
    found: dict[int, float] = {}

    def visit(group: list[int], tied: bool) -> None:
        nonlocal free, rank
        places = sorted(set(levels[group].tolist()), reverse=True)
        for n, level in enumerate(places):
            here = [i for i in group if levels[i] == level]
            users = [i for i in here if tree.is_user[i]]
            after = tied and n == 0
            if users and not after:
                rank = free
            for i in users:
                found[i] = rank / total
            free -= len(users)
            merged = [child for i in here if not tree.is_user[i] for child in kids[i]]
            visit(merged, after or bool(users)) if merged else None

    visit(kids[0], tied=False)
    return found


@given(st.data())
@settings(max_examples=60, deadline=None)
def test_random_trees_rank_as_the_page_says(data: st.DataObject) -> None:
    rows: list[tuple[str, str | None, str | None, int]] = []
    accounts = ["root"]
    for n in range(data.draw(st.integers(1, 6))):
        rows.append((f"A{n}", None, data.draw(st.sampled_from(accounts)), data.draw(st.integers(0, 3))))
        accounts.append(f"A{n}")
    places = st.tuples(st.sampled_from(accounts), st.integers(0, 3))
    rows += [(a, f"u{n}", None, s) for n, (a, s) in enumerate(data.draw(st.lists(places, min_size=1, max_size=10)))]
    tree = _tree(*rows)
    users = [(a.account, a.user) for a in tree.associations if a.user]
    raw = _raw(tree, {who: data.draw(st.integers(0, 4)) for who in users})
    found = fair_tree(tree, raw, merge_tied=True).factor
    assert {i: found[i] for i in np.flatnonzero(tree.is_user).tolist()} == _reference(tree, raw)


# ---- usage
def test_usage_decays_and_is_charged_up_to_the_root() -> None:
    tree = _tree(("A", None, None, 1), ("A", "a", None, 1), ("B", None, None, 1), ("B", "b", None, 1))
    usage = Usage(tree.parent, 1000.0)
    who = np.array([tree.index("A", "a")])
    usage.decay(100.0)
    usage.charge_running(who, np.array([40.0]), np.array([2.0]), 100.0)
    d = 1 - 0.693 / 1000
    first = 60 * d**60 * 2
    assert usage.raw[[0, tree.index("A"), who[0], tree.index("B")]] == pytest.approx([first, first, first, 0])
    usage.end(int(who[0]), 40.0, 130.0, 2.0)  # 30 s since the calculation, in which 60 s are charged already
    assert usage.raw[0] == pytest.approx(first + 30 * d**30 * 2)
    before = usage.raw[0]
    usage.decay(200.0)
    assert usage.raw[0] == pytest.approx(before * d**100)


def test_nothing_decays_without_half_life() -> None:
    assert second_factor(0) == 1
    usage = Usage(np.array([-1]), 0.0, raw=np.array([7.0]))
    usage.decay(0)
    usage.charge_running(np.array([0]), np.array([0.0]), np.array([1.0]), 10)
    usage.decay(1e9)
    assert usage.raw.tolist() == [17.0]


def _utc(text: str) -> float:
    return datetime.fromisoformat(text).replace(tzinfo=UTC).timestamp()


@pytest.mark.parametrize(
    ("period", "last", "now", "due"),
    [
        ("DAILY", "2026-03-05T10:20:30", "2026-03-05T11:00:00", "2026-03-06T00:00:00"),
        ("DAILY", "2026-03-05T10:20:30", "2026-03-09T11:00:00", "2026-03-09T00:00:00"),
        ("WEEKLY", "2026-03-05T10:20:30", "2026-03-05T11:00:00", "2026-03-08T00:00:00"),  # a Thursday, then Sunday
        ("WEEKLY", "2026-03-08T10:20:30", "2026-03-08T11:00:00", "2026-03-15T00:00:00"),
        ("MONTHLY", "2026-12-31T10:20:30", "2026-12-31T11:00:00", "2027-01-01T00:00:00"),
        ("QUARTERLY", "2026-05-05T10:20:30", "2026-05-05T11:00:00", "2026-07-01T00:00:00"),
        ("QUARTERLY", "2026-10-05T10:20:30", "2026-10-05T11:00:00", "2027-01-01T00:00:00"),
        ("YEARLY", "2026-05-05T10:20:30", "2026-05-05T11:00:00", "2027-01-01T00:00:00"),
    ],
)
def test_when_usage_is_reset(period: str, last: str, now: str, due: str) -> None:
    assert next_reset(period, _utc(last), _utc(now)) == _utc(due)


def test_no_other_period_is_known() -> None:
    with pytest.raises(UsageError, match="HOURLY"):
        next_reset("HOURLY", 0.0, 0.0)


# ---- the examples of SchedMD's page Multifactor Priority Plugin: a node of 16 CPUs and 64 GB
@pytest.mark.parametrize(("cpus", "gib", "summed", "dearest"), [(1, 60, 16, 15), (16, 1, 16.25, 16), (16, 60, 31, 16)])
def test_billing_of_a_job(cpus: int, gib: int, summed: float, dearest: float) -> None:
    tres, weights = {"cpu": cpus, "mem": gib * 1024.0, "billing": 99.0}, {"cpu": 1.0, "mem": 0.25 / 1024}
    assert billable(tres, weights) == summed
    assert billable(tres, weights, max_tres=True) == dearest
    assert billable(tres, None) == cpus
    shared = {**tres, "license/x": 2.0, "gres/gpu": 3.0}
    assert billable(shared, {**weights, "license/x": 5.0, "gres/gpu": 20.0}, max_tres=True) == 60 + 10
