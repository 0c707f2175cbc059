"""Where a store lies: paths that are not UTF-8, and a disk that is full."""

from __future__ import annotations

import os
import resource
import subprocess
import sys
from pathlib import Path

import pytest

from gpuctl.core.errors import StoreError
from gpuctl.store.database import Store

FILL = """
import resource, signal, sys
from pathlib import Path
from gpuctl.core.errors import StoreError
from gpuctl.store.database import Store

signal.signal(signal.SIGXFSZ, signal.SIG_IGN)
resource.setrlimit(resource.RLIMIT_FSIZE, (int(sys.argv[2]), resource.RLIM_INFINITY))
try:
    with Store(Path(sys.argv[1]), write=True) as store:
        store.execute("SET TimeZone = 'UTC'")
        store.execute("BEGIN")
        store.execute("INSERT INTO rejects SELECT 1, i, 'r', md5(i::VARCHAR) FROM range(10000) AS t(i)")
        store.execute("COMMIT")
except StoreError as error:
    print(error.message)
    sys.exit(4)
"""


def test_a_path_that_is_not_utf_8_is_refused(tmp_path: Path) -> None:
    path = Path(os.fsdecode(os.fsencode(tmp_path) + b"/b\xffd.duckdb"))
    with pytest.raises(StoreError, match="must be UTF-8"):
        Store(path, write=True)
    with pytest.raises(StoreError, match="must be UTF-8"):
        Store(tmp_path / "s.duckdb", write=True, temp_dir=path)


@pytest.mark.skipif(not hasattr(resource, "RLIMIT_FSIZE"), reason="no limit of file sizes here")
def test_a_disk_that_fills_up_is_an_error_and_leaves_all_rows_or_none(tmp_path: Path) -> None:
    ends = set()
    for kilobytes in (560, 700, 800, 900, 1000, 3000):
        db = tmp_path / f"{kilobytes}.duckdb"
        done = subprocess.run(
            [sys.executable, "-c", FILL, str(db), str(kilobytes << 10)], capture_output=True, text=True, check=False
        )
        assert done.returncode in {0, 4}, done.stderr
        left_over = db.with_name(f"{db.name}.wal").exists()
        assert done.returncode == 4 or not left_over
        if done.returncode:
            assert "its disk is full" in done.stdout or "the rest is in" in done.stdout, done.stdout
        with Store(db) as store:
            ends.add((done.returncode, "the rest is in" in done.stdout, store.value("SELECT count(*) FROM rejects")))
    assert ends <= {(0, False, 10_000), (4, True, 10_000), (4, False, 0)}
    assert (0, False, 10_000) in ends
    assert (4, True, 10_000) in ends
