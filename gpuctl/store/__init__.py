"""The trace store: schema, migrations, ledger, and the one place where DuckDB and Polars meet."""
