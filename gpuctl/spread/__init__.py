"""Many independent calls of one function, on processors of this machine, on workers of Dask, or in jobs of Slurm."""
