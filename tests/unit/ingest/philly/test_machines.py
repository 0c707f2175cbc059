from __future__ import annotations

from typing import TYPE_CHECKING

import pytest

from gpuctl.core.errors import InputError
from gpuctl.ingest.formats.philly_machines import FORMAT
from tests.philly_log import RecordingSink, load, load_into

if TYPE_CHECKING:
    from gpuctl.store.database import Store

HEADER = "machineId, number of GPUs, single GPU mem"
DUPLICATE = "duplicate node: it is in the list already, with other values"
NO_COUNT = "number of GPUs is not a whole number up to 1024"
NO_MEMORY = "memory of one GPU is not a number with MB, GB or TB"
NO_NAME = "no printable node name"
COLUMNS = "not 3 columns: node, number of GPUs, memory of one GPU"


def loaded(text: str | bytes) -> RecordingSink:
    sink = RecordingSink()
    load_into(sink, FORMAT, text)
    return sink


def machines(sink: RecordingSink) -> list[tuple[str, int, int]]:
    return [(m["machine"], m["gpus_labelled"], m["gpu_mem_mb"]) for m in sink.tables.get("machines", [])]


@pytest.mark.parametrize("header", [HEADER, HEADER.replace(" n", "n").replace(" s", "s"), f"\ufeff{HEADER} "])
@pytest.mark.parametrize("end", ["\n", "\r\n"])
def test_rows_with_and_without_blanks(header: str, end: str) -> None:
    sink = loaded(end.join([header, "m31,8, 24GB", "m51, 2,12GB", "", "m7,4,512MB", " m8 , 0 , 1TB"]))
    assert machines(sink) == [("m31", 8, 24576), ("m51", 2, 12288), ("m7", 4, 512), ("m8", 0, 1048576)]
    assert (sink.rows_in, sink.rejects) == (4, [])


def test_a_header_alone_is_an_empty_list() -> None:
    sink = loaded(HEADER)
    assert (sink.rows_in, sink.tables) == (0, {})


@pytest.mark.parametrize(
    ("bad", "reason"),
    [
        ("m1,8", COLUMNS),
        ("m1,8, 24GB,", COLUMNS),
        ("m1", COLUMNS),
        ("m1,x, 24GB", NO_COUNT),
        ("m1,-1, 24GB", NO_COUNT),
        ("m1,8.0, 24GB", NO_COUNT),
        ("m1,1025, 24GB", NO_COUNT),
        ("m1,, 24GB", NO_COUNT),
        ("m1,٣, 24GB", NO_COUNT),
        ("m1,8, 24", NO_MEMORY),
        ("m1,8, GB", NO_MEMORY),
        ("m1,8, 24 PB", NO_MEMORY),
        (",8, 24GB", NO_NAME),
        ("m\x001,8, 24GB", NO_NAME),
        ("m\x1b[1m,8, 24GB", NO_NAME),
        ("m0,4, 24GB", DUPLICATE),
        ("1," * 10**5, COLUMNS),
        ("m1," + "1" * 10**6 + ", 24GB", NO_COUNT),
        ("x" * (2**20 + 1), "line longer than 1 MiB"),
        (",".join(["1"] * 10**6), "line longer than 1 MiB"),
    ],
)
def test_bad_rows_are_rejected(bad: str, reason: str) -> None:
    sink = loaded(f"{HEADER}\nm0,8, 24GB\n{bad}\nm9,8, 24GB")
    assert sink.rejects == [(3, reason, bad.encode()[:500])]
    assert [name for name, _, _ in machines(sink)] == ["m0", "m9"]


def test_invalid_utf8_is_rejected() -> None:
    sink = loaded(HEADER.encode() + b"\nm\xff,8, 24GB\nm2,8, 24GB\n")
    assert sink.rejects == [(2, "not valid UTF-8", b"m\xff,8, 24GB")]


@pytest.mark.parametrize(
    "text", ["", "\n", "m1,8, 24GB\n", "machineId,number of GPUs\n", "\x00" * 100, "x" * 3_000_000]
)
def test_another_header_is_an_input_error(text: str) -> None:
    with pytest.raises(InputError, match="line 1 is not the header of a node list"):
        loaded(text)


def test_a_list_of_machines_that_are_labelled_already_is_rejected(store: Store) -> None:
    text = f"{HEADER}\nm1,8, 24GB\n"
    assert load(FORMAT, text, store).rejects == []
    again = load(FORMAT, text, store)
    assert (again.rows_already_stored, again.rejects) == (1, [])
    assert load(FORMAT, text.replace("8", "2"), store).reasons == [DUPLICATE]
    assert load(FORMAT, text, store, cluster="other").rejects == []
    assert store.execute("SELECT cluster, gpus FROM machines ORDER BY 1").fetchall() == [("other", 8), ("philly", 8)]


@pytest.mark.parametrize(
    ("head", "known"),
    [
        (HEADER.encode() + b"\nm1,8, 24GB", True),
        (b"\xef\xbb\xbfmachineId,number of GPUs,single GPU mem\r\n", True),
        (HEADER.encode(), True),
        (b"machineId,gpu0_util", False),
        (b"time,machineId,gpu0_util\n", False),
        (b"", False),
        (b"\x00\xff" * 30000, False),
        (b"," * 65536, False),
    ],
)
def test_sniff(head: bytes, known: bool) -> None:
    assert (FORMAT.sniff("anything", head) is not None) == known
