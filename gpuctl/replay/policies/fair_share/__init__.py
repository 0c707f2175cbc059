"""Policies that divide a cluster among its tenants."""
