"""Writes what the headers of queries/*.sql say into docs/analyses.md.

python tools/analysis_pages.py          write it
python tools/analysis_pages.py --check  exit 1 where the document says something else
"""

from __future__ import annotations

import sys
from pathlib import Path

from gpuctl.analyze import query, registry

ROOT = Path(__file__).resolve().parent.parent
DOCUMENT = ROOT / "docs" / "analyses.md"
START = "<!-- Result tables, written by `make docs` from queries/*.sql: do not edit below. -->"


def tables() -> str:
    """Return the Markdown of every result table, by section."""
    lines = []
    for key, heading in registry.SECTIONS:
        lines += [f"## Section `{key}`: {heading}", ""]
        for name in (*registry.TABLES, *registry.REFERENCE_TABLES):
            asked = query.load(name)
            if asked.section == key:
                lines += list(_table(asked))
    return "\n".join(lines)


def _table(asked: query.Query) -> list[str]:
    kind = " Exported and charted, not printed unless asked for with `--table`." if asked.detail else ""
    needs = f" Needs: {asked.needs}." if asked.needs else ""
    columns = [f"| `{c.name}` | {c.unit} | {c.description.replace('|', chr(92) + '|')} |" for c in asked.columns]
    return [
        f"### `{asked.name}`: {asked.title}",
        "",
        f"{asked.question}{kind}{needs}",
        "",
        f"Population (`{{…}}` is a number of your trace): {asked.population}",
        "",
        "| column | unit | definition |",
        "|---|---|---|",
        *columns,
        "",
    ]


def main() -> None:
    """Write the document, or check it."""
    old = DOCUMENT.read_text("utf-8")
    head, found, _ = old.partition(START)
    if not found:
        sys.exit(f"{DOCUMENT}: the line {START} is not there")
    new = f"{head}{START}\n\n{tables().rstrip()}\n"
    if "--check" not in sys.argv[1:]:
        DOCUMENT.write_text(new, "utf-8")
    elif new != old:
        sys.exit(f"{DOCUMENT}: not what the headers say; run: make docs")


if __name__ == "__main__":
    main()
