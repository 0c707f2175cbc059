"""Results that a store keeps: what goes in comes out, by name; what is damaged is told."""

from __future__ import annotations

from dataclasses import replace
from datetime import UTC, datetime
from typing import TYPE_CHECKING

import pytest
import zstandard

from gpuctl.core.errors import InputError, UsageError
from gpuctl.store.database import Store
from gpuctl.store.saved_results import SavedResult, keep, listed, read

if TYPE_CHECKING:
    from pathlib import Path

WHEN = datetime(2026, 11, 22, 20, 0, 1, 123456, tzinfo=UTC)
HOSTILE = "'; DROP TABLE results; -- </script>\N{RIGHT-TO-LEFT OVERRIDE}"


def bomb() -> bytes:
    """A small document that is a gigabyte, made without one."""
    packer, piece = zstandard.ZstdCompressor(level=1).compressobj(), bytes(1 << 20)
    return b"".join(packer.compress(piece) for _ in range(1 << 10)) + packer.flush()


def saved_result(name: str, size: int = 0) -> SavedResult:
    return SavedResult(name, "replay", WHEN, "0.1.0", f"gpuctl replay --keep {name}", size)


def test_a_saved_result_is_read_back_and_replaced_by_name(tmp_path: Path) -> None:
    with Store(tmp_path / "s.duckdb", write=True) as store:
        keep(store, saved_result("b"), b'{"first": 1}')
        keep(store, saved_result(HOSTILE), b"{}")
        keep(store, saved_result("b"), b'{"second": 22}')
    with Store(tmp_path / "s.duckdb") as store:
        assert listed(store) == [replace(saved_result(HOSTILE), bytes=2), replace(saved_result("b"), bytes=14)]
        assert read(store, "b") == b'{"second": 22}'
        assert read(store, HOSTILE) == b"{}"
        with pytest.raises(UsageError, match="has no result 'c'") as error:
            read(store, "c")
    assert error.value.hint == f"it has: {HOSTILE}, b"


@pytest.mark.parametrize(
    ("size", "document", "message"),
    [
        (14, zstandard.compress(b"x" * 15), "it has more bytes, expected 14"),
        (14, None, "it has more bytes, expected 14"),
        (14, zstandard.compress(b"x" * 13), "it has 13 bytes, expected 14"),
        (14, zstandard.compress(b"x" * 14)[:-4], "it has 0 bytes, expected 14|damaged"),
        (14, b"{}", "is damaged"),
        (-1, zstandard.compress(b"x"), "declares -1 bytes"),
        (1 << 40, zstandard.compress(b"x"), "declares 1,099,511,627,776 bytes"),
    ],
)
def test_a_damaged_document_is_reported_and_none_exceeds_its_declared_size(
    size: int, document: bytes | None, message: str, tmp_path: Path
) -> None:
    with Store(tmp_path / "s.duckdb", write=True) as store:
        keep(store, saved_result("a"), b"{}")
        store.execute("UPDATE results SET bytes = ?, document = ?", [size, bomb() if document is None else document])
        with pytest.raises(InputError, match=message):
            read(store, "a")
