"""The MCP server of a slot: initialize, ping and tools. It knows nothing of connections and threads."""

from __future__ import annotations

import dataclasses
import json
import logging
import math
import threading
from typing import Any, Callable, Mapping, Optional, Union

log = logging.getLogger("mcp_provider")

LATEST_REVISION = "2025-11-25"

PARSE_ERROR = -32700
INVALID_REQUEST = -32600
METHOD_NOT_FOUND = -32601
INVALID_PARAMS = -32602
BUSY = -32000

#: A tool gets the arguments of the call as a dict. It returns text, a list of content blocks, a dict with "content"
#: (the whole result), another JSON value (structured content when it is a dict), or None.
ToolFunction = Callable[[dict], Any]

Message = dict[str, Any]


@dataclasses.dataclass(frozen=True)
class Tool:
    name: str
    description: str
    schema: Mapping[str, Any]
    function: ToolFunction


@dataclasses.dataclass(frozen=True)
class Call:
    """A tools/call to be run, where and when the caller likes. run never raises and returns the answer."""

    ident: Any
    tool: Tool
    arguments: dict

    def run(self) -> bytes:
        try:
            return encode(result(self.ident, tool_result(self.tool.function(self.arguments))))
        except BaseException as err:  # whatever a tool does, its caller gets an answer
            log.warning("tool %s failed", self.tool.name, exc_info=True)
            return encode(result(self.ident, failure(err)))


def encode(message: Message) -> bytes:
    """ASCII, so that it is UTF-8 whatever strings hold. NaN is not JSON and refused."""
    return json.dumps(message, allow_nan=False, separators=(",", ":")).encode("ascii")


def result(ident: Any, value: Any) -> Message:
    return {"jsonrpc": "2.0", "id": ident, "result": value}


def error(ident: Any, code: int, message: str) -> Message:
    return {"jsonrpc": "2.0", "id": ident, "error": {"code": code, "message": message}}


def notification(method: str, params: Optional[Mapping[str, Any]]) -> Message:
    message: Message = {"jsonrpc": "2.0", "method": method}
    if params is not None:
        message["params"] = dict(params)
    return message


def text_block(text: str) -> Message:
    return {"type": "text", "text": text}


def tool_result(value: Any) -> Message:
    if value is None:
        return {"content": []}
    if isinstance(value, str):
        return {"content": [text_block(value)]}
    if isinstance(value, list) and all(isinstance(block, dict) and "type" in block for block in value):
        return {"content": value}
    if isinstance(value, dict) and "content" in value:
        return value
    shown: Message = {"content": [text_block(json.dumps(value, allow_nan=False, ensure_ascii=False))]}
    if isinstance(value, dict):
        shown["structuredContent"] = value
    return shown


def failure(err: BaseException) -> Message:
    try:
        words = f"{type(err).__name__}: {err}"
    except Exception:  # an exception that cannot say what it is
        words = type(err).__name__
    return {"content": [text_block(words)], "isError": True}


def _ident(message: Message) -> Union[None, str, int, float]:
    """The id of a message, None if it has none that JSON-RPC knows: Python's parser takes NaN and Infinity too."""
    ident = message.get("id")
    if isinstance(ident, float):
        return ident if math.isfinite(ident) else None
    return ident if isinstance(ident, (str, int)) and not isinstance(ident, bool) else None


class ToolServer:
    """The tools of one slot. Tools may be added by any thread."""

    def __init__(self, name: str, version: str) -> None:
        self._name, self._version = name, version
        self._lock = threading.Lock()
        self._tools: dict[str, Tool] = {}

    def add(self, tool: Tool) -> None:
        if not tool.name:
            raise ValueError("a tool needs a name")
        json.dumps(dict(tool.schema), allow_nan=False)  # now, and not when somebody asks for the list
        with self._lock:
            if tool.name in self._tools:
                raise ValueError(f"there is a tool {tool.name!r} already")
            self._tools[tool.name] = tool

    def handle(self, raw: bytes) -> Union[None, bytes, Call]:
        """An answer, a call that has to be run for one, or None: no answer."""
        try:
            message = json.loads(raw.decode("utf-8"))
        except (ValueError, RecursionError):
            return encode(error(None, PARSE_ERROR, "Parse error"))
        if not isinstance(message, dict):
            return encode(error(None, INVALID_REQUEST, "Invalid request: not an object"))
        method, ident = message.get("method"), _ident(message)
        if not isinstance(method, str):
            answer = "result" in message or "error" in message
            return None if answer else encode(error(ident, INVALID_REQUEST, "Invalid request: no method"))
        if "id" not in message:
            return None
        if ident is None:
            return encode(error(None, INVALID_REQUEST, "Invalid request: the id is neither a string nor a number"))
        answer_or_call = self._request(ident, method, message.get("params"))
        return answer_or_call if isinstance(answer_or_call, Call) else encode(answer_or_call)

    def _request(self, ident: Any, method: str, params: Any) -> Union[Message, Call]:
        params = params if isinstance(params, dict) else {}
        if method == "initialize":
            return result(ident, self._initialize(params))
        if method == "ping":
            return result(ident, {})
        if method == "tools/list":
            return result(ident, {"tools": self._list()})
        if method == "tools/call":
            return self._call(ident, params)
        return error(ident, METHOD_NOT_FOUND, "Method not found")

    def _initialize(self, params: Message) -> Message:
        asked = params.get("protocolVersion")
        return {
            "protocolVersion": asked if isinstance(asked, str) else LATEST_REVISION,
            "capabilities": {"tools": {"listChanged": True}},
            "serverInfo": {"name": self._name, "version": self._version},
        }

    def _list(self) -> list[Message]:
        with self._lock:
            tools = list(self._tools.values())
        return [{"name": t.name, "description": t.description, "inputSchema": dict(t.schema)} for t in tools]

    def _call(self, ident: Any, params: Message) -> Union[Message, Call]:
        name, arguments = params.get("name"), params.get("arguments", {})
        if not isinstance(name, str):
            return error(ident, INVALID_PARAMS, "tools/call needs the name of a tool")
        if not isinstance(arguments, dict):
            return error(ident, INVALID_PARAMS, "the arguments of a tool are an object")
        with self._lock:
            tool = self._tools.get(name)
        if tool is None:
            return error(ident, INVALID_PARAMS, "Unknown tool: " + name)
        return Call(ident, tool, arguments)
