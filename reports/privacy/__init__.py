"""Takes names out of results."""
