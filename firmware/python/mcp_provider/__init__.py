"""Publish tools on a broker from Python.

    from mcp_provider import Provider

    provider = Provider("ws://127.0.0.1:3000", "greeter", aggregate=True)

    @provider.tool("greet", "Greets somebody.", {"type": "object", "properties": {"name": {"type": "string"}}})
    def greet(arguments):
        return "Hello, " + arguments["name"]

    with provider:
        input("Return ends. ")

The connection is the C library's, loaded by ctypes; JSON and MCP are here. Nothing but the standard
library is needed.
"""

from .native import LibraryError
from .provider import Event, Provider, ProviderError, Settings

__all__ = ["Event", "LibraryError", "Provider", "ProviderError", "Settings"]
