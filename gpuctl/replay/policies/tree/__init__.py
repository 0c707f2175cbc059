"""Rules over what a scheduler knows of jobs, read from a file."""
