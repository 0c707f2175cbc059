from __future__ import annotations

import os
from typing import TYPE_CHECKING

import hyperscan
import pytest

from gpuctl.joblogs import pattern_database

if TYPE_CHECKING:
    from pathlib import Path

PATTERNS, FLAGS = [b"boom", b"bang\\d"], [hyperscan.HS_FLAG_MULTILINE] * 2


def found(database: hyperscan.Database, text: bytes) -> list[int]:
    numbers: list[int] = []
    database.scan(text, lambda number, *_: numbers.append(number))
    return numbers


@pytest.fixture
def cache(tmp_path: Path, monkeypatch: pytest.MonkeyPatch) -> Path:
    monkeypatch.setenv("XDG_CACHE_HOME", str(tmp_path))
    return tmp_path / "gpuctl"


@pytest.fixture
def compilations(monkeypatch: pytest.MonkeyPatch) -> list[int]:
    real, times = hyperscan.Database, []

    class Counted:
        def __new__(cls, *args: object, **options: object) -> hyperscan.Database:
            times.append(1)
            return real(*args, **options)

    monkeypatch.setattr(pattern_database.hyperscan, "Database", Counted)
    return times


def test_compiled_code_is_loaded_next_time(cache: Path, compilations: list[int]) -> None:
    for _ in range(3):
        assert found(pattern_database.database(PATTERNS, FLAGS), b"a boom, a bang7") == [0, 1]
    assert len(compilations) == 1
    (path,) = cache.iterdir()
    assert path.stat().st_mode & 0o077 == 0


def test_other_patterns_or_flags_are_another_database(cache: Path) -> None:
    pattern_database.database(PATTERNS, FLAGS)
    assert found(pattern_database.database([b"boom", b"other"], FLAGS), b"bang7 other") == [1]
    caseless = [hyperscan.HS_FLAG_MULTILINE | hyperscan.HS_FLAG_CASELESS] * 2
    assert found(pattern_database.database(PATTERNS, caseless), b"BANG7") == [1]
    assert len(list(cache.iterdir())) == 3


@pytest.mark.parametrize("damage", ["cut", "changed", "empty", "writable", "link"])
def test_an_untrusted_file_is_not_loaded(cache: Path, compilations: list[int], damage: str) -> None:
    pattern_database.database(PATTERNS, FLAGS)
    (path,) = cache.iterdir()
    data = path.read_bytes()
    if damage == "cut":
        path.write_bytes(data[: len(data) // 2])
    elif damage == "changed":
        path.write_bytes(data[:-1] + bytes([data[-1] ^ 1]))
    elif damage == "empty":
        path.write_bytes(b"")
    elif damage == "writable":
        path.chmod(0o666)
    else:
        path.rename(cache / "elsewhere")
        path.symlink_to(cache / "elsewhere")
    assert found(pattern_database.database(PATTERNS, FLAGS), b"a boom") == [0]
    assert len(compilations) == 2


def test_without_a_place_to_keep_it_it_works_all_the_same(tmp_path: Path, monkeypatch: pytest.MonkeyPatch) -> None:
    (tmp_path / "file").write_text("")
    monkeypatch.setenv("XDG_CACHE_HOME", str(tmp_path / "file"))
    assert found(pattern_database.database(PATTERNS, FLAGS), b"a boom") == [0]


def test_the_number_of_cached_databases_is_limited(cache: Path) -> None:
    first = None
    for number in range(pattern_database.MOST_DATABASES + 3):
        pattern_database.database(PATTERNS, FLAGS)
        for place in cache.iterdir():
            at = place.stat().st_mtime_ns - 10**9
            os.utime(place, ns=(at, at))
        first = first or place
        pattern_database.database([f"pattern{number}".encode()], FLAGS[:1])
    assert len(list(cache.iterdir())) == pattern_database.MOST_DATABASES
    assert first in cache.iterdir(), "it was used all the time"
