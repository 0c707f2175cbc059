"""Many replays that vary load, nodes, parameters and seeds, and their figures over the seeds."""
