"""Commands of the studies in `gpuctl.research`, each imported when it is called."""
