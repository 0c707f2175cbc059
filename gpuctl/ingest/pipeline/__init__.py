"""From the paths that a user names to rows of the trace store: which format a file is of, and its loading."""
