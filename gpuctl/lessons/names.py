"""The lessons by name, in their order, with their headings; for the command line, which loads nothing more for it."""

LESSONS = {
    "locality": "Wait for locality or start now",
    "sharing": "Dedicated nodes and migration",
    "failures": "Catch failures early",
    "converged": "Stop when converged",
}
