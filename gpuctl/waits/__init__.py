"""How long jobs wait: learned from a log as it was known at each submission, and forecast for jobs that wait now."""
