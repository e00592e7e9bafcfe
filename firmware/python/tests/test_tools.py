"""The MCP server alone: spec 04 8 and 3.10."""

from __future__ import annotations

import json
import unittest
from typing import Any, Union

from mcp_provider import tools


def server() -> tools.ToolServer:
    s = tools.ToolServer('say "x"', "1.0")
    s.add(tools.Tool("echo", "Returns its text.", {"type": "object"}, lambda a: a["text"]))
    return s


def answer(s: tools.ToolServer, message: Union[dict, str]) -> Any:
    got = s.handle((message if isinstance(message, str) else json.dumps(message)).encode())
    if isinstance(got, tools.Call):
        got = got.run()
    return None if got is None else json.loads(got)


class Requests(unittest.TestCase):
    def test_answers(self) -> None:
        tool = {"name": "echo", "description": "Returns its text.", "inputSchema": {"type": "object"}}
        info = {"serverInfo": {"name": 'say "x"', "version": "1.0"}, "capabilities": {"tools": {"listChanged": True}}}
        cases: list[tuple[str, dict]] = [
            ('{"id":"brk-7","method":"ping"}', {"id": "brk-7", "result": {}}),
            ('{"id":12345678901234567890,"method":"ping"}', {"id": 12345678901234567890, "result": {}}),
            ('{"id":1,"method":"initialize","params":{"protocolVersion":"2025-03-26"}}',
             {"id": 1, "result": {"protocolVersion": "2025-03-26", **info}}),
            ('{"id":1,"method":"initialize"}', {"id": 1, "result": {"protocolVersion": "2025-11-25", **info}}),
            ('{"id":1,"method":"tools/list"}', {"id": 1, "result": {"tools": [tool]}}),
            ('{"params":{"arguments":{"id":"no","method":"ping","text":"\\"id\\":0"},"name":"echo"},"id":2,"method":"tools/call"}',
             {"id": 2, "result": {"content": [{"type": "text", "text": '"id":0'}]}}),
            ('{"id":4,"method":"tools/call","params":{"name":"none"}}',
             {"id": 4, "error": {"code": -32602, "message": "Unknown tool: none"}}),
            ('{"id":5,"method":"tools/call","params":{}}',
             {"id": 5, "error": {"code": -32602, "message": "tools/call needs the name of a tool"}}),
            ('{"id":6,"method":"tools/call","params":{"name":"echo","arguments":[]}}',
             {"id": 6, "error": {"code": -32602, "message": "the arguments of a tool are an object"}}),
            ('{"id":7,"method":"resources/list"}', {"id": 7, "error": {"code": -32601, "message": "Method not found"}}),
            ('{"id":8}', {"id": 8, "error": {"code": -32600, "message": "Invalid request: no method"}}),
            ('{"id":NaN}', {"id": None, "error": {"code": -32600, "message": "Invalid request: no method"}}),
            ("[]", {"id": None, "error": {"code": -32600, "message": "Invalid request: not an object"}}),
            ('{"id":9', {"id": None, "error": {"code": -32700, "message": "Parse error"}}),
            ("[" * 100000, {"id": None, "error": {"code": -32700, "message": "Parse error"}}),
        ]
        for message, want in cases:
            with self.subTest(message[:80]):
                self.assertEqual(answer(server(), message), {"jsonrpc": "2.0", **want})

    def test_what_is_no_id(self) -> None:
        """Answered, and never with what is no JSON: the connection's thread goes on."""
        for ident in ("null", "true", "NaN", "-Infinity", "1e999", "{}", "[" * 500 + "]" * 500):
            with self.subTest(ident[:20]):
                got = answer(server(), f'{{"id":{ident},"method":"ping"}}')
                self.assertEqual((got["id"], got["error"]["code"]), (None, -32600))

    def test_failing_tool(self) -> None:
        with self.assertLogs("mcp_provider", "WARNING"):
            got = answer(server(), '{"id":3,"method":"tools/call","params":{"name":"echo"}}')
        self.assertEqual(got["result"], {"content": [{"type": "text", "text": "KeyError: 'text'"}], "isError": True})

    def test_no_answer(self) -> None:
        for message in (
            '{"jsonrpc":"2.0","method":"notifications/initialized"}',
            '{"jsonrpc":"2.0","method":"notifications/x","params":{"id":1}}',
            '{"jsonrpc":"2.0","id":1,"result":{"method":"ping"}}',
            '{"jsonrpc":"2.0","id":1,"error":{"code":1,"message":"x"}}',
        ):
            with self.subTest(message):
                self.assertIsNone(answer(server(), message))


class Results(unittest.TestCase):
    def test_shapes(self) -> None:
        block = {"type": "image", "data": "", "mimeType": "image/png"}
        for value, want in (
            (None, {"content": []}),
            ("text", {"content": [{"type": "text", "text": "text"}]}),
            ([block], {"content": [block]}),
            ({"content": [], "isError": True}, {"content": [], "isError": True}),
            ({"rpm": 3}, {"content": [{"type": "text", "text": '{"rpm": 3}'}], "structuredContent": {"rpm": 3}}),
            ([1, "ä"], {"content": [{"type": "text", "text": '[1, "ä"]'}]}),
            (True, {"content": [{"type": "text", "text": "true"}]}),
        ):
            with self.subTest(value=value):
                self.assertEqual(tools.tool_result(value), want)

    def test_what_is_no_json(self) -> None:
        """A tool that returns something impossible has failed, and its caller is told."""
        for value in (float("nan"), object(), {"content": [object()]}, {1, 2}):
            s = tools.ToolServer("x", "1")
            s.add(tools.Tool("bad", "", {}, lambda _, value=value: value))
            with self.assertLogs("mcp_provider", "WARNING"):
                got = answer(s, {"id": 1, "method": "tools/call", "params": {"name": "bad"}})
            self.assertTrue(got["result"]["isError"], got)

    def test_what_ends_programs(self) -> None:
        def leave(_: dict) -> None:
            raise SystemExit(3)

        s = tools.ToolServer("x", "1")
        s.add(tools.Tool("leave", "", {}, leave))
        with self.assertLogs("mcp_provider", "WARNING"):
            got = answer(s, {"id": 1, "method": "tools/call", "params": {"name": "leave"}})
        self.assertEqual(got["result"]["content"][0]["text"], "SystemExit: 3")

    def test_what_cannot_say_what_it_is(self) -> None:
        class Silent(Exception):
            def __str__(self) -> str:
                raise RuntimeError("no words")

        def fail(_: dict) -> None:
            raise Silent

        s = tools.ToolServer("x", "1")
        s.add(tools.Tool("fail", "", {}, fail))
        with self.assertLogs("mcp_provider", "WARNING"):
            got = answer(s, {"id": 1, "method": "tools/call", "params": {"name": "fail"}})
        self.assertEqual(got["result"], {"content": [{"type": "text", "text": "Silent"}], "isError": True})

    def test_lone_surrogates_survive(self) -> None:
        raw = '{"id":1,"method":"tools/call","params":{"name":"echo","arguments":{"text":"\\ud800 ä"}}}'
        call = server().handle(raw.encode())
        assert isinstance(call, tools.Call)
        self.assertIn(b'"text":"\\ud800 \\u00e4"', call.run())


class Registration(unittest.TestCase):
    def test_refused(self) -> None:
        s = server()
        for name, schema in (("echo", {}), ("", {}), ("nan", {"maximum": float("nan")})):
            with self.subTest(name), self.assertRaises(ValueError):
                s.add(tools.Tool(name, "", schema, lambda _: None))
