"""Public traces that can be fetched by name: address, licence, and the SHA-256 where it is known."""

from __future__ import annotations

from dataclasses import dataclass

from lbopt.exceptions import InputError
from lbopt.instances.names import did_you_mean

_AZURE_2023 = "https://raw.githubusercontent.com/Azure/AzurePublicDataset/master/data"
_AZURE_2024 = "https://azurepublicdatasettraces.blob.core.windows.net/azurellminfererencetrace"
_BURSTGPT = "https://github.com/HPMLL/BurstGPT/releases/download/v1.2"


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
        Of `lbopt.instances.readers.READERS`.
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
            about="Azure 2023, coding, 1 hour",
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
