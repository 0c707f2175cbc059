"""The SQL of every analysis, one file a result table; the first lines of each say what it answers."""
