"""What a format is and what it writes to: rows of the trace store, rejects, the ledger."""
