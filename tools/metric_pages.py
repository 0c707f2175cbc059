"""Writes what gpuctl.reports.metrics knows of every metric into docs/reference/metrics.md.

python tools/metric_pages.py          write it
python tools/metric_pages.py --check  exit 1 where the document says something else
"""

from __future__ import annotations

import sys
from pathlib import Path

from gpuctl.reports.metrics import METRICS, written

ROOT = Path(__file__).resolve().parent.parent
DOCUMENT = ROOT / "docs" / "reference" / "metrics.md"
START = "<!-- Metrics, written by `make docs` from reports/metrics.py: do not edit below. -->"
END = "<!-- End of the metrics. -->"


def metrics() -> str:
    """Return the Markdown table of all metrics."""
    lines = ["| metric | unit | better | result table | definition |", "|---|---|---|---|---|"]
    for one in METRICS:
        name = written(one.name, [(label, "...") for label in one.labels])
        lines.append(f"| `{name}` | {one.unit} | {one.better or '-'} | `{one.table}` | {one.text} |")
    return "\n".join(lines)


def main() -> None:
    """Write the document, or check it."""
    old = DOCUMENT.read_text("utf-8")
    head, start, rest = old.partition(START)
    _, end, tail = rest.partition(END)
    if not start or not end:
        sys.exit(f"{DOCUMENT}: the lines {START} and {END} are not there")
    new = f"{head}{START}\n\n{metrics()}\n\n{END}{tail}"
    if "--check" not in sys.argv[1:]:
        DOCUMENT.write_text(new, "utf-8")
    elif new != old:
        sys.exit(f"{DOCUMENT}: not what reports/metrics.py says; run: make docs")


if __name__ == "__main__":
    main()
