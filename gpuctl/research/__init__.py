"""Studies beyond what a log answers: accelerators, DAGs, deferrable work, chains of jobs, learned policies."""
