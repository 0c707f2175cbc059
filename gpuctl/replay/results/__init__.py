"""Results of a replay: figures, comparisons, levels over time, result tables, and a trace store of it."""
