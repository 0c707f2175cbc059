"""Priorities and fair-share beside those of a real slurmctld 22.05.8 (labs/slurm/priority.py)."""

from __future__ import annotations

import functools
import re

import numpy as np
import pytest

from gpuctl.replay.policies.slurm.usage import billable, second_factor
from gpuctl.slurm.units import tres_amounts
from tests import slurm_priority
from tests.slurm_priority import FIXTURES, VARIANTS, Recording, check_priorities, check_shares, check_usage


@functools.cache
def recording(variant: str) -> Recording:
    return slurm_priority.read(FIXTURES / variant)


@pytest.mark.parametrize("variant", VARIANTS)
def test_usage_is_what_sshare_prints(variant: str) -> None:
    assert check_usage(recording(variant)) > 200


@pytest.mark.parametrize("variant", VARIANTS)
def test_shares_and_fair_share_are_what_sshare_prints(variant: str) -> None:
    assert check_shares(recording(variant)) >= 9


@pytest.mark.parametrize("variant", VARIANTS)
def test_factors_and_priorities_are_what_sprio_prints(variant: str) -> None:
    assert check_priorities(recording(variant)) >= 17


@pytest.mark.parametrize("variant", VARIANTS)
def test_the_decay_is_the_one_in_the_log(variant: str) -> None:
    of = recording(variant)
    assert of.site.multifactor is not None
    found = [match for line in of.log if (match := slurm_priority._TICK.search(line))]
    assert len(found) >= 4
    factor = second_factor(of.site.multifactor.half_life_s)
    for match in found:
        assert (match[2], match[3]) == (f"{factor:.15f}", f"{factor ** float(match[1]):.15f}")


@pytest.mark.parametrize("variant", VARIANTS)
def test_jobs_are_billed_as_in_the_log(variant: str) -> None:
    of = recording(variant)
    assert of.site.multifactor is not None
    jobs, seen = of.snapshots[-1].jobs, set()
    for line in of.log:
        found = re.search(r"JobId=(\d+) (?:SUM\(TRES\)|MAX\(node TRES\) \+ SUM\(Global TRES\)) = ([\d.]+)", line)
        if not found or found[1] not in jobs or "," in jobs[found[1]]["Partition"]:
            continue
        job = jobs[found[1]]
        weights = of.site.partitions[job["Partition"]].billing
        cost = billable(tres_amounts(job["TRES"]), weights, max_tres="MAX_TRES" in of.site.multifactor.flags)
        assert found[2] == f"{cost:.6f}", (line, job)
        seen.add(found[1])
    assert len(seen) >= 15


def test_accounts_that_tie_are_visited_one_after_the_other() -> None:
    of = recording("fair_tree")
    begins = [n for n, line in enumerate(of.log) if "starting at root" in line]
    tree = [
        line.split("_ft_debug:")[1].split(":")[0].strip() for line in of.log[begins[-1] + 1 :] if "_ft_debug" in line
    ]
    one, other = tree.index("none1 (none1)"), tree.index("=none2 (none2)")
    between = {name.lstrip("=") for name in tree[one + 1 : other]}
    assert between == {"irc (none1)", "list (none1)"}
    assert tree[other + 1].startswith("=")  # tied with the user before it, in the other account


def test_with_incr_only_no_priority_falls() -> None:
    of = recording("upward")
    known = {job: int(row["Priority"]) for job, row in of.snapshots[0].jobs.items()}
    kept = 0
    for one in of.snapshots:
        jobs = [one.jobs[row["i"]] for row in one.sprio]
        if one.number in of.ours:
            before = np.array([known.get(job["JobId"], int(job["Priority"])) for job in jobs])
            _, sums, _ = slurm_priority.ours_of(of, one)
            _, found, _ = slurm_priority.ours_of(of, one, before)
            for job, ours, now in zip(jobs, found, sums, strict=True):
                if "," not in job["Partition"]:  # several partitions: a priority for each, scontrol shows one of them
                    assert int(job["Priority"]) == ours, (one.number, job)
                    kept += ours > now
        known |= {job["JobId"]: int(job["Priority"]) for job in jobs}
    assert kept > 20
