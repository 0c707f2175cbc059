"""Job traits for deep-learning schedulers, told and assumed."""

from __future__ import annotations

import dataclasses
import zlib
from pathlib import Path
from typing import TYPE_CHECKING, Any

import numpy as np
import polars as pl
import pytest

from gpuctl.core.errors import InputError, UsageError
from gpuctl.replay.inputs.clusters import in_racks, parse_cluster
from gpuctl.replay.inputs.job_csv import read_jobs
from gpuctl.replay.models.inference import parse_inference
from gpuctl.replay.models.speed import rates
from gpuctl.replay.models.traits import TRAITS, in_line, traits
from gpuctl.replay.run import Models, Task, replay

if TYPE_CHECKING:
    from collections.abc import Mapping, Sequence

    from gpuctl.replay.models.records import Workload


def jobs(path: Path, *lines: str) -> Workload:
    path = path / "jobs.csv"
    path.write_text("\n".join(lines))
    return read_jobs(path)


def test_unstated_values_follow_from_the_name(tmp_path: Path) -> None:
    many = [f"x{k},0,10,{1 + k % 8}" for k in range(400)]
    workload = jobs(tmp_path, "job_id,submit_time,duration,num_gpus", *many)
    known = traits(workload)
    for k, name in enumerate(workload.ids):
        of = {
            tag: zlib.crc32(f"{name}:{tag}".encode()) % 100
            for tag in ("alpha", "util", "mem", "grow", "elastic", "fungible")
        }
        q = zlib.crc32(name.encode()) % 100
        model = next(i for i, most in enumerate((10, 20, 30, 40, 100)) if q < most)
        assert (known.eff_rack[k], known.eff_cross[k]) == [
            (0.7, 0.5),
            (0.72, 0.52),
            (0.75, 0.56),
            (0.8, 0.64),
            (0.98, 0.96),
        ][model]
        assert known.alpha[k] == (0.02 if of["alpha"] < 25 else 0.08 if of["alpha"] < 75 else 0.2)
        assert known.util[k] == (0.2, 0.35, 0.5, 0.7, 0.9)[of["util"] // 20]
        assert known.mem[k] == (0.2, 0.35, 0.5, 0.8)[of["mem"] // 25]
        assert known.grow[k] == (of["grow"] < 20)
        elastic = workload.gpus[k] >= 4 and of["elastic"] < 50
        assert (known.w_min[k], known.w_max[k]) == (workload.gpus[k], workload.gpus[k] * (2 if elastic else 1))
        assert known.fungible[k] == (elastic or of["fungible"] < 21)
    assert all(mask.all() for mask in known.derived.values())


def test_stated_values_are_used_and_missing_ones_marked(tmp_path: Path) -> None:
    workload = jobs(
        tmp_path,
        "job_id,submit_time,duration,num_gpus,util,w_max,min_gpus",
        "a,0,1,4,0.33,9,2",
        "b,0,1,4,,,",
        "c,0,1,4,.1,,4",
    )
    known = traits(workload)
    assert known.util[[0, 2]].tolist() == [0.33, 0.1]
    assert known.derived["util"].tolist() == [False, True, False]
    assert known.w_min.tolist() == [2, 4, 4]
    assert not known.derived["w_min"].any()
    assert known.w_max[0] == 9
    [note] = known.notes()
    assert "util (1)" in str(note)
    assert "w_max (2)" in str(note)


def test_results_state_what_is_assumed(tmp_path: Path) -> None:
    workload = jobs(tmp_path, "job_id,submit_time,duration,num_gpus,util", "a,0,10,4,.5", "b,0,10,1,")
    cluster = parse_cluster("1x8", workload)
    from gpuctl.replay.results.tables import result

    both = replay(workload, cluster, [("fifo", {}), ("optimus", {})], own_speeds=True)
    found = {table.name: table for table in result(both, workload, cluster).tables}
    marked = dict(found["replay_traits"].frame.select("job", "derived").rows())
    assert "util" not in marked["a"].split(";")
    assert {"util", "alpha", "mem"} <= set(marked["b"].split(";"))
    assert any("assumed from a hash" in str(note) for note in found["replay_summary"].notes)
    alone = result(replay(workload, cluster, [("fifo", {})]), workload, cluster)
    assert "replay_traits" not in {table.name for table in alone.tables}


def test_all_policies_of_a_comparison_have_one_set_of_speeds(tmp_path: Path) -> None:
    workload = jobs(
        tmp_path,
        "job_id,submit_time,duration,num_gpus,eff_rack,eff_cross",
        "a,0,10,2,.5,.25",
        "b,1,100,3,.5,.25",
        "c,2,100,5,.5,.25",
    )
    cluster = in_racks(parse_cluster("3x4", workload), "3x4", 2)
    alone, beside = (
        replay(workload, cluster, names, own_speeds=True)[0].jobs["end_s"].to_list()
        for names in ([("fifo", {})], [("fifo", {}), ("optimus", {})])
    )
    # c is on the nodes of two racks at best of 4 GPUs: its run time is for one rack
    assert alone == [10, 101, 102]
    assert beside == [10, 101, 202]
    chosen = replay(workload, cluster, [("fifo", {}), ("optimus", {})])[0].jobs["end_s"].to_list()
    assert chosen == alone


POLICIES = ("fifo", "tiresias", "themis", "aryl", "gandiva", "optimus", "max-min", "ftf")
PHILLY = Path(__file__).parents[5] / "shared" / "oracles" / "fifo_strict" / "philly_1k_g128_input.csv"


@pytest.mark.parametrize("path", [Path("sample_data/jobs.csv"), PHILLY], ids=["sample", "philly"])
def test_one_table_has_one_set_of_speeds_and_marks_what_is_derived(root: Path, path: Path) -> None:
    """What each simulation goes by, as its jobs have it, is what one table says of each job and marks as assumed."""
    if not (root / path).exists():
        pytest.skip("the jobs are not here")
    workload = read_jobs(root / path)
    cluster = in_racks(parse_cluster("16x8", workload), "16x8", 4)
    # whoever may borrow them, large nodes of an inference cluster make no job's run time that of another place
    cluster = dataclasses.replace(cluster, inference=parse_inference("4x96", None))
    task = Task(workload, cluster, Models(own_speeds=True), tuple((name, {}) for name in POLICIES))
    known = traits(workload)
    places = np.stack([np.ones(workload.size), known.eff_rack, known.eff_cross], axis=1)
    # a gang's run time is that on its best place: one node up to 8, one rack up to 32
    best = np.where(workload.gpus <= 8, 0, np.where(workload.gpus <= 32, 1, 2))
    places /= places[np.arange(workload.size), best][:, None]
    for number, name in enumerate(POLICIES):
        held = task.simulation(number, interpreted=True).state.jobs
        assert np.stack([held.speed0, held.speed1, held.speed2], axis=1) == pytest.approx(places), name
        assert (held.alpha == known.alpha).all(), name
    from gpuctl.replay.results.tables import result

    two = replay(workload, cluster, [("fifo", {}), ("tiresias", {}), ("optimus", {})], own_speeds=True)
    table = next(t for t in result(two, workload, cluster).tables if t.name == "replay_traits").frame
    assert table["job"].to_list() == list(workload.ids)
    # neither file says any of them
    assert {frozenset(text.split(";")) for text in table["derived"]} == {frozenset(TRAITS)}
    # a job that was on one placement throughout took its work by the speed there, under whichever policy
    for outcome in two:
        once = outcome.jobs.with_row_index("job_number").filter((pl.col("attempts") == 1) & (pl.col("changes") == 0))
        once = once.filter(pl.col("max_gpus") == pl.col("gpus"))
        rows = outcome.attempts.with_row_index("row").join(once, left_on="job", right_on="job_number")
        rack = pl.Series("rack", cluster.rack)
        pieces = outcome.pieces.with_columns(rack.gather(outcome.pieces["node"]))
        racks = pieces.group_by("row").agg(pl.len().alias("there"), pl.col("rack").n_unique())
        rows = rows.join(racks, on="row")
        level = np.where(rows["there"] == 1, 0, np.where(rows["rack"] == 1, 1, 2))
        took = rows["work_s"].to_numpy() / places[rows["job"].to_numpy(), level]
        assert rows["run_s"].to_numpy() == pytest.approx(took, abs=1e-5), outcome.policy
        assert rows.height > 10


ELASTIC = ("themis", "aryl", "gandiva", "optimus")


def costs(path: Path, names: Sequence[str], params: Mapping[str, dict[str, str]], **models: Any) -> dict[str, str]:
    """What each policy is charged, by the table of results; its speeds are those of its settings."""
    from gpuctl.replay.results.tables import result

    workload = jobs(path, "job_id,submit_time,duration,num_gpus", "a,0,10,2")
    cluster = parse_cluster("1x8", workload)
    found = replay(workload, cluster, [(n, params.get(n, {})) for n in names], own_speeds=True, **models)
    assert len({str(o.settings["speed"]) for o in found}) == 1 or set(names) <= set(ELASTIC)
    table = next(t for t in result(found, workload, cluster).tables if t.name == "replay_preemptions").frame
    assert not any("alone" in str(note) for o in found for note in o.notes) or "fifo" in names or models
    return dict(table.select("policy", "cost").rows())


def test_a_comparison_has_one_cost_and_alone_each_charges_its_own(tmp_path: Path) -> None:
    shared, five = "62 s to resume after a preemption", "5 s to resume after a preemption"
    own = costs(tmp_path, ELASTIC, {})
    assert own == {name: costs(tmp_path, [name], {})[name] for name in ELASTIC}
    assert [own[n] for n in ELASTIC] == [
        shared, "63 s to resume after a preemption; 15 s for a resize or migration", five, shared
    ]  # fmt: skip
    every = ("fifo", "tiresias", *ELASTIC)
    assert set(costs(tmp_path, every, {}).values()) == {shared}
    # an experiment replays one policy at a time
    assert costs(tmp_path, ["gandiva"], {}, compared=True) == {"gandiva": shared}
    chosen = costs(tmp_path, every, {"gandiva": {"migrate": "5"}})
    assert chosen == dict.fromkeys(every, shared) | {"gandiva": five}
    assert set(costs(tmp_path, every, {}, overhead="none").values()) == {"none: preemption is free"}
    assert set(costs(tmp_path, ["fifo", "tiresias"], {}).values()) == {"none: preemption is free"}


def test_a_note_states_what_a_policy_charges_alone(tmp_path: Path) -> None:
    workload = jobs(tmp_path, "job_id,submit_time,duration,num_gpus", "a,0,10,2")
    cluster = parse_cluster("1x8", workload)
    found = replay(workload, cluster, [("fifo", {}), ("aryl", {}), ("themis", {})], own_speeds=True)
    told = {o.policy: [str(note) for note in o.notes if "alone" in str(note)] for o in found}
    assert (told["fifo"], told["themis"]) == ([], [])
    assert told["aryl"][0].endswith("alone: 63 s to resume after a preemption; 15 s for a resize or migration")
    assert "alone: recorded run times on the gang" in told["aryl"][1]


def test_speed_is_for_the_best_place_of_the_gang(tmp_path: Path) -> None:
    workload = jobs(
        tmp_path, "job_id,submit_time,duration,num_gpus,eff_rack,eff_cross",
        "a,0,10,4,.8,.4", "b,0,10,8,.8,.4", "c,0,10,9,.8,.4",
    )  # fmt: skip
    cluster = in_racks(parse_cluster("1x4+2x4", workload), "1x4+2x4", 2)
    speed = rates("traits", workload, cluster).speed
    assert speed == pytest.approx(np.array([[1, 0.8, 0.4], [1.25, 1, 0.5], [2.5, 2, 1]]))


def test_racks_go_through_all_groups_of_nodes(tmp_path: Path) -> None:
    workload = jobs(tmp_path, "job_id,submit_time,duration,num_gpus", "a,0,10,4")
    cluster = in_racks(parse_cluster("6x4+2x8", workload), "6x4+2x8", 4)
    assert cluster.rack.tolist() == [0, 0, 0, 0, 1, 1, 1, 1]
    assert cluster.racks == ("rack1", "rack2")
    with pytest.raises(UsageError, match="defines its own racks"):
        in_racks(parse_cluster("pool:8", workload), "pool:8", 4)


def test_ties_follow_the_line_of_the_input(tmp_path: Path) -> None:
    workload = jobs(tmp_path, "job_id,submit_time,duration,num_gpus", "late,5,1,1", "b,0,1,1", "a,0,1,1")
    assert workload.ids == ("b", "a", "late")
    assert in_line(workload).tolist() == [1, 2, 0]


def test_rho_three_ways(tmp_path: Path) -> None:
    workload = jobs(tmp_path, "job_id,submit_time,duration,num_gpus", "a,0,10,2", "b,0,10,2", "c,10,10,1")
    from gpuctl.replay.results.metrics import rhos

    cluster = parse_cluster("1x2", workload)
    told = rhos(replay(workload, cluster, [("fifo", {})])[0], workload, cluster)
    # a 0..10, b 10..20, c 20..30; two are there up to 20, then one
    assert told["rho"].tolist() == [1, 2, 2]
    assert told["rho_count"] == pytest.approx([1 / 2, 2 / 2, 2 * (1 / 1) / 1.5])
    assert told["rho_demand"] == pytest.approx([1 / 2, 2 / 1.75, 2 / 1.25])


def test_jobs_that_were_all_rejected_have_no_rho(tmp_path: Path) -> None:
    from gpuctl.replay.results.metrics import rhos

    workload = jobs(tmp_path, "job_id,submit_time,duration,num_gpus", "a,0,10,2", "b,0,10,2")
    cluster = parse_cluster("1x2", workload)
    (outcome,) = replay(workload, cluster, [("fifo", {})])
    rejected = dataclasses.replace(
        outcome, jobs=outcome.jobs.with_columns(state=pl.lit("rejected", outcome.jobs["state"].dtype))
    )
    assert all(np.isnan(values).all() for values in rhos(rejected, workload, cluster).values())


@pytest.mark.parametrize(
    ("column", "value", "said"),
    [
        ("eff_rack", "1.5", "eff_rack is not above 0 and at most 1"),
        ("stop_fraction", "0", "stop_fraction is not above 0 and at most 1"),
        ("mem", "0", "mem is not above 0 and at most 1"),
        ("alpha", "-1", "alpha is below 0"),
        ("grow", "2", "grow is not 0 or 1"),
        ("w_min", "3", "w_min is above num_gpus"),
        ("w_max", "1", "w_max is below num_gpus"),
        ("w_max", "2.5", "w_max is not a whole number of GPUs"),
        ("util", "much", "util is not a number"),
    ],
)
def test_wrong_values_are_reported(column: str, value: str, said: str, tmp_path: Path) -> None:
    with pytest.raises(InputError, match=said):
        jobs(tmp_path, f"job_id,submit_time,duration,num_gpus,{column}", f"a,0,10,2,{value}")
