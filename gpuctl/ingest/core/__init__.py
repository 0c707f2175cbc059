"""The interface of formats: rows of the trace store, rejects, the ledger."""
