from __future__ import annotations

import io
import time
from pathlib import Path
from typing import TYPE_CHECKING, Any

import pytest

from gpuctl.core.errors import InputError
from gpuctl.core.line_reader import RowError
from gpuctl.ingest.formats import slurm_dbd, slurm_dbd_names
from gpuctl.ingest.slurm import dbd_delimited, dbd_names, dbd_sql, record_batches
from gpuctl.ingest.slurm.dbd_fields import COLUMNS, DELETED, JOB_COLUMNS, exit_code, fields, step_fields
from gpuctl.ingest.slurm.dbd_tables import EVENT_COLUMNS, read_event
from tests.philly_log import new_store
from tests.slurm_loading import load, rows

if TYPE_CHECKING:
    from gpuctl.store.database import Store

FIXTURE = Path(__file__).resolve().parents[3] / "fixtures" / "slurm" / "other" / "slurmdbd.sql"
WANTED = {"_job_table": frozenset({"a", "b", "c"})}
CREATE = (
    "CREATE TABLE `x_job_table` (\n  `a` int(10) NOT NULL,\n  `b` text DEFAULT ';',\n  `c` text,\n  KEY `k` (`a`)\n);\n"
)


def sql(text: str | bytes, wanted: dict[str, frozenset[str]] = WANTED) -> list[dbd_sql.Row]:
    data = text.encode() if isinstance(text, str) else text
    return list(dbd_sql.rows(io.BytesIO(data), wanted))


def values(text: str) -> list[tuple[str | None, ...] | str]:
    return [row.fault or tuple(row.cells[name] for name in "abc") for row in sql(CREATE + text)]


@pytest.mark.parametrize(
    ("text", "cells"),
    [
        ("(1,'x',NULL)", ("1", "x", None)),
        ("( -1 , 'x' , null )", ("-1", "x", None)),
        ("(1,'','1.5')", ("1", "", "1.5")),
        (r"(1,'it''s','it\'s')", ("1", "it's", "it's")),
        (r"(1,'a\nb\tc\0d\Ze\rf\bg','\\n')", ("1", "a\nb\tc\0d\x1ae\rf\bg", "\\n")),
        (r"(1,'\%\_\"\x',' x ')", ("1", '%_"x', " x ")),
        (r"(1,'trailing \\','x')", ("1", "trailing \\", "x")),
        ("(1,'),(2,','(')", ("1", "),(2,", "(")),
        ("(1,';\\n-- no comment','/* none */')", ("1", ";\n-- no comment", "/* none */")),
        ("(1,_binary 'x',_utf8mb4'ü')", ("1", "x", "ü")),
        ("(0x1F,'übung-训练-🚀','x')", ("0x1F", "übung-训练-🚀", "x")),
        ("(1,'__import__(\\'os\\').system(1)','x')", ("1", "__import__('os').system(1)", "x")),
    ],
)
def test_values_of_every_kind(text: str, cells: tuple[str | None, ...]) -> None:
    assert values(f"INSERT INTO `x_job_table` VALUES {text};\n") == [cells]


@pytest.mark.parametrize(
    "text",
    [
        "INSERT INTO `x_job_table` VALUES (1,'p','q'),(2,'r','s');\n",
        "INSERT INTO x_job_table VALUES (1,'p','q');INSERT INTO x_job_table VALUES (2,'r','s')",
        "insert ignore into `db`.`x_job_table` values\n (1,'p','q'),\n (2,'r','s');",
        "REPLACE INTO `x_job_table` (`a`, `b`, `c`) VALUES (1,'p','q'),(2,'r','s');",
        "INSERT INTO `x_job_table` (`c`,`b`,`d`,`a`) VALUES ('q','p',9,1),('s','r',9,2);",
        "/* (9 */ -- (9\n# (9'\nINSERT INTO `x_job_table` VALUES (1,'p','q') , (2,'r','s') ;",
        "LOCK TABLES `x_job_table` WRITE;\n/*!40000 ALTER TABLE `x_job_table` DISABLE KEYS */;\n"
        "INSERT INTO `other` VALUES (9,'INSERT INTO `x_job_table` VALUES (9,''p'',9);');\n"
        "INSERT INTO `x_job_table` VALUES (1,'p','q'),(2,'r','s');\nUNLOCK TABLES;\n",
    ],
)
def test_statements_of_every_form(text: str) -> None:
    assert values(text) == [("1", "p", "q"), ("2", "r", "s")]


@pytest.mark.parametrize(
    ("text", "found"),
    [
        ("INSERT INTO `x_job_table` VALUES (1,'p'),(2,'r','s');", [dbd_sql.WRONG_WIDTH, ("2", "r", "s")]),
        ("INSERT INTO `x_job_table` VALUES (1,'p','q','r'),(2,'r','s');", [dbd_sql.WRONG_WIDTH, ("2", "r", "s")]),
        ("INSERT INTO `x_job_table` VALUES (1,'p' 'q','r'),(2,'r','s');", [dbd_sql.WRONG_WIDTH, ("2", "r", "s")]),
        ("INSERT INTO `x_job_table` VALUES (1,'p','q'),(2,'r", [("1", "p", "q"), dbd_sql.CUT_OFF]),
        ("INSERT INTO `x_job_table` VALUES (1,'p','q'),", [("1", "p", "q"), dbd_sql.CUT_OFF]),
        ("INSERT INTO `x_job_table` VALUES ", [dbd_sql.CUT_OFF]),
        (
            "INSERT INTO `x_job_table` VALUES (1,((;\nINSERT INTO `x_job_table` VALUES (2,'r','s');",
            [dbd_sql.CUT_OFF, ("2", "r", "s")],
        ),
        ("INSERT INTO `y_job_table` VALUES (1,'p','q');", [dbd_sql.NO_COLUMNS]),
        ("INSERT INTO `x_job_table` VALUES (1,'p\n','q'),(2,'r','s');", [dbd_sql.TORN_TEXT, ("2", "r", "s")]),
    ],
)
def test_rows_that_cannot_be_read_report_it(text: str, found: list[Any]) -> None:
    assert values(text) == found


FIRST_LINE = "INSERT INTO `x_job_table` VALUES (1,'p','q');\n"
LATER = (
    "INSERT INTO `x_job_table` VALUES (5,'r','s');\nINSERT INTO `x_job_table` VALUES (6,'r','s');\n"
    + CREATE.replace("x_job", "y_job")
    + "INSERT INTO `y_job_table` VALUES (7,'r','s');\n"
)
INSERTS = (
    "INSERT INTO `x_job_table` VALUES (2,'sbatch --gres=gpu:1 -p; a','q'),(3,'r','s');\n",
    "INSERT IGNORE INTO `x_job_table` (`a`,`b`,`c`) VALUES (2,'p','q'),(3,'r','s');\n",
    "REPLACE INTO db.x_job_table VALUES (2,'p','q'),(3,'r','s');\n",
)


@pytest.mark.parametrize("line", INSERTS)
def test_a_line_torn_anywhere_costs_no_row_in_silence(line: str) -> None:
    whole = FIRST_LINE + line + LATER
    assert [row[0] for row in values(whole)] == ["1", "2", "3", "5", "6", "7"]
    for cut in range(1, len(line) - 1):
        for torn in (line[:cut], line[:cut] + "\n", line[:cut] + "\n" + line[cut:], line[cut:]):
            rows = sql(CREATE + FIRST_LINE + torn + LATER)
            found = {row.cells["a"] for row in rows if row.fault is None}
            faults = [row for row in rows if row.fault]
            assert found >= {"1", "6", "7"}, (torn, rows)
            assert found >= {"2", "3", "5"} or faults, (torn, rows)
            if torn.endswith("\n"):
                assert "5" in found, (torn, rows)


@pytest.mark.parametrize(
    ("line", "faults"),
    [
        ("INSERT INTO `", 1),
        ("INSERT INTO ", 1),
        ("INSERT", 1),
        ("INSERT INTO `x_job", 1),
        ("INSERT INTO `x_job_table`", 1),
        ("INSERT INTO `x_job_table` (`a`,", 1),
        ("INSERT INTO `x_job_table` VALUES", 1),
        ("INSERT INTO `x_job_table` SELECT * FROM `y`;", 1),
        ("INSERT INTO `othINSERT INTO `x_job_table` VALUES (9,'p','q');", 1),
        ("INSERT INTO `other`", 0),
        ("INSERT INTO `other` (`a`,", 0),
        ("INSERT INTO `other` VALUES (1,2),", 0),
        ("INSERT IGNORE (a) VALUES (1);", 1),
        ("INSERT DELAYED INTO other SET a=1;", 0),
        ("REPLACE INTO `db`.`other` SELECT * FROM `x`;", 0),
    ],
)
def test_an_insert_that_is_none_is_counted_where_its_table_may_be_wanted(line: str, faults: int) -> None:
    rows = sql(CREATE + FIRST_LINE + line + "\n" + LATER)
    assert [row.cells["a"] for row in rows if row.fault is None] == ["1", "5", "6", "7"]
    assert len([row for row in rows if row.fault]) == faults


def test_lines_and_tables_are_reported() -> None:
    rows = sql(CREATE + "\n-- x\nINSERT INTO `x_job_table` VALUES (1,'p\n','q'),\n(2,'r','s');\n")
    assert [(row.line_no, row.table, row.raw) for row in rows] == [
        (9, "x_job_table", b"(1,'p\n','q')"),
        (11, "x_job_table", b"(2,'r','s')"),
    ]


@pytest.mark.parametrize("chunk", [1, 2, 3, 7, 64])
def test_reads_of_any_size_make_no_difference(monkeypatch: pytest.MonkeyPatch, chunk: int) -> None:
    text = (
        CREATE
        + "INSERT INTO `other` VALUES ('a\\'--b;'); -- c'\nINSERT INTO `x_job_table` VALUES (1,'\\'','--');\n" * 5
    )
    whole = sql(text)
    assert len(whole) == 5
    monkeypatch.setattr(dbd_sql, "_CHUNK", chunk)
    monkeypatch.setattr(dbd_sql, "_STATEMENT", 200)
    assert sql(text) == whole


def test_a_row_over_the_limit_is_rejected_and_reading_continues() -> None:
    long = "x" * (dbd_sql.ROW_LIMIT + 10)
    text = CREATE + "".join(f"INSERT INTO `x_job_table` VALUES (1,'{b}','q');\n" for b in (long, "p"))
    assert [row.fault for row in sql(text)] == [dbd_sql.NOT_A_ROW, None]


@pytest.mark.parametrize(
    "line",
    [
        b"INSERT INTO `x_job_table` VALUES (\\'",
        b"INSERT INTO `x_job_table` VALUES ('",
        b"(",
        b"'",
        b"/*",
        b"INSERT INTO ",
    ],
)
def test_hostile_repetition_takes_no_time(line: bytes) -> None:
    started = time.thread_time()  # what other processes do meanwhile does not count
    rows = sql(CREATE.encode() + (line + b"\n") * 60_000)
    assert all(row.fault for row in rows)
    assert time.thread_time() - started < 20


def test_memory_does_not_grow_with_a_table_that_is_passed_over() -> None:
    class Endless(io.RawIOBase):
        left = 12

        def read(self, size: int = -1, /) -> bytes:
            self.left -= 1
            if self.left < 0:
                return b""
            return b"INSERT INTO `script_table` VALUES ('" if self.left == 11 else b"a'',(;" * 100_000

    window = dbd_sql._Window(Endless())  # type: ignore[arg-type]
    held = 0
    while not window.at_end():
        dbd_sql._pass_statement(window)
        held = max(held, len(window.data))
    assert held < 4 * 2**20


# ---- words for numbers


@pytest.mark.parametrize(
    ("number", "word"),
    [
        *enumerate(
            ("PENDING", "RUNNING", "SUSPENDED", "COMPLETED", "CANCELLED", "FAILED", "TIMEOUT", "NODE_FAIL", "PREEMPTED",
             "BOOT_FAIL", "DEADLINE", "OUT_OF_MEMORY")
        ),
        (1024, "REQUEUED"), (1024 + 5, "REQUEUED"), (8192 + 3, "RESIZING"), (1 << 19, "REVOKED"),
        (0x8000 + 1, "RUNNING"), (0x4000 + 1, "RUNNING"), (0x100 + 5, "FAILED"), (12, "12"),
    ],
)  # fmt: skip
def test_job_states(number: int, word: str) -> None:
    assert dbd_names.job_state(number) == word


@pytest.mark.parametrize(
    ("number", "word"), [(0, "UNK"), (514, "DRAIN"), (1, "DOWN"), (2049, "DOWN*"), (3, "ALLOC"), (9, "9")]
)
def test_node_states(number: int, word: str) -> None:
    assert dbd_names.node_state(number) == word


def test_flags_and_reasons() -> None:
    assert [dbd_names.job_flags(n) for n in (20, 24, 16, 28, 0)] == [
        "SchedMain,StartReceived",
        "SchedBackfill,StartReceived",
        "StartReceived",
        "SchedMain,StartReceived",
        "",
    ]
    assert [dbd_names.reason(n) for n in (0, 9, 15, 123)] == ["None", "BeginTime", "ReqNodeNotAvail", "reason 123"]


@pytest.mark.parametrize(
    ("text", "words"),
    [
        ("1=4,2=1000,4=1,1001=4", "cpu=4,gres/gpu=4,mem=1000M,node=1"),
        ("1=1,3=18446744073709551614", "cpu=1"),
        ("", ""),
        ("1=4,1099=2", None),
    ],
)
def test_tres(text: str, words: str | None) -> None:
    assert dbd_names.tres_text(text, {**dbd_names.TRES, 1001: "gres/gpu"}) == words


@pytest.mark.parametrize("text", ["1", "1=x", "cpu=4", "1=4;2=3", "=", "1=-4"])
def test_invalid_lists_of_tres(text: str) -> None:
    with pytest.raises(ValueError, match="tres"):
        dbd_names.tres_text(text, dbd_names.TRES)


@pytest.mark.parametrize(
    ("status", "text"),
    [(0, "0:0"), (256, "1:0"), (35584, "139:0"), (65280, "255:0"), (139, "0:11"), (253, "0:125"), (None, "")],
)
def test_exit_status(status: int | None, text: str) -> None:
    assert exit_code(status) == text


# ---- one job


def row(**changes: str | None) -> dict[str, str | None]:
    base: dict[str, str | None] = {
        "deleted": "0", "account": "nlp", "array_task_str": None, "cpus_req": "2", "derived_ec": "0",
        "exit_code": "256", "flags": "24", "job_name": "a,b", "id_assoc": "9", "id_array_job": "0",
        "id_array_task": "4294967294",
        "id_job": "8", "id_qos": "1", "id_user": "1001", "het_job_id": "0", "het_job_offset": "4294967294",
        "kill_requid": None, "state_reason_prev": "9", "nodelist": "gpu[005-006]", "nodes_alloc": "2",
        "partition": "v100", "priority": "556", "state": "5", "timelimit": "5", "time_submit": "1795208678",
        "time_eligible": "1795208679", "time_start": "1795208680", "time_end": "1795208682", "time_suspended": "0",
        "submit_line": "sbatch x", "tres_alloc": "1=2,4=2,1001=2", "tres_req": "1=2,4=2,1001=2", "restart_cnt": "1",
        "admin_comment": "JS1:None", "derived_es": "mine",
    }  # fmt: skip
    return {**base, **changes}


def test_every_field_of_a_job() -> None:
    assert fields(row()) == {
        "Cluster": "",
        "Constraints": "not known",
        "JobIDRaw": "8",
        "JobID": "8",
        "JobName": "a,b",
        "User": "1001",
        "Account": "nlp",
        "Partition": "v100",
        "QOS": "1",
        "State": "FAILED",
        "ExitCode": "1:0",
        "DerivedExitCode": "0:0",
        "Submit": "1795208678",
        "Eligible": "1795208679",
        "Start": "1795208680",
        "End": "1795208682",
        "Timelimit": "00:05:00",
        "NNodes": "2",
        "NCPUS": "2",
        "ReqTRES": "1=2,4=2,1001=2",
        "AllocTRES": "1=2,4=2,1001=2",
        "NodeList": "gpu[005-006]",
        "Reason": "BeginTime",
        "Priority": "556",
        "Flags": "SchedBackfill,StartReceived",
        "Suspended": "00:00:00",
        "SubmitLine": "sbatch x",
        "Restarts": "1",
        "AllocGRES": "",
        "ReqMem": "",
        "Association": "9",
        "AdminComment": "JS1:None",
        "Comment": "mine",
    }


STEP: dict[str, str | None] = {
    "job_db_inx": "7", "deleted": "0", "id_step": "-5", "task_cnt": "2", "time_start": "1795208678", "user_sec": "61",
    "user_usec": "999999", "sys_sec": "0", "sys_usec": "2", "tres_usage_in_max": "1=0,2=5074944,1003=40",
    "tres_usage_in_tot": "1=0,2=9000000,1003=80",
}  # fmt: skip


def test_every_field_of_a_step() -> None:
    assert step_fields(STEP) == {
        "record": "7",
        "step": "batch",
        "Start": "1795208678",
        "NTasks": "2",
        "TotalCPU": "1:02.000001",
        "TRESUsageInTot": "1=0,2=9000000,1003=80",
        "MaxRSS": "5074944",
    }


@pytest.mark.parametrize(
    ("number", "name"), [("0", "0"), ("3", "3"), ("-4", "extern"), ("-6", "interactive"), ("-2", "batch")]
)
def test_names_of_steps(number: str, name: str) -> None:
    assert step_fields({**STEP, "id_step": number})["step"] == name


@pytest.mark.parametrize("bad", [{"id_step": None}, {"job_db_inx": ""}, {"deleted": "1"}, {"user_sec": "x"}])
def test_what_is_no_step_is_refused(bad: dict[str, str | None]) -> None:
    with pytest.raises(RowError):
        step_fields({**STEP, **bad})
    assert tuple(fields(row())) == COLUMNS


@pytest.mark.parametrize(
    ("changes", "column", "text"),
    [
        ({"id_array_job": "7", "id_array_task": "3"}, "JobID", "7_3"),
        ({"id_array_job": "7", "array_task_str": "4-9%2"}, "JobID", "7_[4-9%2]"),
        ({"het_job_id": "8", "het_job_offset": "1"}, "JobID", "8+1"),
        ({"state": "4", "kill_requid": "0"}, "State", "CANCELLED by 0"),
        ({"state": "4", "kill_requid": "4294967295"}, "State", "CANCELLED"),
        ({"state": "4", "time_start": "0"}, "Start", "None"),
        ({"state": "0", "time_start": "0"}, "Start", "Unknown"),
        ({"time_eligible": "0"}, "Eligible", "Unknown"),
        ({"time_end": "0"}, "End", "Unknown"),
        ({"timelimit": "4294967295"}, "Timelimit", "UNLIMITED"),
        ({"timelimit": "4294967294"}, "Timelimit", ""),
        ({"timelimit": "10080"}, "Timelimit", "7-00:00:00"),
        ({"nodes_alloc": "0"}, "NNodes", "2"),
        ({"tres_alloc": "", "tres_req": ""}, "NCPUS", "2"),
        ({"time_suspended": "12"}, "Suspended", "00:00:12"),
        # of a job that is suspended now it is when that began
        ({"time_suspended": "1795208681", "state": "2"}, "Suspended", "00:00:00"),
        ({"nodelist": "['n1', 'n2']"}, "NodeList", "n1,n2"),
        ({"exit_code": "4294967294"}, "ExitCode", ""),
        ({"mem_req": "9223372036854776008"}, "ReqMem", "200Mc"),
        ({"mem_req": "100"}, "ReqMem", "100Mn"),
        ({"mem_req": "0"}, "ReqMem", ""),
        ({"mem_req": "18446744073709551614"}, "ReqMem", ""),
        ({"gres_used": "gpu:2"}, "AllocGRES", "gpu:2"),
        ({"constraints": "a100"}, "Constraints", "a100"),
        ({"constraints": ""}, "Constraints", ""),
        ({"job_db_inx": "9007199254740993000"}, "JobIDRaw", "8"),
        ({"time_submit": "1795208678.0"}, "Submit", "1795208678"),
    ],
)
def test_what_states_and_dumps_write_differently(changes: dict[str, str], column: str, text: str) -> None:
    assert fields(row(**changes))[column] == text


def test_a_table_with_few_columns_gives_what_it_has() -> None:
    read = fields({"id_job": "5", "state": "3", "time_submit": "10"})
    assert {name: text for name, text in read.items() if text} == {
        "Constraints": "not known",
        "JobIDRaw": "5", "JobID": "5", "State": "COMPLETED", "Submit": "10", "Eligible": "Unknown", "Start": "None",
        "End": "Unknown", "Suspended": "00:00:00",
    }  # fmt: skip


@pytest.mark.parametrize(
    ("changes", "reason"),
    [
        ({"id_job": None}, "no id_job"),
        ({"id_job": "abc"}, "id_job is not a whole number"),
        ({"state": None}, "no state"),
        ({"time_start": "yesterday"}, "time_start is not a whole number"),
        ({"state": "\u0663"}, "state is not a whole number"),
        ({"deleted": "1"}, DELETED),
    ],
)
def test_an_invalid_job_is_rejected_with_a_reason(changes: dict[str, str | None], reason: str) -> None:
    with pytest.raises(RowError) as caught:
        fields(row(**changes))
    assert str(caught.value) == reason


def test_events() -> None:
    event = {"node_name": "gpu004", "time_start": "10", "time_end": "27", "reason": "ECC | x", "state": "514"}
    assert read_event(event) == ("gpu004", 10, 27, "DRAIN", "ECC | x")
    assert read_event({**event, "time_end": "0", "reason": ""}) == ("gpu004", 10, None, "DRAIN", None)
    assert read_event({**event, "node_name": ""}) is None
    for bad in ({"time_start": "0"}, {"time_end": "9"}, {"state": "x"}, {"node_name": "a\x00"}):
        with pytest.raises(RowError):
            read_event({**event, **bad})


# ---- one table by itself


def delimited(text: str | bytes) -> list[tuple[str | None, ...]]:
    wanted = {"_job_table": JOB_COLUMNS, "_event_table": EVENT_COLUMNS, "tres_table": frozenset({"id", "type", "name"})}
    data = text.encode() if isinstance(text, str) else text
    found = dbd_delimited.rows(io.BytesIO(data), wanted)
    return [(row.fault,) if row.fault else tuple(row.cells.values()) for row in found]


@pytest.mark.parametrize(
    ("text", "rows"),
    [
        ("id_job\tstate\ttime_submit\tjob_name\tmore\n5\t3\t10\ta\\tb\\nc\\\\\t9\n", [("5", "3", "10", "a\tb\nc\\")]),
        ("id_job\tstate\ttime_submit\tjob_name\n5\t3\tNULL\t\n\n", [("5", "3", None, "")]),
        ('"id_job",state,time_submit,job_name\r\n5,3,10,"a, ""b""\nc"\r\n6,3,11,x\r\n',
         [("5", "3", "10", 'a, "b"\nc'), ("6", "3", "11", "x")]),
        ("id_job,state,time_submit\n5,3\n6,3,11\n", [(dbd_sql.WRONG_WIDTH,), ("6", "3", "11")]),
        ('id_job,state,time_submit\n5,3,"x\n6,3,11\n', [("a quoted cell is not closed, or is too long",)]),
        ("id\ttype\tname\n1001\tgres\tgpu\n", [("1001", "gres", "gpu")]),
    ],
)  # fmt: skip
def test_tabs_and_commas(text: str, rows: list[tuple[str | None, ...]]) -> None:
    assert delimited(text) == rows


def test_invalid_utf8_is_replaced() -> None:
    assert delimited(b"id_job\tstate\ttime_submit\tjob_name\n5\t3\t10\t\x8b\n") == [("5", "3", "10", "\ufffd")]
    row = sql(CREATE.encode() + b"INSERT INTO `x_job_table` VALUES (1,'\x8b','q');")[0]
    assert row.cells["b"] == "\ufffd"


TABS = (
    "id_job\tid_assoc\tid_user\tid_qos\tstate\ttime_submit\ttime_start\ttime_end\tnodelist\ttres_alloc\n"
    "5\t9\t1001\t2\t3\t1795208678\t1795208680\t1795208690\tn[1-2]\t1=2,4=2,1001=4,1002=4\n"
    "6\t9\t1001\t7\t3\t1795208678\t1795208680\t1795208690\tn3\t1=2,4=1\n"
)
TRES = "creation_time\tdeleted\tid\ttype\tname\n1\t0\t1001\tgres\tgpu\n1\t0\t1002\tgres\tgpu:a100\n"
QOS = "creation_time\tdeleted\tid\tname\tpreempt\n1\t0\t1\tnormal\t\n1\t0\t2\tlow\t\n"
ASSOC = "id_assoc\tuser\tacct\tlft\n9\tcarol\tnlp\t3\n"


def job_names(store: Store) -> list[tuple[Any, ...]]:
    names = ("job", "user", "account", "qos", "gpus", "gpu_type")
    return [tuple(row[name] for name in names) for row in rows(store, "jobs")]


def test_a_table_by_itself_states_what_it_can(tmp_path: Path) -> None:
    with new_store(tmp_path) as store:
        assert load(slurm_dbd.FORMAT, TABS, store).rejects == []
        # which number a GPU has is not known, so neither is that the second job has none
        assert job_names(store) == [("5", "1001", None, None, None, None), ("6", "1001", None, None, None, None)]


def test_tables_that_name_numbers_are_loaded_before_the_jobs(tmp_path: Path) -> None:
    assert slurm_dbd_names.FORMAT.order < slurm_dbd.FORMAT.order
    with new_store(tmp_path) as store:
        for source, text in enumerate((TRES, QOS, ASSOC), 1):
            sink = load(slurm_dbd_names.FORMAT, text, store, source=source)
            assert (sink.rows_in, sink.rejects) == (len(text.splitlines()) - 1, [])
        load(slurm_dbd.FORMAT, TABS, store, source=4)
        assert job_names(store) == [("5", "carol", "nlp", "low", 4.0, "a100"), ("6", "carol", "nlp", None, 0.0, None)]
        assert [(p["machine"], p["gpus"], p["estimated"]) for p in rows(store, "placements")] == [
            ("n1", 2.0, True), ("n2", 2.0, True), ("n3", 0.0, False)
        ]  # fmt: skip


def test_a_published_list_of_tres_names_the_gpus_of_a_published_log(tmp_path: Path) -> None:
    log = "id_job,id_user,state,time_submit,time_start,time_end,tres_req,tres_alloc,nodelist\n"
    log += '123456,77,6,1600000000,1600000100,1600003700,"1=40,2=340000,4=1,1002=2","1=40,2=340000,4=1,1002=2",r1\n'
    mapping = "tres_id,resource\n1,cpu\n2,mem\n4,node\n1001,gpu:tesla\n1002,gpu:volta\n?\n"
    with new_store(tmp_path) as store:
        sink = load(slurm_dbd_names.FORMAT, mapping, store)
        assert (sink.rows_in, [(line, raw) for line, _, raw in sink.rejects]) == (6, [(7, "?")])
        load(slurm_dbd.FORMAT, log, store, source=2)
        (job,) = rows(store, "jobs")
    assert (job["state"], job["gpus"], job["gpu_type"], job["user"], job["mem_mb"]) == (
        "timeout", 2.0, "volta", "77", 340_000
    )  # fmt: skip


@pytest.mark.parametrize("text", ["", "CREATE TABLE `blog` (\n `a` int\n);", "x" * 70_000])
def test_a_file_without_such_tables_is_an_input_error(tmp_path: Path, text: str) -> None:
    with new_store(tmp_path) as store:
        with pytest.raises(InputError, match="slurmdbd"):
            load(slurm_dbd.FORMAT, text, store)
        with pytest.raises(InputError, match="slurmdbd"):
            load(slurm_dbd_names.FORMAT, text, store)


def test_rows_that_cannot_be_read_are_rejected_with_their_line(tmp_path: Path) -> None:
    text = TABS + "x\t9\n" + TABS.splitlines()[1].replace("5\t", "x\t", 1) + "\n"
    with new_store(tmp_path) as store:
        sink = load(slurm_dbd.FORMAT, text, store)
    assert [(line, reason) for line, reason, _ in sink.rejects] == [
        (4, dbd_sql.WRONG_WIDTH),
        (5, "id_job is not a whole number"),
    ]
    assert (sink.rows_in, sink.rows_loaded) == (4, 2)


def test_jobs_of_a_big_dump_go_through_a_file(tmp_path: Path, monkeypatch: pytest.MonkeyPatch) -> None:
    monkeypatch.setattr(record_batches, "BATCH", 7)
    monkeypatch.setattr(record_batches, "_IN_MEMORY", 1000)
    data = FIXTURE.read_bytes()
    with new_store(tmp_path) as store:
        load(slurm_dbd.FORMAT, data, store)
        small = rows(store, "jobs")
    monkeypatch.undo()
    other = tmp_path / "other"
    other.mkdir()
    with new_store(other) as store:
        load(slurm_dbd.FORMAT, data, store)
        assert rows(store, "jobs") == small
    assert len(small) == 37


@pytest.mark.parametrize(
    ("head", "jobs", "names"),
    [
        (FIXTURE.read_bytes()[:65536], True, False),
        (b"id_job,id_array_job,state,tres_alloc,time_submit,time_start\n", True, False),
        (b"job_db_inx\tid_job\tstate\ttime_submit\n", True, False),
        (b"time_start\ttime_end\tnode_name\tcluster_nodes\treason\tstate\n", True, False),
        (b"creation_time\tdeleted\tid\ttype\tname\n", False, True),
        (b"id_job,State\n", False, False),
        (b"JobIDRaw|State|Submit\n", False, False),
        (b"INSERT INTO `blog_posts` VALUES (1);", False, False),
        (b"", False, False),
        (b"\x00\xff" * 30_000, False, False),
        (b"," * 65_536, False, False),
    ],
)
def test_sniff(head: bytes, jobs: bool, names: bool) -> None:
    assert (slurm_dbd.FORMAT.sniff("x", head) is not None) == jobs
    assert (slurm_dbd_names.FORMAT.sniff("x", head) is not None) == names
    assert slurm_dbd_names.FORMAT.sniff("tres-mapping.txt", b"1,cpu\n1001,gpu:tesla\n") is not None
