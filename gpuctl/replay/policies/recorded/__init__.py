"""What the trace recorded."""
