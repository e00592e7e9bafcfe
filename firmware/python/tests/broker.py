"""The broker as a child process, and a client of it."""

from __future__ import annotations

import http.client
import json
import os
import pathlib
import queue
import re
import socket
import subprocess
import tempfile
import threading
import time
import unittest
from typing import Any, Optional

PATIENCE = 30.0
BINARY = os.path.abspath(os.environ["MCPLINK_BROKER"]) if "MCPLINK_BROKER" in os.environ else None


def need_broker() -> None:
    if not BINARY:
        raise unittest.SkipTest("MCPLINK_BROKER, the broker's program, is not set: see `make python-test`")


class Broker:
    """One that can be killed, and started again on its port."""

    def __init__(self, config: str = "") -> None:
        self._folder = tempfile.TemporaryDirectory()
        self._config = config
        # Bound, but nobody listens: no process is given the port by chance while the broker is down.
        self._reserved = socket.socket()
        self._reserved.setsockopt(socket.SOL_SOCKET, socket.SO_REUSEADDR, 1)
        self._reserved.bind(("127.0.0.1", 0))
        self.port = self._reserved.getsockname()[1]
        self._start()

    def _start(self) -> None:
        file = pathlib.Path(self._folder.name, "broker.toml")
        file.write_text(f'host = "127.0.0.1"\nport = {self.port}\n{self._config}', encoding="utf-8")
        env = {k: v for k, v in os.environ.items() if not k.startswith("MCP_BROKER_")}
        self._child = subprocess.Popen(
            [str(BINARY), "run", str(file)], stdout=subprocess.PIPE, stderr=subprocess.STDOUT, text=True,
            cwd=self._folder.name, env=env,
        )
        ports: "queue.Queue[Optional[int]]" = queue.Queue()
        self._lines: list[str] = []
        self._reader = threading.Thread(target=self._read, args=(ports,))
        self._reader.start()
        port = ports.get(timeout=PATIENCE)
        if port is None:
            raise AssertionError("the broker has ended:\n" + "".join(self._lines))
        self.port = port

    def _read(self, ports: "queue.Queue[Optional[int]]") -> None:
        assert self._child.stdout is not None
        for line in self._child.stdout:
            self._lines.append(line)
            if m := re.search(r"started on https?://localhost:(\d+) ", line):
                ports.put(int(m[1]))
        ports.put(None)

    @property
    def url(self) -> str:
        return f"ws://127.0.0.1:{self.port}"

    def kill(self) -> None:
        self._child.kill()
        self._child.wait()
        self._reader.join()
        assert self._child.stdout is not None
        self._child.stdout.close()
        if any("DATA RACE" in line for line in self._lines):
            raise AssertionError("".join(self._lines))

    def restart(self) -> None:
        self._start()

    def close(self) -> None:
        if self._child.poll() is None:
            self.kill()
        self._reserved.close()
        self._folder.cleanup()


class Client:
    """A session at /slot/mcp."""

    def __init__(self, broker: Broker, slot: str) -> None:
        self._path = f"/{slot}/mcp"
        self._http = http.client.HTTPConnection("127.0.0.1", broker.port, timeout=PATIENCE)
        self._session: Optional[str] = None
        self._next = 0
        self.server: dict = {}

    def __enter__(self) -> "Client":
        """A provider that is connected may not hold its slot yet, so an empty one is asked again."""
        late = time.monotonic() + PATIENCE
        params = {"protocolVersion": "2025-11-25", "capabilities": {}, "clientInfo": {"name": "test", "version": "1"}}
        while True:
            self._session = None
            answer = self.request("initialize", params)
            if "result" in answer or time.monotonic() > late:
                break
        self.server = answer["result"]
        self.post({"jsonrpc": "2.0", "method": "notifications/initialized"})
        return self

    def __exit__(self, *_: object) -> None:
        self._http.close()

    def post(self, message: dict) -> Optional[dict]:
        headers = {"Content-Type": "application/json", "Accept": "application/json, text/event-stream"}
        if self._session:
            headers["Mcp-Session-Id"] = self._session
        self._http.request("POST", self._path, json.dumps(message), headers)
        response = self._http.getresponse()
        body = response.read()
        self._session = response.headers.get("Mcp-Session-Id", self._session)
        if response.status == 202:
            return None
        if response.headers.get_content_type() == "text/event-stream":
            data = [line[6:] for line in body.decode().splitlines() if line.startswith("data: ")]
            return json.loads(data[-1])
        return json.loads(body)

    def request(self, method: str, params: Optional[dict] = None) -> dict:
        self._next += 1
        message = {"jsonrpc": "2.0", "id": self._next, "method": method, "params": params or {}}
        answer = self.post(message)
        assert answer is not None and answer["id"] == self._next, answer
        return answer

    def call(self, tool: str, **arguments: Any) -> dict:
        return self.request("tools/call", {"name": tool, "arguments": arguments})

    def text(self, tool: str, **arguments: Any) -> str:
        answer = self.call(tool, **arguments)
        assert "result" in answer, answer
        return answer["result"]["content"][0]["text"]

    def tools(self) -> list[str]:
        return [tool["name"] for tool in self.request("tools/list")["result"]["tools"]]

    def await_tools(self, *names: str) -> None:
        late = time.monotonic() + PATIENCE
        while not set(names) <= set(found := self.tools()):
            assert time.monotonic() < late, found
