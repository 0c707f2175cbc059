"""Jobs in an order: the queue, and the compiled pass that most policies are."""
