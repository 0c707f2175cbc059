"""Rules over jobs' known features, read from a file."""
