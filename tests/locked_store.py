"""A store that another process has open for writing."""

from __future__ import annotations

import subprocess
import sys
from contextlib import contextmanager
from typing import TYPE_CHECKING

if TYPE_CHECKING:
    from collections.abc import Iterator
    from pathlib import Path

_HOLD = (
    "import sys; from pathlib import Path; from gpuctl.store.database import Store\n"
    "with Store(Path(sys.argv[1]), write=True):\n    print('open', flush=True); sys.stdin.read()"
)


@contextmanager
def held_open(db: Path, root: Path) -> Iterator[int]:
    """Have a store open in a process of its own; gives its number."""
    with subprocess.Popen(
        [sys.executable, "-c", _HOLD, str(db)],
        env={"PYTHONPATH": str(root), "PATH": "/usr/bin:/bin"},
        stdin=subprocess.PIPE,
        stdout=subprocess.PIPE,
        text=True,
    ) as process:
        assert process.stdout is not None
        assert process.stdout.readline() == "open\n"
        yield process.pid
        process.communicate("")
