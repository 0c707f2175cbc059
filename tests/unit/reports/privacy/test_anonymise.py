"""Reports without names: no name is left in any byte, what was the same stays the same, and conditions still hold."""

from __future__ import annotations

import json
import re
from dataclasses import replace
from typing import TYPE_CHECKING, Any

import polars as pl
import pytest
from hypothesis import given
from hypothesis import strategies as st

from gpuctl.analyze import registry
from gpuctl.core.errors import InputError
from gpuctl.core.notes import KINDS, NamedValue, Note, listed, named, note, together, untrusted
from gpuctl.core.results import Analysis, SourceInfo
from gpuctl.replay.results import columns as replay_columns
from gpuctl.reports.ci import write_junit, write_markdown
from gpuctl.reports.conditions import parse, rekeyed, relabelled
from gpuctl.reports.export.document import document, parse_document
from gpuctl.reports.html import render_report
from gpuctl.reports.privacy.anonymise import Pseudonyms, anonymised, command, hide, pseudonymous, random_key, read_key
from gpuctl.reports.privacy.names import LINES, NAMES, NUMBERED, ROLES, UNMASKED, WORDS
from gpuctl.reports.report import labelled, summarize
from tests.result_tables import table_of
from tests.unit.reports.fakes import HOSTILE, make_analysis, table

if TYPE_CHECKING:
    from pathlib import Path

    from gpuctl.core.notes import Kind

KEY = b"0123456789abcdef"
NUMBERS = frozenset(
    {
        "seed", "adjusted_p", "attempt", "bounded_slowdown_mean", "bounded_slowdown_p95", "confidence",
        "confidence_mean", "correlation", "difference", "early_p", "example_attempt", "first_loss", "gpu_faults_p",
        "gpus", "has_log", "jain", "last_loss", "line_no", "loss", "lowest_loss", "machines", "of_1_gpu",
        "of_2_to_4_gpus", "of_5_to_8_gpus", "of_9_gpus_and_more", "oracle", "ours", "overtook_harmless", "p", "point",
        "published", "stretches",
        "rank_correlation", "rho_max", "rho_mean", "rho_p95", "row", "nodes", "slowdown", "slowdown_mean",
        "slowdown_p50", "slowdown_p95", "alpha", "eff_cross", "eff_rack", "fungible", "grow", "mem", "rho", "rho_count",
        "rho_demand", "util", "backfilled", "migrated", "packed", "reclaimed", "resized", "rho_p50", "scale_ins",
        "gini_jobs", "gini_work", "helios", "kalos", "load_mean", "pai", "philly", "seren", "size_max", "size_mean",
        "size_p50", "weekday",
        "dispersion", "km_gap", "node_spread", "p_shape", "shape", "shape_alike", "shape_high", "shape_low",
        "ettr", "ettr_high", "ettr_low", "ettr_running", "fit_p", "homogeneity_p", "incident", "model_ettr",
        "partial_node", "q", "second_order", "xid",
    }
)  # fmt: skip
"""Columns without a unit that hold numbers."""


def site() -> Analysis:
    """A result with a name in every place that can have one."""
    jobs = pl.DataFrame(
        {
            "job": ["ZQjob_1", "ZQjob_2", "ZQjob 3; of zoe", *HOSTILE],
            "user": ["ZQalice", "ZQbob", None, *HOSTILE],
            "account": ["ZQphysics", "", None, *HOSTILE],
            "queue": ["ZQqueue", "all", "ZQqueue", *["q"] * len(HOSTILE)],
            "machines": [["ZQnode07", "ZQnode08"], [], None, *[[name] for name in HOSTILE]],
            "state": ["failed"] * 10,
            "source_state": ["CANCELLED by ZQalice", "FAILED", None, *HOSTILE],
            "evidence": ["ZQalice could not open /ZQhome/x"] * 10,
            "of_a_newer_gpuctl": ["ZQsecret"] * 10,
            "nested": [{"a": "ZQinner"}] * 10,
            "gpus": list(range(10)),
        },
        strict=False,
    )
    users = pl.DataFrame({"user": ["ZQalice", "ZQbob", "ZQcarol", "all"], "failed_pct": [1.0, 2.0, 3.0, 2.0]})
    machines = pl.DataFrame(
        {
            "machine": ["ZQnode07", "ZQnode08"], "bad": ["yes", "no"], "attempts": [9, 9], "failures": [9, 1],
            "expected": [1.0, 1.0], "adjusted_p": [0.001, 0.9],
        }
    )  # fmt: skip
    waits = pl.DataFrame(
        {"queue": ["ZQqueue", "ZQother"], "size_bucket": ["all", "all"], "waits": [99, 99], "mean_min": [1.0, 1.0],
         "p95_min": [180.0, 1.0]}
    )  # fmt: skip
    heat = pl.DataFrame({"policy": ["fifo"] * 2, "nodes": ["ZQnode07 to ZQnode08", "ZQnode09"], "row": [0, 1]})
    numbered = pl.DataFrame({"job": [7777771, 7777772], "gpus": [1, 2], "nodes": [1, 2]})
    notes = (
        note(
            "machines that the trace does not have: {few} and 3 more", few=listed("machine", ["ZQnode42", "ZQnode43"])
        ),
        note(
            "job {job} waited for {what}",
            job=NamedValue("job", "7777771"),
            what=NamedValue("text", "ZQbob@ZQhost12.example.org, see /ZQhome/ZQdave/out.log and 10.11.12.13"),
        ),
        note(
            "2 jobs waited; the user of job {j} is {u}", j=NamedValue("job", "ZQjob_1"), u=NamedValue("user", "ZQalice")
        ),
    )
    result = Analysis(
        cluster=named("cluster", "ZQcluster"),
        tables=(
            replace(
                table("failures", "failures", jobs, detail=True),
                population=note(
                    "10 jobs of {c}, of {u}.", c=NamedValue("cluster", "ZQcluster"), u=NamedValue("user", "ZQalice")
                ),
            ),
            replace(table("failures_by_user", "failures", users), notes=notes),
            table("failure_nodes", "failures", machines),
            table("wait_by_queue", "queueing", waits),
            table("replay_heatmap", "replay", heat),
            table("waits", "queueing", numbered),
        ),
        sections=(("failures", "Failures"), ("queueing", "Queueing"), ("replay", "Replay")),
        sources=(SourceInfo("/ZQhome/ZQdave/logs/sacct ZQ.txt", "slurm-sacct", "a" * 64, 9, 9, 9, 0),),
        settings={
            "quotas": note("given in {path}", path=NamedValue("path", "ZQquotas.csv")),
            note("queue {queue}", queue=NamedValue("queue", "ZQqueue2")): note("yes"),
            "cluster": note("{cluster}, 9 GPUs", cluster=NamedValue("cluster", "ZQcluster")),
        },
        command="gpuctl --quiet analyze /ZQhome/ZQdave/logs --keep ZQkept --html ZQ.html",
        version="0.1.0",
        warnings=(
            note(
                "7 of 9 rows were rejected; most often (7): {why}",
                why=NamedValue("text", "no time: 'ZQtime', found ZQ12"),
            ),
            note("--racks names machines that the trace does not have: {name}", name=NamedValue("machine", "ZQnode44")),
            untrusted("ZQbob says this in words of his own"),
        ),
    )
    return replace(result, tables=tuple(result.tables))


def everything(analysis: Analysis, tmp_path: Path) -> str:
    """All that a report of it writes."""
    parts = labelled([analysis])
    summary = summarize(parts, [parse("queueing.p95_wait_h > 1")], None, command(analysis.command))
    write_markdown(summary, tmp_path / "r.md")
    write_junit(summary, tmp_path / "r.xml")
    texts = [render_report(parts, summary), "".join(document(summary, summary.tables, ()))]
    texts += ["".join(document(analysis, analysis.tables, ()))]
    return "\n".join([*texts, (tmp_path / "r.md").read_text(), (tmp_path / "r.xml").read_text()])


def test_no_name_is_left_in_any_byte(tmp_path: Path) -> None:
    before = everything(site(), tmp_path)
    assert "ZQalice" in before
    assert "7777771" in before
    after = everything(anonymised(site(), Pseudonyms(KEY, queues=True)), tmp_path)
    assert "ZQ" not in after
    assert "777777" not in after
    assert "10.11.12.13" not in after
    for name in HOSTILE:
        assert json.dumps(name)[1:-1] not in after
    assert "anonymised" in after


def test_queues_stay_unless_they_are_to_go(tmp_path: Path) -> None:
    after = everything(anonymised(site(), Pseudonyms(KEY)), tmp_path)
    assert "ZQqueue" in after
    assert "ZQ" not in after.replace("ZQqueue", "").replace("ZQother", "")


def test_equal_names_stay_equal_in_all_tables() -> None:
    names = Pseudonyms(KEY)
    jobs, users, machines, waits, heat, numbered = anonymised(site(), names).tables
    assert names.of("user", "ZQalice") == jobs.frame["user"][0]
    assert names.of("user", "ZQalice") in users.frame["user"].to_list()
    both = [names.of("machine", "ZQnode07"), names.of("machine", "ZQnode08")]
    assert jobs.frame["machines"].to_list()[:3] == [both, [], None]
    assert heat.frame["nodes"][0] == " to ".join(both)
    assert machines.frame["machine"].to_list() == sorted(both)
    assert jobs.frame["user"].n_unique() == len(HOSTILE) + 3
    assert jobs.frame["user"][2] is None
    assert jobs.frame["source_state"].to_list()[:3] == ["CANCELLED", "FAILED", None]
    assert jobs.frame["state"].to_list() == ["failed"] * 10
    assert waits.frame["queue"].to_list() == ["ZQqueue", "ZQother"]
    assert numbered.frame["job"].to_list() == [names.of("job", "7777771"), names.of("job", "7777772")]
    assert numbered.frame["nodes"].to_list() == [1, 2]
    assert users.notes[2].endswith(f"the user of job {names.of('job', 'ZQjob_1')} is {names.of('user', 'ZQalice')}")


def test_rows_in_the_order_of_names_are_put_into_that_of_pseudonyms() -> None:
    users = anonymised(site(), Pseudonyms(KEY)).tables[1].frame
    assert users["user"].to_list()[:3] == sorted(users["user"].to_list()[:3])
    assert users.row(3) == ("all", 2.0)
    old = dict(site().tables[1].frame.iter_rows())
    assert dict(users.iter_rows()) == {Pseudonyms(KEY).of("user", name): share for name, share in old.items()}


def test_a_secret_makes_the_same_pseudonyms_every_time_and_another_one_others() -> None:
    assert (
        Pseudonyms(KEY).of("user", "alice") == Pseudonyms(KEY).of("user", "alice") == "user-gyxwc2aafxuhb"
    )  # openssl dgst -hmac says the same
    assert Pseudonyms(KEY).of("job", "alice") != Pseudonyms(KEY).of("user", "alice")[5:]
    assert Pseudonyms(random_key()).of("user", "alice") != Pseudonyms(random_key()).of("user", "alice")
    forged = "user-aaaaaaaaaaaaa"
    assert Pseudonyms(KEY).of("user", forged) != forged


@given(st.lists(st.text(min_size=1), min_size=1, unique=True), st.booleans())
def test_names_map_one_to_one_and_pseudonyms_stay(names: list[str], queues: bool) -> None:
    pseudonyms = Pseudonyms(KEY, queues=queues)
    frame = pl.DataFrame({"user": names, "queue": names, "gpus": range(len(names))})
    result = replace(site(), tables=(table("job_times", "overview", frame),), cluster=named("cluster", names[0]))
    once = anonymised(result, pseudonyms)
    [made] = once.tables
    assert made.frame["user"].n_unique() == len(names)
    assert sorted(made.frame["gpus"]) == list(range(len(names)))
    assert (sorted(made.frame["queue"]) == sorted(names)) or queues
    again = anonymised(once, pseudonyms)
    assert again.tables[0].frame.equals(made.frame)
    assert again.cluster == once.cluster


def test_conditions_and_baselines_follow_names_or_by_pseudonyms() -> None:
    names = Pseudonyms(KEY, queues=True)
    queue = names.of("queue", "ZQqueue")
    texts = ["queueing.p95_wait_h{queue=ZQqueue} > 1", f"queueing.p95_wait_h{{queue={queue},result=ZQcluster}} > 1",
             "queueing.p95_wait_h{queue=ZQqueue} > baseline * 1.1"]  # fmt: skip
    conditions = [parse(text) for text in texts]
    plain = summarize(labelled([site()]))
    for baseline in (site(), plain, anonymised(site(), names)):
        hidden = hide([(None, site())], conditions, [baseline], names)
        summary = summarize(hidden.parts, hidden.conditions, hidden.baseline)
        checks = table_of(summary, "checks")
        assert checks.frame["failed"].to_list() == [True, True, False]
        assert checks.frame["limit"].to_list() == pytest.approx([1.0, 1.0, 3.3])
        assert set(checks.frame["metric"]) == {f"queueing.p95_wait_h{{queue={queue}}}"}
        assert "ZQ" not in str(checks.frame.to_dicts())


def test_a_condition_is_written_with_other_labels() -> None:
    found = relabelled(parse('queueing.p95_wait_h{queue="a } > b"} >= baseline + .5'), lambda _, text: text.upper())
    assert found.text == 'queueing.p95_wait_h{queue="A } > B"} >= baseline + .5'
    assert parse(found.text) == found
    assert relabelled(parse("queueing.p95_wait_h{queue=*} > 2"), lambda *_: "x").labels == {"queue": "*"}
    assert rekeyed('m{a="x y",b=z}', lambda label, text: f"{label}{text}") == 'm{a="ax y",b=bz}'
    assert rekeyed("m", lambda *_: "x") == "m"
    assert rekeyed("m{a", lambda *_: "x") == "m{a"


@pytest.mark.parametrize(
    ("line", "kept"),
    [
        ("gpuctl --quiet analyze /home/x --keep y", "gpuctl analyze (arguments left out)"),
        ("gpuctl predict runtime a.csv --jobs runtime", "gpuctl predict runtime (arguments left out)"),
        ("gpuctl replay 'analyze", "gpuctl replay (arguments left out)"),
        ("rm -rf /", "gpuctl (arguments left out)"),
        ("", "gpuctl (arguments left out)"),
    ],
)
def test_a_command_line_keeps_its_command(line: str, kept: str) -> None:
    assert command(line) == kept


@pytest.mark.parametrize(
    ("text", "told"), [(b"short\n", "5 bytes"), (b"x" * 5000, "larger than 4,096"), (None, "No such")]
)
def test_a_secret_has_to_be_one(text: bytes | None, told: str, tmp_path: Path) -> None:
    path = tmp_path / "key"
    if text is not None:
        path.write_bytes(text)
    with pytest.raises(InputError, match=told):
        read_key(path)


def test_white_space_around_a_secret_does_not_count(tmp_path: Path) -> None:
    (tmp_path / "key").write_bytes(KEY + b"\r\n")
    assert read_key(tmp_path / "key") == KEY


def test_every_column_of_text_is_known() -> None:
    """What is in no table of names becomes a pseudonym: safe, but of no use to a reader."""
    known = set(NAMES) | UNMASKED | LINES | WORDS | {"provenance"} | NUMBERED | NUMBERS
    analyses = {
        column.name for query in registry.all_analyses().values() for column in query.columns if column.unit == "-"
    }
    replays = {c.name for name in replay_columns._TABLES for c in replay_columns.columns(name) if c.unit == "-"}
    times = {name for name in analyses | replays if name.endswith(("ts", "_s"))}
    assert analyses | replays <= known | times
    assert UNMASKED.isdisjoint(NAMES)
    assert all(name in registry.tables() or name.startswith(("replay", "predictions")) for name, _ in ROLES)


def test_an_anonymised_result_is_a_document(tmp_path: Path) -> None:
    made = anonymised(site(), Pseudonyms(KEY))
    text = "".join(document(made, made.tables, ())).encode()
    back = parse_document(text, "x")
    assert [t.name for t in back.tables] == [t.name for t in made.tables]
    assert back.tables[1].frame.equals(made.tables[1].frame)


NAME = st.text(min_size=1, max_size=12) | st.sampled_from(["the", "of", "jobs", "12", "GPU", "machine"])
PIECES = st.lists(st.tuples(st.sampled_from(["the jobs of ", " was 12, of ", " waits"]), st.none() | NAME), max_size=6)


@given(PIECES, st.sampled_from(sorted(set(KINDS) - {"policy", "queue"})))
def test_names_go_and_words_stay_whatever_they_are(pieces: list[tuple[str, str | None]], kind: Kind) -> None:
    pseudonyms = Pseudonyms(KEY)
    said = together("", [together("", [Note(text), named(kind, name or "")]) for text, name in pieces])
    assert said == "".join(text + (name or "") for text, name in pieces)
    expected = "".join(text + (pseudonyms.of(kind, name) if name else "") for text, name in pieces)
    hidden = pseudonymous(said, pseudonyms)
    assert hidden == expected or said == pieces[0][1]
    assert pseudonymous(hidden, pseudonyms) == hidden


def test_text_of_which_nothing_is_known_is_left_out_and_counted(tmp_path: Path) -> None:
    text = "".join(document(site(), site().tables, ()))
    found = json.loads(text)
    found.pop("names")
    for one in found["tables"].values():
        one.pop("names")
    hidden = anonymised(parse_document(json.dumps(found).encode(), "of an older gpuctl"), Pseudonyms(KEY, queues=True))
    assert "ZQ" not in everything(hidden, tmp_path)
    assert hidden.warnings == ("3 sentences left out: positions of names are unknown",)
    assert hidden.tables[0].population == "Left out: positions of names are unknown."
    assert hidden.tables[0].frame.equals(anonymised(site(), Pseudonyms(KEY, queues=True)).tables[0].frame)
    assert re.fullmatch("cluster-[a-z2-7]{13}", hidden.cluster)


def test_a_result_that_was_written_is_hidden_as_the_result_itself() -> None:
    again = parse_document("".join(document(site(), site().tables, ())).encode(), "x")
    first, second = (anonymised(one, Pseudonyms(KEY, queues=True)) for one in (site(), again))
    assert "".join(document(first, first.tables[1:3], ())) == "".join(document(second, second.tables[1:3], ()))


@pytest.mark.parametrize(
    "rows",
    [
        {"user": ["ada", "bob", "cyd", None, "all"]},
        {"user": ["cyd", "bob", "ada", None, "all"]},
        {"policy": ["fifo"] * 3 + ["sjf"] * 3, "user": ["ada", "bob", "cyd"] * 2},
        {"job": [11, 12, 13, 14]},
    ],
)
def test_no_order_tells_names(rows: dict[str, list[Any]]) -> None:
    made = replace(
        make_analysis(points=5),
        tables=(table("t", "s", pl.DataFrame({**rows, "n": range(len(next(iter(rows.values()))))})),),
    )
    name = "job" if "job" in rows else "user"
    orders = set()
    for k in range(12):
        found = anonymised(made, Pseudonyms(bytes([k]) * 32)).tables[0].frame
        orders.add(tuple(found["n"]))
        known = [
            (p, one)
            for p, one in zip(
                found.get_column("policy", default=pl.Series([""] * len(found))), found[name], strict=True
            )
            if one not in {None, "all"}
        ]
        assert known == sorted(known)
        assert found[name].to_list()[len(known) :] == rows[name][len(known) :]
    assert len(orders) > 2


def test_names_inside_literal_text() -> None:
    machines = pl.DataFrame({"machine": ["ZQ1", "ZQ2"], "bad": ["yes", "beside ZQ1"]})
    told = note("past jobs, as {model} was trained on them", model=NamedValue("path", "ZQ-secret"))
    predicted = pl.DataFrame({"job": ["ZQjob", "ZQ2"], "provenance": [str(told), "ZQ: who knows"]})
    made = replace(
        make_analysis(points=5),
        cluster=note(
            "{jobs} on {nodes}", jobs=NamedValue("cluster", "ZQ.csv"), nodes=NamedValue("cluster", "ZQcluster")
        ),
        tables=(
            table("failure_nodes", "s", machines),
            replace(table("predictions", "s", predicted), sentences=(told,)),
        ),
        sources=(),
        command="gpuctl report",
        warnings=(),
    )
    hidden = anonymised(made, Pseudonyms(bytes(32)))
    assert "ZQ" not in "".join(document(hidden, hidden.tables, ()))
    machine, bad = (hidden.tables[0].frame[name].to_list() for name in ("machine", "bad"))
    assert bad == ["yes", f"beside {machine[0]}"]
    known, unknown = sorted(hidden.tables[1].frame["provenance"])
    assert re.fullmatch("past jobs, as path-[a-z2-7]{13} was trained on them", known)
    assert re.fullmatch("text-[a-z2-7]{13}", unknown)
