"""Public traces that can be fetched by name: address, licence, and the SHA-256 where it is known."""

from __future__ import annotations

from dataclasses import dataclass

from lbopt.exceptions import InputError
from lbopt.spec import did_you_mean

_AZURE_2023 = "https://raw.githubusercontent.com/Azure/AzurePublicDataset/master/data"
_AZURE_2024 = "https://azurepublicdatasettraces.blob.core.windows.net/azurellminfererencetrace"
_BURSTGPT = "https://github.com/HPMLL/BurstGPT/releases/download/v1.2"
_MOONCAKE = "https://raw.githubusercontent.com/kvcache-ai/Mooncake/3b5a594133958449a1feaf1c9e0fc1b553e34a28"
_BF_IO = "https://raw.githubusercontent.com/Echoscd/Load-Balancing-Release/6ae705d5c18e475a1f0a7ed6697c722b76a07d98"


@dataclass(frozen=True, slots=True, kw_only=True)
class PublicTrace:
    """One published file.

    Parameters
    ----------
    name
        What lbopt calls it.
    base_url, file
        Its address is base_url/file; a mirror replaces base_url and keeps the file's name.
    format
        Of `lbopt.instances.readers.formats.TABLE`.
    licence, about
        For people.
    sha256
        Of the file; None where lbopt does not know it, and the first download is trusted and remembered.
    """

    name: str
    base_url: str
    file: str
    format: str
    licence: str
    about: str
    sha256: str | None = None


CATALOGUE = {
    entry.name: entry
    for entry in (
        PublicTrace(
            name="azure-2023-conv",
            base_url=_AZURE_2023,
            file="AzureLLMInferenceTrace_conv.csv",
            format="azure",
            licence="CC BY",
            about="Azure 2023, conversation, 1 hour, 19,366 requests",
            sha256="2f1e5b666d4e3055fdbba98598ce2ec307767b9064e03e2fa46676dbcc7d0bf8",
        ),
        PublicTrace(
            name="azure-2023-code",
            base_url=_AZURE_2023,
            file="AzureLLMInferenceTrace_code.csv",
            format="azure",
            licence="CC BY",
            about="Azure 2023, coding, 1 hour, 8,819 requests",
            sha256="54e9a6d2a4bd06ba1e060304b900abbc74cbea53de96506e60fe5bb4f2277fb6",
        ),
        PublicTrace(
            name="azure-2024-conv",
            base_url=_AZURE_2024,
            file="AzureLLMInferenceTrace_conv_1week.csv",
            format="azure",
            licence="CC BY",
            about="Azure 2024, conversation, 1 week (about 1 GB)",  # size unverified
        ),
        PublicTrace(
            name="azure-2024-code",
            base_url=_AZURE_2024,
            file="AzureLLMInferenceTrace_code_1week.csv",
            format="azure",
            licence="CC BY",
            about="Azure 2024, coding, 1 week (about 1 GB)",  # size unverified
        ),
        PublicTrace(
            name="mooncake-conversation",
            base_url=f"{_MOONCAKE}/FAST25-release/traces",
            file="conversation_trace.jsonl",
            format="mooncake",
            licence="Apache 2.0",
            about="Mooncake, conversation, 1 hour, 12,031 requests",
            sha256="b8cbb061a85206d729d91cdc2981f43c9e0d99209dce588d3af5f7934408b9df",
        ),
        PublicTrace(
            name="burstgpt-8000",
            base_url=_BF_IO,
            file="burst_data_8000.json",
            format="lengths",
            licence="CC BY 4.0 (BurstGPT)",
            about="lengths of 8,000 BurstGPT requests, the sample of the BF-IO authors",
            sha256="f030a60ce35565661e0669484037f823af68a48fcf51e9ef043c9223e4580361",
        ),
        PublicTrace(
            name="arxiv-8000",
            base_url=_BF_IO,
            file="arxiv_data_8000.json",
            format="lengths",
            licence="see ccdv/arxiv-summarization",
            about="lengths of 8,000 summaries of arXiv papers, the sample of the BF-IO authors",
            sha256="6c45abface3b26619953fd91c981ec93d861ac9910fccf3816103df3901f285f",
        ),
        # Unverified: that release v1.2 carries assets of these names. They are the names of the files in the data/
        # folder of the repository, and of the assets of releases v1.1 and v2.0 (there with "without_fails").
        PublicTrace(
            name="burstgpt-1",
            base_url=_BURSTGPT,
            file="BurstGPT_1.csv",
            format="burstgpt",
            licence="CC BY 4.0",
            about="BurstGPT, first part, about 1.4 million requests",
        ),
        PublicTrace(
            name="burstgpt-2",
            base_url=_BURSTGPT,
            file="BurstGPT_2.csv",
            format="burstgpt",
            licence="CC BY 4.0",
            about="BurstGPT, second part, about 3.9 million requests",
        ),
    )
}


def public_trace(name: str) -> PublicTrace:
    """Return the catalogue's entry of that name."""
    if name not in CATALOGUE:
        raise InputError(f"no public trace {name!r}; known are {', '.join(CATALOGUE)}{did_you_mean(name, CATALOGUE)}")
    return CATALOGUE[name]
