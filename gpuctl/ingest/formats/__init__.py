"""One module a source format. `gpuctl.ingest.registry` finds them; nothing lists them by hand."""
