"""Renders results: terminal, files, HTML. Knows results, never the store."""
