"""Prints the lines of each room beside its budget in CONTRIBUTING.md.

python tools/size.py            one line per room
python tools/size.py --write    put today's lines into the table, rounded up to hundreds, as the budget

Lines are those of Python, SQL, JavaScript, CSS, HTML templates and TOML, comments and blank lines included; the tables
of failure signatures in gpuctl/joblogs are data and do not count.
"""

from __future__ import annotations

import re
import sys
from pathlib import Path

ROOT = Path(__file__).resolve().parents[1]
TABLE = ROOT / "CONTRIBUTING.md"
KINDS = {".py", ".sql", ".js", ".css", ".html", ".j2", ".toml"}
_ROW = re.compile(r"^(\| `([\w/]+)/` \|.*\| )([\d,]+)( \|)$", re.MULTILINE)
"""A row of the table: the room, what it holds and may import, its budget."""


def lines(room: Path) -> int:
    """Lines of code of a room."""
    kinds = KINDS - {".toml"} if room.name == "joblogs" else KINDS
    files = [path for path in room.rglob("*") if path.suffix in kinds and path.is_file()]
    return sum(path.read_bytes().count(b"\n") for path in files)


def main() -> None:
    """Print the table, or write it."""
    text = TABLE.read_text("utf-8")
    if "--write" in sys.argv[1:]:
        TABLE.write_text(
            _ROW.sub(lambda row: f"{row[1]}{-(-lines(ROOT / row[2]) // 100) * 100:,}{row[4]}", text), "utf-8"
        )
        return
    total = budgets = 0
    print(f"{'room':<22}{'lines':>9}{'budget':>9}")
    for _, room, budget, _ in _ROW.findall(text):
        count, most = lines(ROOT / room), int(budget.replace(",", ""))
        total, budgets = total + count, budgets + most
        print(f"{room:<22}{count:>9,}{most:>9,}{'  over' if count > most else ''}")
    print(f"{'all':<22}{total:>9,}{budgets:>9,}")


if __name__ == "__main__":
    main()
