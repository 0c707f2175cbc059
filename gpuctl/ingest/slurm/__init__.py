"""What all readers of Slurm's own accounts share: host lists, times, TRES, states, and the road into the store."""
