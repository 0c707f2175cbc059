"""The lessons by name, in order, with their headings; loads nothing else, for the command line."""

LESSONS = {
    "locality": "Wait for locality or start now",
    "sharing": "Dedicated nodes and migration",
    "failures": "Catch failures early",
    "converged": "Stop when converged",
}
