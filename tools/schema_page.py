"""Writes the tables that gpuctl query reads, as gpuctl/store/views.py has them, into docs/reference/schema.md.

python tools/schema_page.py          write it
python tools/schema_page.py --check  exit 1 where the document says something else
"""

from __future__ import annotations

import sys
from pathlib import Path

from gpuctl.store.views import VIEWS

DOCUMENT = Path(__file__).resolve().parents[1] / "docs" / "reference" / "schema.md"
HEAD = """# SQL over a trace store

`gpuctl ingest` makes a store, one DuckDB file. `gpuctl query` runs one SELECT over it, in
[DuckDB's SQL](https://duckdb.org/docs/), without access to files or the network. `gpuctl tables` lists them.

```sh
gpuctl ingest sample_data/failures --db site.duckdb
gpuctl query site.duckdb 'SELECT "user", sum(gpu_hours) FROM held JOIN jobs USING (cluster, job) GROUP BY "user"'
gpuctl query site.duckdb "SELECT state, count(*) AS jobs FROM jobs GROUP BY state ORDER BY jobs DESC" --json
gpuctl query site.duckdb "SELECT * FROM attempts" --format parquet --output attempts.parquet
gpuctl tables jobs
```

These tables and columns keep their names and meaning between versions; new ones may be added. Everything else in the
file is internal and may change. Times are UTC. NULL means that no source states the value. Intervals are in seconds.

"""


def page() -> str:
    """Return the document."""
    parts = []
    for view in VIEWS:
        rows = "\n".join(f"| `{field.name}` | {field.kind} | {field.text} |" for field in view.fields)
        head = "| column | type | what it is |\n|---|---|---|"
        parts.append(f"## {view.name}\n\nOne row is {view.text}.\n\n{head}\n{rows}\n")
    return HEAD + "\n".join(parts)


def main() -> None:
    """Write the document, or check it."""
    if "--check" not in sys.argv[1:]:
        DOCUMENT.write_text(page(), "utf-8")
    elif DOCUMENT.read_text("utf-8") != page():
        sys.exit(f"{DOCUMENT}: not what gpuctl/store/views.py says; run: make docs")


if __name__ == "__main__":
    main()
