"""How long jobs wait: learnt from a log as it was seen at each submission, and forecast for jobs that wait now."""
