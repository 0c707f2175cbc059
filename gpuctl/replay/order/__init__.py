"""Orders of jobs: the queue, and the compiled pass of most policies."""
