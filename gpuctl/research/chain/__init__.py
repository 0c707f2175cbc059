"""Chains of jobs: when to submit the successor of a long job, so that it starts when that ends (Mirage, SC'23)."""
