"""A Slurm site's data other than accounting: configuration, topology, limits, events, samples, the controller's log."""
