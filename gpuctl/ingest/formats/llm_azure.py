"""Requests to LLM services of Azure, 2023 and 2024 (``AzureLLMInferenceTrace_*.csv``): when, and tokens in and out.

Stamps have fractions of 100 ns, of which microseconds are kept. Those of 2023 name no zone and are taken for UTC.
Azure's multimodal trace of 2025 has the number of images, too.
"""

from __future__ import annotations

from gpuctl.ingest.core.format import Format
from gpuctl.ingest.traces.requests import RequestTable
from gpuctl.ingest.traces.table import Column

TABLE = RequestTable(
    what="requests to Azure's LLM services",
    columns={
        "TIMESTAMP": Column("ts", "time", needed=True),
        "ContextTokens": Column("prompt_tokens", "whole", needed=True),
        "GeneratedTokens": Column("output_tokens", "whole", needed=True),
    },
    optional={"NumImages": Column("images", "whole")},
)

FORMAT = Format(
    name="llm-azure",
    title="Azure: requests to LLM services (TIMESTAMP, ContextTokens, GeneratedTokens)",
    fills=("service_load",),
    file_names=("AzureLLMInferenceTrace_code.csv", "AzureLLMInferenceTrace_conv.csv"),
    order=30,
    sniff=TABLE.sniff,
    load=TABLE.load,
)
