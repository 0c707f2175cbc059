"""Jobs and nodes to replay: read from files or a trace store, checked and changed."""
