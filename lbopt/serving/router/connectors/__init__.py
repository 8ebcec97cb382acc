"""Connectors: how a prefill engine hands a KV cache over to a decode engine. One file each, and a line in `table`."""

from lbopt.serving.router.connectors.table import CONNECTORS, Connector, make_connector

__all__ = ["CONNECTORS", "Connector", "make_connector"]
