"""Policies that divide what a cluster has among its tenants."""
