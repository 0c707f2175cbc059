"""Finds the logs of jobs' own output, whichever way a site keeps them, and brings what is in them into the store."""
