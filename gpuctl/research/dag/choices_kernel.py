"""The compiled policies of `loop_kernel`: baselines, the search that simulates known jobs to their end, and rules.

If an executor is free and a candidate exists, a policy chooses a stage and a number of executors.
"""

from __future__ import annotations

import numpy as np

from gpuctl.compiled.bundles import Bundle, ints
from gpuctl.compiled.jit import compiled, inner
from gpuctl.research.dag.loop_kernel import (
    ACTIONS,
    ACTIVE,
    AMOUNT,
    DECISIONS,
    FREE,
    NONE,
    STAGE,
    act,
    advance,
    copy_to,
    list_candidates,
    sort_by_rest,
)

FIFO, FAIR, WFAIR, CP, SRPT, ROLLOUT, TREE_FAIR, TREE_ALL, TREE_AMOUNT = range(9)
FEATURES = 11
AVOIDED, JUDGED, PREFERRED = range(3)


class Rules(Bundle):
    """Rules; the first one that holds applies."""

    at = ints()  # where the conditions of a rule begin; one more than rules [rules + 1]
    feature = ints()  # [conditions]
    above = ints()  # 0: at most the limit; 1: above it [conditions]
    limit = ints()  # [conditions]
    tier = ints()  # AVOIDED, JUDGED or PREFERRED [rules]
    chosen = ints()  # weight of the rows that the teacher chose [rules]
    other = ints()  # weight of those that it did not choose [rules]


class Book(Bundle):
    """Record of decisions with a choice: rows of features, and each watcher's decision."""

    row = ints(2)  # features, with the amount last; then 1 where the first watcher chose it, then the decision
    # a decision: candidates, actions, then stage, amount and cost of each watcher, and how much more its worst action
    # costs than its best one, if the first watcher is the search
    seen = ints(2)
    watch = ints()  # policies that watch
    c = ints()  # rows, decisions with a choice; how many decisions may still be made; 1: a row an action; 1: costs


ROWS, SEEN, BUDGET, BY_ACTION, COSTS = range(5)


@inner
def _least(w, s, count, kind):  # type: ignore[no-untyped-def]
    """Return the candidate with the least key of a baseline; ties: the first."""
    best, best_key = 0, np.int64(0)
    for k in range(count):
        j = s.candidates[k]
        if kind == FAIR:
            key = s.held[j]
        elif kind == WFAIR:
            key = (s.held[j] + 1) * w.total[j]
        elif kind == CP:
            key = -w.path[s.pick[j]]
        elif kind == SRPT:
            key = s.rest[j]
        else:
            key = np.int64(k)
        if k == 0 or key < best_key:
            best, best_key = k, key
    return best


@inner
def _baseline(w, s, count, kind):  # type: ignore[no-untyped-def]
    """Record the decision of a baseline."""
    j = s.candidates[_least(w, s, count, kind)]
    v = s.pick[j]
    if kind == FIFO:
        v = w.first[j]
        while s.left[v] == 0 or s.blocked[v] > 0:
            v += 1
    s.c[STAGE] = v
    s.c[AMOUNT] = 1 if kind in (FAIR, WFAIR) else s.at.size


@inner
def _play_on(w, s, kind):  # type: ignore[no-untyped-def]
    """Follow a baseline until all jobs that have arrived have ended."""
    going = True
    while going:
        count = list_candidates(s)
        while s.c[FREE] > 0 and count > 0:
            _baseline(w, s, count, kind)
            act(w, s, s.c[STAGE], s.c[AMOUNT])
            count = list_candidates(s)
        going = advance(w, s)


@inner
def _cost(w, s, copy, v, n):  # type: ignore[no-untyped-def]
    """Return the least sum of end times of arrived jobs after an action, over two continuations."""
    best = np.int64(0)
    for kind in (SRPT, WFAIR):
        copy_to(w, s, copy)
        act(w, copy, v, n)
        _play_on(w, copy, kind)
        total = np.int64(0)
        for k in range(s.c[ACTIVE]):
            total += copy.end[s.active[k]]
        if kind == SRPT or total < best:
            best = total
    return best


@inner
def _share(s):  # type: ignore[no-untyped-def]
    return (s.at.size + s.c[ACTIVE] - 1) // s.c[ACTIVE]


@inner
def _list_actions(s, count):  # type: ignore[no-untyped-def]
    """List the actions of the search: each candidate, by remaining work, with one or two amounts."""
    share = _share(s)
    n = 0
    for k in range(count):
        j = s.candidates[s.by_rest[k]]
        v = s.pick[j]
        most = min(s.left[v], s.c[FREE])
        fair = max(1, min(share - s.held[j], most))
        s.action_stage[n], s.action_amount[n] = v, most
        n += 1
        if fair != most:
            s.action_stage[n], s.action_amount[n] = v, fair
            n += 1
    s.c[ACTIONS] = n


@inner
def _search(w, s, copy):  # type: ignore[no-untyped-def]
    """Record the action with the least cost; ties: the first."""
    best = 0
    if s.c[ACTIONS] > 1:
        for k in range(s.c[ACTIONS]):
            s.action_cost[k] = _cost(w, s, copy, s.action_stage[k], s.action_amount[k])
            if s.action_cost[k] < s.action_cost[best]:
                best = k
    s.c[STAGE], s.c[AMOUNT] = s.action_stage[best], s.action_amount[best]


@inner
def _describe(w, s, count, k, amount, row):  # type: ignore[no-untyped-def]
    """Write the features of a candidate."""
    j = s.candidates[k]
    v = s.pick[j]
    row[0] = s.left[v] * w.task_ms[v]
    row[1] = s.left[v]
    row[2] = s.rest[j]
    row[3] = s.rank[k]
    row[4] = s.held[j]
    row[5] = _share(s)
    row[6] = w.path[v]
    row[7] = w.kids_at[v + 1] - w.kids_at[v]
    row[8] = s.near[j]
    row[9] = s.c[FREE]
    row[10] = count
    row[11] = amount


@inner
def first_rule(rules, row):  # type: ignore[no-untyped-def]
    """Return the first rule that holds; some rule always does."""
    for rule in range(rules.tier.size):
        holds = True
        for k in range(rules.at[rule], rules.at[rule + 1]):
            if (row[rules.feature[k]] > rules.limit[k]) != (rules.above[k] == 1):
                holds = False
                break
        if holds:
            return rule
    return rules.tier.size - 1


@inner
def _better(rules, one, other):  # type: ignore[no-untyped-def]
    """Return whether a rule ranks its candidate above another rule's candidate."""
    if rules.tier[one] != rules.tier[other]:
        return rules.tier[one] > rules.tier[other]
    if rules.tier[one] != JUDGED:
        return False
    mine, theirs = rules.chosen[one] + rules.other[one], rules.chosen[other] + rules.other[other]
    return rules.chosen[one] * theirs > rules.chosen[other] * mine


@inner
def _by_rules(w, s, rules, count, kind, row):  # type: ignore[no-untyped-def]
    """Record the rules' decision; ties: the least remaining work, then the first."""
    share = _share(s)
    below = 0
    for k in range(count):
        below += s.held[s.candidates[k]] < share
    best, best_rule = NONE, 0
    for place in range(count):
        k = s.by_rest[place]
        if kind == TREE_FAIR and below > 0 and s.held[s.candidates[k]] >= share:
            continue
        _describe(w, s, count, k, 0, row)
        rule = first_rule(rules, row)
        if best == NONE or _better(rules, rule, best_rule):
            best, best_rule = k, rule
    j = s.candidates[best]
    s.c[STAGE], s.c[AMOUNT] = s.pick[j], s.at.size
    if kind == TREE_FAIR and s.held[j] < share:
        s.c[AMOUNT] = share - s.held[j]


@inner
def _by_rules_of_actions(w, s, rules, count, row):  # type: ignore[no-untyped-def]
    """Record which of the search's actions the rules choose; ties: the first."""
    best, best_rule = NONE, 0
    place = -1
    for a in range(s.c[ACTIONS]):
        place += a == 0 or s.action_stage[a] != s.action_stage[a - 1]
        _describe(w, s, count, s.by_rest[place], s.action_amount[a], row)
        rule = first_rule(rules, row)
        if best == NONE or _better(rules, rule, best_rule):
            best, best_rule = a, rule
    s.c[STAGE], s.c[AMOUNT] = s.action_stage[best], s.action_amount[best]


@inner
def _choose(w, s, copy, rules, count, kind, row):  # type: ignore[no-untyped-def]
    """Record the decision of a policy; candidates and actions are listed."""
    if kind == ROLLOUT:
        _search(w, s, copy)
    elif kind == TREE_AMOUNT:
        _by_rules_of_actions(w, s, rules, count, row)
    elif kind >= TREE_FAIR:
        _by_rules(w, s, rules, count, kind, row)
    else:
        _baseline(w, s, count, kind)


@inner
def _note(w, s, copy, rules, count, book, row):  # type: ignore[no-untyped-def]
    """Record each watcher's decision, and the rows of the decision with that of the first."""
    d = book.c[SEEN]
    book.seen[d, 0], book.seen[d, 1] = count, s.c[ACTIONS]
    for k in range(book.watch.size):
        _choose(w, s, copy, rules, count, book.watch[k], row)
        if k == 0 and book.watch[k] == ROLLOUT:
            least, most = s.action_cost[0], s.action_cost[0]
            for a in range(s.c[ACTIONS]):
                least, most = min(least, s.action_cost[a]), max(most, s.action_cost[a])
            book.seen[d, book.seen.shape[1] - 1] = most - least
        v, n = s.c[STAGE], min(s.c[AMOUNT], s.left[s.c[STAGE]], s.c[FREE])
        book.seen[d, 2 + 3 * k], book.seen[d, 3 + 3 * k] = v, n
        if book.c[COSTS] == 1:
            book.seen[d, 4 + 3 * k] = _cost(w, s, copy, v, n)
    v, n = book.seen[d, 2], book.seen[d, 3]
    r = book.c[ROWS]
    if book.c[BY_ACTION] == 1:
        place = -1
        for a in range(s.c[ACTIONS]):
            place += a == 0 or s.action_stage[a] != s.action_stage[a - 1]
            _describe(w, s, count, s.by_rest[place], s.action_amount[a], book.row[r])
            book.row[r, FEATURES + 1] = s.action_stage[a] == v and s.action_amount[a] == n
            book.row[r, FEATURES + 2] = d
            r += 1
    else:
        for k in range(count):
            _describe(w, s, count, k, 0, book.row[r])
            book.row[r, FEATURES + 1] = s.candidates[k] == w.job[v]
            book.row[r, FEATURES + 2] = d
            r += 1
    book.c[ROWS] = r
    book.c[SEEN] += 1


@compiled
def play(w, s, copy, rules, kind, book):  # type: ignore[no-untyped-def]
    """Play until all jobs have ended, or the book is full, or the maximum number of decisions is made.

    Args:
        w: the jobs.
        s: the state; it is advanced.
        copy: another state, for the search.
        rules: of policies with rules.
        kind: the policy that plays.
        book: the record; without watchers it stays empty.

    Returns:
        whether all jobs have ended.
    """
    row = np.zeros(FEATURES + 1, np.int64)
    listing = kind >= ROLLOUT or book.watch.size > 0
    while True:
        count = list_candidates(s)
        while s.c[FREE] > 0 and count > 0:
            full = book.watch.size > 0 and (
                book.c[SEEN] == book.seen.shape[0] or book.c[ROWS] + 2 * count > book.row.shape[0]
            )
            if full or book.c[BUDGET] == 0:
                return False
            if listing:
                sort_by_rest(s, count)
                _list_actions(s, count)
                if book.watch.size > 0 and (s.c[ACTIONS] if book.c[BY_ACTION] == 1 else count) > 1:
                    _note(w, s, copy, rules, count, book, row)
            _choose(w, s, copy, rules, count, kind, row)
            act(w, s, s.c[STAGE], s.c[AMOUNT])
            s.c[DECISIONS] += 1
            book.c[BUDGET] -= 1
            count = list_candidates(s)
        if not advance(w, s):
            return True
