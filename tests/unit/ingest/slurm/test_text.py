from __future__ import annotations

import gzip
import logging
from typing import TYPE_CHECKING, Any

import pytest

from gpuctl.core.errors import InputError
from gpuctl.core.line_reader import CUT_OFF, LINE_TOO_LONG
from gpuctl.ingest.formats import slurm_sacct
from gpuctl.ingest.formats.slurm_sacct import FORMAT, with_columns
from gpuctl.ingest.pipeline.registry import all_formats
from gpuctl.ingest.read import pieces
from gpuctl.ingest.read.codecs import Limits
from gpuctl.ingest.read.streams import LogStream
from gpuctl.ingest.slurm import layout, repair
from gpuctl.ingest.slurm.repair import AMBIGUOUS
from gpuctl.ingest.slurm.sacct_text import NOT_A_RECORD
from tests.sacct_records import DEFAULTS, ingest, text
from tests.slurm_loading import OneSource, load, rows

if TYPE_CHECKING:
    from pathlib import Path

    from gpuctl.store.database import Store

XDMOD = (
    "163485|163485|phillips|gpu|normal|lab|lab|45789|noror|380693|2016-12-22T07:15:12|2016-12-22T07:15:12|"
    "2016-12-22T07:15:13|2017-01-01T20:42:19|10-13:27:06|0:0|CANCELLED by 380693|1|12|12|31000Mn|cpu=12,node=1|"
    "billing=12,cpu=12,gres/gpu=2,mem=31000M,node=1|37-14:00:00|cpn-f11-31|a name|with|bars\n"
)


def names(store: Store) -> dict[str, str]:
    """The names of all jobs."""
    return {str(row["job"]): row["name"] for row in rows(store, "jobs")}


def quirks(store: Store) -> list[str]:
    """The quirks of all jobs."""
    return sorted(quirk for row in rows(store, "jobs") for quirk in row["quirks"])


# ---- 1: delimiters


@pytest.mark.parametrize(
    ("delimiter", "trailing"),
    [("|", False), ("|", True), ("\x1f", True), ("\t", False), (";", True), ("@", False), ("||", False), ("~#~", True)],
)
def test_trap_1_any_delimiter_with_or_without_one_at_the_end(store: Store, delimiter: str, trailing: bool) -> None:
    given = text({}, {"JobIDRaw": "101", "JobName": "two words"}, delimiter=delimiter)
    sink = load(FORMAT, given.replace("\n", f"{delimiter}\n") if trailing else given, store)
    assert (sink.rows_loaded, sink.rejects) == (2, [])
    assert names(store) == {"100": "train", "101": "two words"}


def test_trap_1_commas_and_quotes_of_a_csv_writer(store: Store) -> None:
    fields = "JobIDRaw,JobName,State,Submit,AllocTRES,NodeList"
    rest = 'COMPLETED,2026-11-20T10:00:00,"cpu=1,gres/gpu=2","gpu[001,003]"'
    load(FORMAT, f'{fields}\n1,a,{rest}\n2,"b ""x"", y",{rest}\n3,c,COMPLETED,,,\n', store)
    assert names(store) == {"1": "a", "2": 'b "x", y', "3": "c"}
    assert [r["gpus"] for r in rows(store, "jobs")] == [2.0, 2.0, None]


def test_trap_1_everything_in_quotes(store: Store) -> None:
    load(FORMAT, '"JobIDRaw","State","Submit"\n"1","FAILED","2026-11-20T10:00:00"\n', store)
    assert rows(store, "jobs")[0]["state"] == "failed"


def test_trap_1_quotes_mean_nothing_to_sacct(store: Store) -> None:
    ingest(store, {"JobName": 'a"b'}, {"JobIDRaw": "101", "JobName": '"'}, {"JobIDRaw": "102", "JobName": "'"})
    assert names(store) == {"100": 'a"b', "101": '"', "102": "'"}


@pytest.mark.parametrize("name", ["a|b", "|", "a|b|c|d", "|a", "a|", "99|x"])
def test_trap_1_a_stray_delimiter_in_the_name(store: Store, name: str) -> None:
    sink = ingest(store, {"JobName": name}, {"JobIDRaw": "101"})
    assert (sink.rows_in, sink.rejects) == (2, [])
    assert names(store) == {"100": name, "101": "train"}
    assert quirks(store) == ["mended"]


@pytest.mark.parametrize("name", ["a\nb", "\n", "a\n\nb", "a\n7 steps\n", "a\nb|c"])
def test_trap_1_a_line_end_in_the_name(store: Store, name: str) -> None:
    sink = ingest(store, {"JobIDRaw": "99"}, {"JobName": name}, {"JobIDRaw": "101"})
    assert (sink.rows_in, sink.rejects) == (3, [])
    assert names(store)["100"] == name
    assert quirks(store) == ["mended"]


def test_trap_1_line_ends_in_a_last_field_that_nothing_is_read_from(store: Store) -> None:
    sink = ingest(store, {"SubmitLine": "python -c\nimport x\na | b"}, {"JobIDRaw": "101", "SubmitLine": "b"})
    assert (sink.rows_in, sink.rejects) == (2, [])
    assert names(store) == {"100": "train", "101": "train"}


def test_trap_1_what_could_be_read_two_ways_is_rejected(store: Store) -> None:
    sink = ingest(store, {"JobName": "a|b|c"}, {"JobIDRaw": "101"}, only="JobIDRaw JobName User State Submit WorkDir")
    assert sink.rejects == []
    given = text({"JobName": "a|b"}, {"JobIDRaw": "201"}, only="JobIDRaw JobName Comment JobID State Submit")
    sink = load(FORMAT, given, store, source=2, cluster="other")
    assert [(line, reason) for line, reason, _ in sink.rejects] == [(2, AMBIGUOUS)]
    assert sink.rejects[0][2].startswith("100|a|b|")


def test_trap_1_lines_that_fit_no_way_are_rejected_and_the_next_record_is_read(store: Store) -> None:
    given = text({}, {"JobIDRaw": "101"}).splitlines()
    lines = [given[0], "garbage", given[1], "100|100|x", "sacct: error: slurm_receive_msg: timeout", given[2]]
    sink = load(FORMAT, "\n".join(lines), store)
    assert [(line, reason) for line, reason, _ in sink.rejects] == [
        (2, "fewer fields than the 24 columns"),
        (4, "fewer fields than the 24 columns"),
        (5, NOT_A_RECORD),
    ]
    assert sorted(names(store)) == ["100", "101"]


def test_trap_1_damage_past_what_it_is_worth_is_rejected(store: Store, monkeypatch: pytest.MonkeyPatch) -> None:
    monkeypatch.setattr(repair, "WORK", 100)
    sink = ingest(store, *({"JobIDRaw": str(i), "JobName": "a|b"} for i in range(5)))
    assert (sink.rows_loaded, len(sink.rejects)) == (2, 3)


@pytest.mark.parametrize("size", [1, 40, 300, 1 << 20])
def test_records_broken_where_a_piece_of_the_file_ends(
    store: Store, monkeypatch: pytest.MonkeyPatch, size: int
) -> None:
    monkeypatch.setattr(pieces, "PIECE", size)
    given = [{"JobIDRaw": str(100 + i), "JobName": ("plain", "a|b", "x\ny\nz")[i % 3]} for i in range(12)]
    sink = ingest(store, *given)
    assert (sink.rows_in, sink.rows_loaded) == (12, 12)
    assert names(store) == {record["JobIDRaw"]: record["JobName"] for record in given}


# ---- 2: bytes


def test_trap_2_bytes_that_are_no_utf8_are_replaced(store: Store, caplog: pytest.LogCaptureFixture) -> None:
    given = text({"JobName": "x@y"}, {"JobIDRaw": "101"}).encode().replace(b"@", b"\x8b")
    with caplog.at_level(logging.WARNING):
        sink = load(FORMAT, given, store)
    assert sink.rejects == []
    assert names(store) == {"100": "x\ufffdy", "101": "train"}
    assert quirks(store) == ["not_utf8"]
    assert "1 records have bytes that are no UTF-8" in caplog.text


def test_trap_2_every_other_character_is_stored(store: Store) -> None:
    name = "übung-训练-🚀 \x00\x07 [bold]"
    ingest(store, {"JobName": name})
    assert names(store) == {"100": name}


def test_byte_order_mark_and_line_ends_of_windows(store: Store) -> None:
    given = "\ufeff\r\n" + text({}, {"JobIDRaw": "101"}).replace("\n", "\r\n")
    sink = load(FORMAT, given, store)
    assert (sink.rows_loaded, sink.rejects) == (2, [])
    assert {row["started_by"] for row in rows(store, "attempts")} == {"main"}


# ---- 3: headers, tables


@pytest.mark.parametrize(
    "table",
    [
        "JobID           JobName  Partition      State ExitCode \n"
        "------------ ---------- ---------- ---------- -------- \n"
        "4                job.sh    preempt CANCELLED+      0:0 \n",
        "               JobID      User                State\n-------------------- --------- --------------------\n",
    ],
)
def test_trap_3_tables_for_people_are_refused_with_the_right_command(store: Store, table: str) -> None:
    assert FORMAT.sniff("x", table.encode()) is not None
    with pytest.raises(InputError, match="a table that sacct made for people") as error:
        load(FORMAT, table, store)
    assert error.value.hint is not None
    assert "TZ=UTC SLURM_TIME_FORMAT=%s sacct -a -X -D -P --delimiter=$'\\x1f'" in error.value.hint


def test_trap_3_no_header_needs_columns(store: Store) -> None:
    given = text({}, {"JobIDRaw": "101"}).split("\n", 1)[1]
    assert FORMAT.sniff("x", given.encode()) == "records of sacct without a header"
    with pytest.raises(InputError, match="without a header") as error:
        load(FORMAT, given, store)
    assert "--columns JobIDRaw" in str(error.value.hint)
    sink = load(with_columns(",".join(DEFAULTS)), given, store)
    assert (sink.rows_loaded, sink.rejects) == (2, [])


@pytest.mark.parametrize(
    ("line", "recognised"),
    [
        ("100|COMPLETED|gpu|2026-11-20T10:00:00|2026-11-20T10:11:00", True),
        ("100_4,RUNNING,gpu,2026-11-20T10:00:00,Unknown", True),
        ("100|COMPLETED|gpu|2026-11-20T10:00:00|2", False),  # one time
        ("100|done|gpu|2026-11-20T10:00:00|2026-11-20T10:11:00", False),  # no state
        ("train|COMPLETED|gpu|2026-11-20T10:00:00|2026-11-20T10:11:00", False),  # no job id
        ("100|COMPLETED|2026-11-20T10:00:00|2026-11-20T10:11:00", False),  # four cells
    ],
)
def test_a_record_without_a_header_has_a_job_id_a_state_and_two_times(line: str, recognised: bool) -> None:
    assert (FORMAT.sniff("x", f"{line}\n".encode()) is not None) == recognised


def test_trap_3_columns_of_a_text_with_p(store: Store) -> None:
    given = text({}).split("\n", 1)[1].replace("\n", "|\n")
    assert load(with_columns(",".join(DEFAULTS)), given, store).rejects == []


def test_trap_3_a_header_takes_precedence_over_columns(store: Store) -> None:
    load(with_columns("State,JobID"), text({}), store)
    assert names(store) == {"100": "train"}


@pytest.mark.parametrize(
    ("columns", "why"),
    [
        ("JobID,Colour", "'colour' is not a field"),
        ("User,State", "neither JobID"),
        ("JobID,State,Start", "fewer columns"),
    ],
)
def test_trap_3_columns_that_cannot_be(store: Store, columns: str, why: str) -> None:
    with pytest.raises(InputError, match=why):
        load(with_columns(columns), "1|FAILED\n", store)


def test_trap_3_headers_between_records(store: Store) -> None:
    sink = load(FORMAT, text({}) + text({"JobIDRaw": "101"}), store)
    assert (sink.rows_in, sink.rows_loaded) == (2, 2)


def test_the_order_of_open_xdmod(store: Store) -> None:
    assert FORMAT.sniff("x.log", XDMOD.encode()) == "records in the order of Open XDMoD"
    load(FORMAT, XDMOD, store)
    (made,) = rows(store, "jobs")
    assert made["name"] == "a name|with|bars"
    assert (made["gpus"], made["mem_mb"], made["time_limit_s"]) == (2.0, 31000, 3247200)


def test_the_older_order_of_open_xdmod(store: Store) -> None:
    given = XDMOD.replace("|cpu=12,node=1|", "|gpu:3|").replace(",gres/gpu=2", "")
    load(FORMAT, given, store)
    assert rows(store, "jobs")[0]["gpus"] == 3.0


def test_unknown_columns_are_named_once(store: Store, caplog: pytest.LogCaptureFixture) -> None:
    with caplog.at_level(logging.WARNING):
        ingest(store, {"Colour": "red"}, {"JobIDRaw": "101", "Colour": "blue"})
    assert caplog.messages == ["columns that no release of sacct has are not read: 'colour'"]
    assert len(names(store)) == 2


def test_a_column_that_stands_twice(store: Store) -> None:
    load(FORMAT, "JobIDRaw|State|State\n1|FAILED|COMPLETED\n", store)
    assert rows(store, "jobs")[0]["state"] == "failed"


def test_names_in_small_letters_and_with_widths(store: Store) -> None:
    load(FORMAT, "jobidraw|jobname%30|state%20\n1|x|FAILED\n", store)
    assert names(store) == {"1": "x"}


@pytest.mark.parametrize("example", ["21:04:37", "20 Nov 21:04", "Mon 21:04"])
def test_trap_5_relative_times_are_refused(store: Store, example: str) -> None:
    times = dict.fromkeys(("Submit", "Eligible", "Start", "End"), example)
    with pytest.raises(InputError, match=r"loses the date") as error:
        ingest(store, times)
    assert example in str(error.value)


def test_no_times_at_all_is_no_reason_to_refuse(store: Store) -> None:
    assert ingest(store, {"Submit": "Unknown"}, only="JobIDRaw State Submit").rejects == []


# ---- whose file it is


@pytest.mark.parametrize(
    "head",
    [
        b"timestamp,duration,num_gpus,gpu_time,cluster\n",
        b"JOBID|STATE|REASON\n1|PENDING|None\n",
        b"JOBID PARTITION NAME\n",
        b"Cluster|NodeName|TimeStart|TimeEnd|State|Reason|User\n",
        b"Account|User|RawShares\n",
        b"id_job,time_submit,state\n",
        b"JobID\n1\n",
        b"JobID,colour,size,weight,price\n",
        b"id|name|State\n",
        b'{"jobs": []}',
        b"",
        b"\x00\xff|\xfe",
        b"|||||",
        b"2017-10-03 09:00:00,m1,1,2\n",
    ],
)
def test_files_of_others_are_not_claimed(head: bytes) -> None:
    assert FORMAT.sniff("sacct.txt", head) is None


@pytest.mark.parametrize(
    "head",
    [text({}).encode(), text({}, delimiter="\x1f").encode(), XDMOD.encode(), b"JobID|ExitCode|State|MaxRSS|Elapsed\n"],
)
def test_no_other_format_claims_it(head: bytes) -> None:
    assert [fmt.name for fmt in all_formats() if fmt.sniff("sacct.txt", head)] == ["slurm-sacct"]


def test_all_fields_of_all_releases_are_known() -> None:
    # 128 fields in 14 releases, from 15.08 to 26.05
    assert len(layout.FIELDS) == 128
    assert layout.canonical("tresusageintot") == "TRESUsageInTot"


# ---- damage


def cut(data: bytes, store: Store, tmp_path: Path) -> OneSource:
    """Load a compressed file of which the end is missing."""
    path = tmp_path / "x.gz"
    path.write_bytes(gzip.compress(data)[:-20])
    sink = OneSource(store, "lab", 1, "UTC")
    with LogStream(path.open("rb"), "x.gz", Limits()) as stream:
        FORMAT.load(stream, sink)
        sink.finish()
    sink.close()
    return sink


def test_a_stream_that_is_cut_off(store: Store, tmp_path: Path) -> None:
    sink = cut(text(*({"JobIDRaw": str(i)} for i in range(2000))).encode(), store, tmp_path)
    assert 0 < sink.rows_loaded < 2000
    assert {reason for _, reason, _ in sink.rejects} <= {CUT_OFF}


def test_a_line_without_end(store: Store) -> None:
    given = text({}, {"JobIDRaw": "101"}) + "7|" + "x" * (3 << 20) + "\n" + text({"JobIDRaw": "102"}).split("\n", 1)[1]
    sink = load(FORMAT, given, store)
    assert [(line, reason) for line, reason, _ in sink.rejects] == [(4, LINE_TOO_LONG)]
    assert sorted(names(store)) == ["100", "101", "102"]


def test_only_a_header(store: Store) -> None:
    sink = load(FORMAT, text(), store)
    assert (sink.rows_in, sink.rows_loaded) == (0, 0)


def test_times_are_examined_only_once(store: Store, monkeypatch: pytest.MonkeyPatch) -> None:
    calls: list[Any] = []
    check = slurm_sacct._check_times
    monkeypatch.setattr(slurm_sacct, "_check_times", lambda *given: (calls.append(given), check(*given)))
    monkeypatch.setattr(pieces, "PIECE", 100)
    ingest(store, *({"JobIDRaw": str(i)} for i in range(50)))
    assert len(calls) == 1


def test_other_orders_of_as_many_columns_are_not_taken_for_open_xdmods(store: Store) -> None:
    """Its times stand where this one has them, too."""
    columns = (
        "JobIDRaw JobID JobName User Account Partition QOS State ExitCode DerivedExitCode Submit Eligible Start End "
        "Suspended Elapsed Timelimit NNodes NCPUS ReqMem ReqTRES AllocTRES NodeList Priority Flags Reason"
    )
    rows_only = text({}, {"JobIDRaw": "101", "JobID": "101"}, only=columns).split("\n", 1)[1]
    with pytest.raises(InputError, match="without a header"):
        load(FORMAT, rows_only, store)
    assert FORMAT.sniff("jobs.txt", rows_only.encode()) == "records of sacct without a header"
