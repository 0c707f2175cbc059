"""What a Slurm site has beside accounting: configuration, topology, limits, events, samples, the controller's log."""
