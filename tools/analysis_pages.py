"""Writes what the headers of queries/*.sql say into docs/reference: analyses/SECTION.md, and their list, analyses.md.

python tools/analysis_pages.py          write them
python tools/analysis_pages.py --check  exit 1 where a page says something else, is missing, or is of no section
"""

from __future__ import annotations

import re
import sys
import textwrap
from pathlib import Path

from gpuctl.core.notes import in_plural
from gpuctl.queries.catalogue import Query, built_in
from gpuctl.queries.sections import SECTIONS

ROOT = Path(__file__).resolve().parent.parent
INDEX = ROOT / "docs" / "reference" / "analyses.md"
PAGES = ROOT / "docs" / "reference" / "analyses"
LIST = "<!-- List of the tables, written by `make docs` from queries/*.sql: do not edit below. -->"
START = "<!-- Result tables, written by `make docs` from queries/*.sql: do not edit below. -->"


def tables_of(section: str) -> list[Query]:
    """Return the tables of a section, in the order in which they are shown."""
    return [query for query in built_in().values() if query.section == section]


def title_of(query: Query) -> str:
    """Return the heading of a table."""
    return f"`{query.name}`: {query.title}"


def filled(paragraph: str) -> str:
    """Return a paragraph in lines of 120 characters."""
    return textwrap.fill(paragraph, 120, break_long_words=False, break_on_hyphens=False)


def described(query: Query) -> str:
    """Return the Markdown of one table."""
    kind = " Exported and charted; printed only with `--table`." if query.detail else ""
    needs = f" Needs: {query.needs}." if query.needs else ""
    columns = [f"| `{c.name}` | {c.unit} | {c.description.replace('|', chr(92) + '|')} |" for c in query.columns]
    lines = [
        f"## {title_of(query)}",
        "",
        filled(f"{query.question}{kind}{needs}"),
        "",
        filled(f"Population (`{{…}}` is a number of your trace): {in_plural(query.population)}"),
        "",
        "| column | unit | definition |",
        "|---|---|---|",
        *columns,
    ]
    return "\n".join(lines)


def anchor(heading: str) -> str:
    """Return what the address of a heading ends in."""
    return re.sub(r"[^\w\- ]", "", heading.lower()).replace(" ", "-")


def listed() -> str:
    """Return the list of all tables, by section."""
    lines = []
    for key, heading in SECTIONS:
        rows = [
            f"| [`{query.name}`](analyses/{key}.md#{anchor(title_of(query))}) | {query.question} |"
            for query in tables_of(key)
        ]
        lines += [f"## {heading}", "", f"Section `{key}`: [analyses/{key}.md](analyses/{key}.md)", ""]
        lines += ["| table | answers |", "|---|---|", *rows, ""]
    return "\n".join(lines).rstrip()


def below(path: Path, mark: str, body: str) -> str:
    """Return a document with what is below the mark written anew."""
    head, found, _ = path.read_text("utf-8").partition(mark)
    if not found:
        sys.exit(f"{path}: the line {mark} is not there")
    return f"{head}{mark}\n\n{body}\n"


def main() -> None:
    """Write the pages, or check them."""
    sections = [key for key, _ in SECTIONS]
    missing = [key for key in sections if not (PAGES / f"{key}.md").is_file()]
    more = sorted({path.stem for path in PAGES.glob("*.md")} - set(sections))
    if missing or more:
        sys.exit(f"{PAGES}: no page of sections {missing}; no section of pages {more}")
    new = {INDEX: below(INDEX, LIST, listed())}
    for key in sections:
        path = PAGES / f"{key}.md"
        new[path] = below(path, START, "\n\n".join(described(query) for query in tables_of(key)))
    for path, text in new.items():
        if "--check" not in sys.argv[1:]:
            path.write_text(text, "utf-8")
        elif text != path.read_text("utf-8"):
            sys.exit(f"{path}: not what the headers say; run: make docs")


if __name__ == "__main__":
    main()
