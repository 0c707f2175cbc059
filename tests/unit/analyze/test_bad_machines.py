"""The finder of bad machines: its chances against sums done by hand, and what it finds on made-up clusters."""

from __future__ import annotations

from fractions import Fraction
from functools import reduce
from itertools import product
from math import comb
from typing import TYPE_CHECKING, Any

import numpy as np
import polars as pl
import pytest

from gpuctl.analyze import bad_machines
from gpuctl.store.database import Store
from tests.result_tables import table_of
from tests.unit.analyze.failure_store import Site
from tests.unit.analyze.test_failures import run

if TYPE_CHECKING:
    from collections.abc import Mapping
    from pathlib import Path

DAY = 86_400


def attempts(*rows: dict[str, Any]) -> pl.DataFrame:
    """Attempts, each of a job of its own on machine a, of one user, on a day of its own unless said otherwise."""
    plain = {
        "attempt": 0,
        "who": "u",
        "size_bucket": "1",
        "machines": ["a"],
        "failed": False,
        "early": False,
        "reason": "",
    }
    made = [{"number": k, "job": f"j{k:03}", "start_c": float(k), **plain, **row} for k, row in enumerate(rows)]
    return pl.DataFrame(made, schema_overrides={"start_c": pl.Float64})


def stratum(machine: str, *, of: int, failed: int, who: str) -> list[dict[str, Any]]:
    """Attempts of one user on one machine within a week: each on a day of its own, so that all count."""
    return [
        {"who": who, "machines": [machine, f"{who}{machine}{k}"], "start_c": 60.0 * k, "failed": k < failed}
        for k in range(of)
    ]


def names(rows: pl.DataFrame) -> list[str]:
    return sorted(rows["machines"].explode(empty_as_null=False).unique())


def test_one_stratum_is_fishers_exact_test() -> None:
    # 10 attempts, 3 failed, 4 met machine a, and all 3 failures are among these: C(4, 3) C(6, 0) / C(10, 3)
    rows = bad_machines.independent(
        attempts(*stratum("a", of=4, failed=3, who="u"), *stratum("b", of=6, failed=0, who="u"))
    )
    found = bad_machines.find(rows, names(rows)).filter(pl.col("machine").is_in(["a", "b"]))
    assert found["p"].to_list() == pytest.approx([comb(4, 3) / comb(10, 3), 1])
    assert found["expected"].to_list() == pytest.approx([1.2, 1.8])
    assert (found["attempts"].to_list(), found["failures"].to_list()) == ([4, 6], [3, 0])


def test_strata_are_convolved() -> None:
    # two users, each with 4 attempts of which 1 failed, 1 on machine a: both failures there: 1/4 x 1/4
    own = [
        row
        for who in ("u", "v")
        for row in (*stratum("a", of=1, failed=1, who=who), *stratum("b", of=3, failed=0, who=who))
    ]
    found = bad_machines.find(rows := bad_machines.independent(attempts(*own)), names(rows))
    assert found.filter(pl.col("machine") == "a")["p"].to_list() == pytest.approx([1 / 16])


def test_the_convolution_is_the_sum_over_all_outcomes() -> None:
    tables = [(7, 3, 4), (7, 3, 4), (5, 2, 1), (9, 9, 2), (6, 1, 6), (12, 5, 7)]
    columns = np.array(tables).T
    for seen in range(20):
        chance = Fraction(0)
        for outcome in product(*(range(min(k, n) + 1) for _, k, n in tables)):
            if sum(outcome) >= seen:
                part = Fraction(1)
                for x, (units, k, n) in zip(outcome, tables, strict=True):
                    part *= Fraction(comb(k, x) * comb(units - k, n - x) if n - x >= 0 else 0, comb(units, n))
                chance += part
        made = bad_machines.Tables(np.zeros(6, np.int64), *columns, seen=np.zeros(6, np.int64))
        if seen <= 2 + 3 + 3 + 1 + 1 + 5:
            assert bad_machines.tails(made, np.array([seen]), 1)[0] == pytest.approx(float(chance))


def test_sums_side_by_side_are_those_made_one_by_one() -> None:
    rng = np.random.default_rng(1)
    draws = [part / part.sum() for part in (rng.random(size) for size in rng.choice([1, 2, 3, 8, 9, 40], 30))]
    owner = np.sort(rng.choice([0, 1, 2, 5], 200, p=[0.7, 0.2, 0.09, 0.01]))
    which = rng.integers(0, len(draws), owner.size)
    sums = dict(bad_machines._summed(owner, which, draws))
    assert sums.keys() == set(owner.tolist())
    for code, found in sums.items():
        assert found == pytest.approx(reduce(np.convolve, [draws[k] for k in which[owner == code]]), rel=1e-12)


def test_kinds_of_tables_are_numbered_in_their_order() -> None:
    rows = np.random.default_rng(2).integers(0, 4, (3, 500))
    kinds, kind = bad_machines._kinds(bad_machines.Tables(rows[0], rows[0], rows[1], rows[2], rows[0]))
    own, numbers = np.unique(rows.T, axis=0, return_inverse=True)
    assert (kinds.tolist(), kind.tolist()) == (own.tolist(), numbers.reshape(-1).tolist())


@pytest.mark.parametrize(("units", "failures", "met"), [(1, 1, 1), (12, 5, 7), (900, 300, 450), (5000, 4990, 20)])
def test_densities_are_hypergeometric(units: int, failures: int, met: int) -> None:
    least = max(0, met + failures - units)
    [found] = bad_machines._densities(np.array([[units, failures, met]]), np.array([least]))
    counts = range(least, min(failures, met) + 1)
    exact = [Fraction(comb(failures, k) * comb(units - failures, met - k), comb(units, met)) for k in counts]
    assert found.tolist() == pytest.approx([float(chance) for chance in exact], rel=1e-12)


def test_p_values_are_adjusted_after_benjamini_and_hochberg() -> None:
    # p x 4 / rank, and none larger than that of a larger p
    assert bad_machines.adjust(np.array([0.5, 0.6, 0.1, 0.001])).tolist() == pytest.approx([0.6, 0.6, 0.2, 0.004])
    assert bad_machines.adjust(np.array([0.02, 0.01, 0.9])).tolist() == pytest.approx([0.03, 0.03, 0.9])
    assert bad_machines.adjust(np.zeros(0)).size == 0


def test_a_user_whose_program_always_crashes_blames_no_machine() -> None:
    rows = bad_machines.independent(
        attempts(*stratum("a", of=30, failed=30, who="u"), *stratum("b", of=30, failed=0, who="v"))
    )
    found = bad_machines.find(rows, names(rows)).filter(pl.col("machine").is_in(["a", "b"]))
    assert found["p"].to_list() == [1, 1]
    assert found["expected"].to_list() == [30, 0]


def test_a_job_that_crashes_on_every_retry_counts_once() -> None:
    tries = [
        {"job": "j", "attempt": k, "machines": [machine], "failed": True, "reason": "traceback"}
        for k, machine in enumerate("abc")
    ]
    assert bad_machines.independent(attempts(*tries))["machines"].to_list() == [["a"]]
    tries[1]["reason"] = "disk_full"
    kept = bad_machines.independent(attempts(*tries))
    assert (kept["machines"].to_list(), kept["retry"].to_list()) == ([["a"], ["b"]], [False, True])


@pytest.mark.parametrize("first_failed", [True, False])
def test_of_a_sweep_on_one_machine_the_first_attempt_counts_whatever_came_of_it(first_failed: bool) -> None:
    sweep = [{"start_c": float(k), "failed": (k > 0) != first_failed, "reason": "x"} for k in range(8)]
    kept = bad_machines.independent(attempts(*sweep, {"start_c": 2.0 * DAY}, {"machines": ["a", "b"]}))
    assert kept.height == 3
    assert kept["failed"][0] is first_failed


def cluster(seed: int, bad: Mapping[int, float], size: int = 60, users: int = 20, days: int = 30) -> pl.DataFrame:
    """A month of a made-up cluster: users with habits of their own, sweeps packed onto machines, sweeps with a mistake
    in them, gangs, and up to two retries, half of them where the first try was.

    Args:
        seed: of the random numbers.
        bad: chance of a failure that each of these machines adds to an attempt on it.
        size: machines of 8 GPUs.
        users: users.
        days: days.
    """
    rng = np.random.default_rng(seed)
    names = [f"m{k:03}" for k in range(size)]
    habits = rng.beta(1, 6, users)
    rows = []
    for day, user in product(range(days), range(users)):
        if rng.random() < 0.3:
            continue
        for _ in range(rng.integers(1, 4)):
            mistake, count = rng.random() < 0.15, int(rng.geometric(0.25))
            start = day * DAY + rng.random() * 80_000
            gpus, home = int(rng.choice([1, 1, 1, 2, 4, 8, 16, 32])), int(rng.integers(size))
            bucket = "1" if gpus == 1 else "2-4" if gpus <= 4 else "5-8" if gpus == 8 else ">8"
            for k in range(count):
                place = [(home + k * gpus // 8 + i) % size for i in range(max(1, gpus // 8))]
                for attempt in range(3):
                    own = bool(mistake or rng.random() < habits[user])
                    hit = any(rng.random() < bad.get(p, 0) for p in place)
                    rows.append(
                        {
                            "job": f"j{len(rows) - attempt:06}", "attempt": attempt, "who": f"u{user}",
                            "start_c": start + k + attempt * 600, "size_bucket": bucket,
                            "machines": sorted(names[p] for p in place), "failed": own or hit,
                            "early": hit or (own and bool(rng.random() < 0.5)), "reason": "own" if own else "gpu",
                        }
                    )  # fmt: skip
                    if not (own or hit):
                        break
                    if rng.random() < 0.5:
                        place = [int(p) for p in rng.choice(size, len(place), replace=False)]
    return pl.DataFrame(rows).sort("job", "attempt").with_row_index("number")


def blamed(seed: int, bad: Mapping[int, float]) -> set[str]:
    rows = bad_machines.independent(cluster(seed, bad))
    return set(bad_machines.find(rows, names(rows)).filter(pl.col("bad") == "yes")["machine"])


def test_clusters_without_a_bad_machine_are_rarely_accused() -> None:
    # with no bad machine every accusation is false: at most 5 % of clusters may have one; of 20, 3 or fewer (p 0.984)
    assert sum(bool(blamed(seed, {})) for seed in range(20)) <= 3


def test_planted_machines_are_found_and_few_others() -> None:
    bad = {3: 0.5, 17: 0.5, 40: 0.5}
    planted = {f"m{k:03}" for k in bad}
    found = [blamed(1000 + seed, bad) for seed in range(10)]
    assert sum(len(guilty & planted) for guilty in found) >= 27
    assert sum(len(guilty - planted) for guilty in found) <= 3


def test_the_partner_of_a_bad_machine_is_cleared() -> None:
    rows = []
    for week, pair in product(range(12), range(10)):
        # gangs of two machines each; the one on p0 and q0 always fails, and p0 fails alone, too, q0 never
        rows.append(
            {
                "who": f"u{week}",
                "start_c": week * 7.0 * DAY + pair,
                "machines": [f"p{pair}", f"q{pair}"],
                "failed": pair == 0,
            }
        )
        for one in "pq":
            alone = {"who": f"v{week}", "start_c": week * 7.0 * DAY + pair, "machines": [f"{one}{pair}"]}
            rows.append({**alone, "failed": one == "p" and pair == 0})
    found = bad_machines.find(made := bad_machines.independent(attempts(*rows)), names(made))
    verdicts = dict(found.select("machine", "bad").iter_rows())
    assert (verdicts.pop("p0"), verdicts.pop("q0")) == ("yes", "beside p0")
    assert set(verdicts.values()) == {"no"}
    assert found.filter(pl.col("machine") == "q0")["adjusted_p"][0] < 0.05, "it is cleared, not overlooked"


def test_no_attempt_no_machine() -> None:
    rows = bad_machines.independent(attempts({}).clear())
    assert bad_machines.find(rows, []).height == 0


def test_in_a_store_what_only_users_bring_about_blames_no_machine(tmp_path: Path) -> None:
    with Store(tmp_path / "t.duckdb", write=True) as store:
        site = Site(store)
        for number, machine in [(k, f"m{k % 4}") for k in range(40)]:
            site.job(f"ok{number}", ("completed", 60 * number, 60 * number + 50), on=(machine,), user=f"w{number // 4}")
            state = ("failed", "timeout", "failed", "completed")[number % 4]
            if number % 4 == 2:
                site.log(f"j{number}", 0, ("t_denied", 1, "Permission denied"))
            start = 30 * number + 1500
            site.job(f"j{number}", (state, start, start + 5), on=(machine,), user=f"u{number // 4}", gpus=2)
    table = table_of(run(tmp_path, tmp_path / "t.duckdb"), "failure_nodes")
    rows = {row["machine"]: row for row in table.frame.to_dicts()}
    # each user has an attempt of 2 GPUs on each machine; on m0 it fails, on m1 its time is over, on m2 it may not read
    assert (rows["m0"]["failures"], rows["m0"]["expected"]) == (10, pytest.approx(10 / 2))
    assert rows["m0"]["p"] == pytest.approx(2.0**-10)
    assert rows["m0"]["early_p"] == pytest.approx(2.0**-10)
    assert (rows["m0"]["bad"], rows["m0"]["gpu_hours"]) == ("yes", pytest.approx(10 * 2 * 5 / 60))
    for name in ("m1", "m2"):
        assert (rows[name]["failures"], rows[name]["all_trials"], rows[name]["bad"]) == (0, 10, "no")
        assert (rows[name]["gpu_hours"], rows[name]["top_reason"]) == (0, None)
    assert "60 attempts on 4 nodes" in table.population


def test_detectable_rate_of_a_node_by_hand() -> None:
    # one stratum: 100 attempts, 10 failed, 10 met the machine; of 2 machines, the tail must be at most 0.05 / 4
    table = bad_machines.Tables(*(np.array([n]) for n in (0, 100, 10, 10, 0)))
    chances = [Fraction(comb(10, k) * comb(90, 10 - k), comb(100, 10)) for k in range(11)]
    needed = next(k for k in range(11) if sum(chances[k:]) <= 0.05 / 4)

    def power(odds: float) -> float:
        weights = [float(chance) * odds**k for k, chance in enumerate(chances)]
        return sum(weights[needed:]) / sum(weights)

    [times, none] = bad_machines.detectable(table, 2, 0.1)
    odds = 0.9 * times / (1 - 0.1 * times)
    assert power(odds) >= 0.8 > power(odds / 1.02)
    assert np.isnan(none)
    # 3 attempts on it, however they end, are not rare enough
    assert np.isnan(
        bad_machines.detectable(bad_machines.Tables(*(np.array([n]) for n in (0, 30, 15, 3, 0))), 2, 0.5)[0]
    )


def test_a_detectably_bad_node_is_found_at_the_stated_rate() -> None:
    rng = np.random.default_rng(11)
    units, machines, rate = 3000, 20, 0.08

    def draw(times: float) -> pl.DataFrame:
        where = rng.integers(0, machines, units)
        fails = rng.random(units) < np.where(where == 3, times, 1.0) * rate
        return pl.DataFrame(
            {
                "number": np.arange(units), "machines": [[f"m{k:02}"] for k in where], "failed": fails,
                "early": np.zeros(units, bool), "retry": np.zeros(units, bool), "stratum": rng.integers(0, 30, units),
            }
        )  # fmt: skip

    names = [f"m{k:02}" for k in range(machines)]
    said = float(bad_machines.find(draw(1.0), names)["detectable"].median())  # type: ignore[arg-type]
    assert 1.5 < said < 4
    found = sum(bad_machines.find(draw(said), names)["bad"][3] == "yes" for _ in range(100))
    assert 70 <= found <= 90
