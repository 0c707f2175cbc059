"""Layers of many tenants' neural networks on accelerators of several kinds that share the bandwidth of one memory."""
