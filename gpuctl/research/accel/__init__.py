"""Layers of many tenants' neural networks on accelerators of several kinds that share one memory's bandwidth."""
