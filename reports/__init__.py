"""Renders results: terminal, files, HTML. Depends on results only, never on the store."""
