"""Jobs of stages on executors that take time to move: rules, a search by simulation, trees distilled from it."""
