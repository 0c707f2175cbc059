"""Jobs of stages on executors that take time to move: rules, a search that looks ahead, trees distilled from it."""
