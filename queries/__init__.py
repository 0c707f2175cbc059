"""The SQL of every analysis, one file per result table, with a header that documents it."""
