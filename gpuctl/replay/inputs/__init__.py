"""Jobs and servers to replay: read from files or a trace store, checked and changed."""
