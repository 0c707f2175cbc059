"""One module a source format. `gpuctl.ingest.pipeline.registry` finds them; nothing lists them by hand."""
