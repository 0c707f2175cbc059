from __future__ import annotations

import contextlib
import io
import struct
import zlib
from pathlib import Path

import pytest
import zstandard
from hypothesis import given
from hypothesis import strategies as st

from gpuctl.core.errors import InputError
from gpuctl.ingest.joboutput import tfile
from gpuctl.ingest.read.codecs import DamageError, Limits

FIXTURES = Path(__file__).parents[3] / "fixtures" / "joboutput"
C1 = "container_1528800000000_0001_01_000001"
C2 = "container_1528800000000_0001_01_000002"


def number(value: int) -> bytes:
    """As Hadoop's Utils.writeVLong writes it."""
    if -32 <= value < 128:
        return struct.pack(">b", value)
    for more, low, offset in ((1, 20, 52), (2, 16, 88), (3, 8, 112)):
        if -low << (8 * more) <= value < low << (8 * more):
            return struct.pack(">b", (value >> (8 * more)) - offset) + (value & (1 << 8 * more) - 1).to_bytes(
                more, "big"
            )
    size = max(4, (value if value >= 0 else ~value).bit_length() // 8 + 1)
    return struct.pack(">b", size - 129) + value.to_bytes(size, "big", signed=True)


def text(value: str) -> bytes:
    data = value.encode()
    return number(len(data)) + data


def java(value: str) -> bytes:
    data = value.encode()
    return struct.pack(">H", len(data)) + data


def chunks(value: bytes, size: int) -> bytes:
    parts = [value[at : at + size] for at in range(0, len(value), size)] or [b""]
    return b"".join(number(-len(p)) + p for p in parts[:-1]) + number(len(parts[-1])) + parts[-1]


def packed(data: bytes, how: str) -> bytes:
    if how == "zstd":
        return zstandard.compress(data)
    return zlib.compress(data) if how == "gz" else data


def write(blocks: list[dict[str, dict[str, bytes]]], how: str = "gz", chunk: int = 1 << 20) -> bytes:
    """A file as YARN writes it, with the logs of containers in each block."""
    file = tfile.MAGIC
    regions = []
    for place, block in enumerate(blocks):
        records = [("VERSION", struct.pack(">i", 1)), ("APPLICATION_OWNER", java("alice"))] if not place else []
        for container, logs in block.items():
            records.append((container, b"".join(java(n) + java(str(len(c))) + c for n, c in logs.items())))
        raw = b"".join(number(len(java(k))) + java(k) + chunks(v, chunk) for k, v in records)
        data = packed(raw, how)
        regions.append((len(file), len(data), len(raw)))
        file += data
    raw = text(how) + number(len(regions)) + b"".join(number(n) for region in regions for n in region)
    data = packed(raw, how)
    entry = text("data:BCFile.index") + text(how) + number(len(file)) + number(len(data)) + number(len(raw))
    file += data
    index = number(1) + entry
    return file + index + struct.pack(">qHH", len(file), 1, 0) + tfile.MAGIC


def read(data: bytes, limits: Limits | None = None) -> list[tuple[str, str, bytes]]:
    return [(s.container, s.name, s.stream.read()) for s in tfile.sections(io.BytesIO(data), "f", limits)]


LOGS = [
    {C1: {"stderr": b"Traceback\n", "stdout": b""}},
    {C2: {"stderr": b"x" * 700_000, "syslog": b"\xff\0\n"}},
]
EXPECTED = [(c, n, content) for block in LOGS for c, logs in block.items() for n, content in logs.items()]


@pytest.mark.parametrize("how", ["none", "gz", "zstd"])
@pytest.mark.parametrize("chunk", [1 << 20, 1000, 7])
def test_reads_the_logs_of_all_containers(how: str, chunk: int) -> None:
    assert read(write(LOGS, how, chunk)) == EXPECTED


def test_unread_logs_are_passed_over() -> None:
    assert [s.name for s in tfile.sections(io.BytesIO(write(LOGS)), "f")] == ["stderr", "stdout", "stderr", "syslog"]


@pytest.mark.parametrize("name", ["2.10.2-gz", "3.5.0-gz", "3.5.0-none"])
def test_reads_what_a_real_hadoop_wrote(name: str) -> None:
    found = {}
    for file in sorted((FIXTURES / name / "aggregated").rglob("node*")):
        for container, log, content in read(file.read_bytes()):
            found[container, log] = content
    local = FIXTURES / name / "local"
    expected = {(f.parent.name, f.name): f.read_bytes() for f in local.rglob("*") if f.is_file()}
    assert found == expected
    assert len({container for container, _ in found}) == 2


@given(st.integers(-(2**63), 2**63 - 1))
def test_numbers_of_any_length(value: int) -> None:
    block = tfile._Block(io.BytesIO(number(value)), tfile._Region(0, 9), "none", "f", Limits())
    assert tfile._number(block) == value


def test_lzo_is_named_and_what_to_run_instead() -> None:
    with pytest.raises(InputError, match="LZO") as error:
        read(write(LOGS, "lzo"))
    assert "yarn logs -applicationId" in str(error.value.hint)


def test_a_file_that_is_cut_off_is_refused() -> None:
    data = write(LOGS)
    for cut in (0, 10, 16, 40, len(data) // 2, len(data) - 1):
        with pytest.raises(InputError, match="damaged aggregated logs"):
            read(data[:cut])


@pytest.mark.parametrize("how", ["gz", "zstd"])
def test_a_bomb_is_refused(how: str) -> None:
    data = write([{C1: {"stderr": bytes(5_000_000)}}], how)
    with pytest.raises(InputError, match="decompress to more than"):
        read(data, Limits(ratio=10, floor=1_000_000))


@given(st.integers(0, 2**30), st.integers(1, 255))
def test_damage_anywhere_is_an_error_for_users_or_none(at: int, flip: int) -> None:
    data = bytearray(write([{C1: {"stderr": b"abc\n" * 9}}], "none"))
    data[at % len(data)] ^= flip
    with contextlib.suppress(InputError, DamageError):
        read(bytes(data))
