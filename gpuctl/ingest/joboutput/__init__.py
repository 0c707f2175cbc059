"""Finds the logs of jobs' own output in any site's layout, and loads their evidence into the store."""
