"""The scheduler of Mirage's authors' simulator (SC'23): whole minutes, one pool of nodes, Slurm's two passes."""
