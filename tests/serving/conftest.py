"""The terminal of the tests of the command line."""

from cli.conftest import here, type_in

__all__ = ["here", "type_in"]
