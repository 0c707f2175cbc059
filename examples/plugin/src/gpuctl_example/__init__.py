"""One of each kind that gpuctl takes from packages."""
