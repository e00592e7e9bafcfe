"""The connection's thread over a scripted library: what a broker cannot be made to show."""

from __future__ import annotations

import queue
import threading
import unittest
from typing import Optional, Union

from mcp_provider import native, tools
from mcp_provider.link import Link

from .broker import PATIENCE

UP = native.RawEvent(type=1)
DOWN = native.RawEvent(type=2, error=-3)


class FakeClient:
    """Each poll takes the next thing of the script: an event, a message, or a wake-up."""

    def __init__(self) -> None:
        self.script: "queue.Queue[Union[None, bytes, native.RawEvent]]" = queue.Queue()
        self.sent: "queue.Queue[bytes]" = queue.Queue()
        self.fails = False
        self._events: list[native.RawEvent] = []
        self.calls: set[str] = set()

    def _touch(self) -> None:
        self.calls.add(threading.current_thread().name)

    def poll(self, _: int) -> tuple[int, bytes]:
        self._touch()
        thing = self.script.get(timeout=PATIENCE)
        if isinstance(thing, bytes):
            return native.OK, thing
        if thing is not None:
            self._events.append(thing)
        return native.ERR_TIMEOUT, b""

    def send(self, message: bytes) -> int:
        self._touch()
        if self.fails:
            self._events.append(DOWN)
            return native.ERR_STATE
        self.sent.put(message)
        return native.OK

    def next_event(self) -> Optional[native.RawEvent]:
        self._touch()
        return self._events.pop(0) if self._events else None

    def wake(self) -> None:
        self.script.put(None)

    def stop(self) -> None:
        self._touch()

    def destroy(self) -> None:
        self._touch()


class Case(unittest.TestCase):
    def setUp(self) -> None:
        self.client, self.server = FakeClient(), tools.ToolServer("x", "1")
        self.events: "queue.Queue[int]" = queue.Queue()
        self.link = Link(
            self.client, self.server, lambda e: self.events.put(e.type),  # type: ignore[arg-type]
            poll_ms=1, workers=2, max_calls=4, max_queue=3,
        )

    def start(self) -> None:
        self.client.script.put(UP)
        self.link.thread.start()
        self.addCleanup(self.end)
        self.assertEqual(self.events.get(timeout=PATIENCE), 1)

    def end(self) -> None:
        self.link.end()
        self.link.thread.join(PATIENCE)
        self.assertFalse(self.link.thread.is_alive())
        self.assertEqual(self.client.calls, {"mcp-provider"})

    def sent(self) -> bytes:
        return self.client.sent.get(timeout=PATIENCE)


class Queueing(Case):
    def test_bounded_and_in_order(self) -> None:
        self.assertFalse(self.link.send(b"early"))
        inside, door = threading.Event(), threading.Event()
        self.server.add(tools.Tool("hold", "", {}, lambda _: None))
        handle = self.server.handle

        def hold(raw: bytes) -> None:
            inside.set()
            door.wait(PATIENCE)

        self.server.handle = hold  # type: ignore[method-assign,assignment]
        self.start()
        self.client.script.put(b"{}")
        self.assertTrue(inside.wait(PATIENCE))
        self.assertEqual([self.link.send(m) for m in (b"1", b"2", b"3", b"4")], [True, True, True, False])
        door.set()
        self.assertEqual([self.sent() for _ in range(3)], [b"1", b"2", b"3"])
        self.server.handle = handle  # type: ignore[method-assign]
        self.assertTrue(self.link.send(b"5"))
        self.assertEqual(self.sent(), b"5")

    def test_lost_with_the_connection(self) -> None:
        self.start()
        self.client.fails = True
        self.link.send(b"lost")
        self.link.send(b"lost too")
        self.assertEqual(self.events.get(timeout=PATIENCE), 2)
        self.assertFalse(self.link.send(b"down"))
        self.client.fails = False
        self.client.script.put(UP)
        self.assertEqual(self.events.get(timeout=PATIENCE), 1)
        self.assertTrue(self.link.send(b"up"))
        self.assertEqual(self.sent(), b"up")


class Answering(Case):
    def test_late_answers_are_dropped(self) -> None:
        """An answer to a request of the connection before would answer somebody else's."""
        inside, door, done = threading.Event(), threading.Event(), threading.Event()

        def slow(_: dict) -> str:
            inside.set()
            door.wait(PATIENCE)
            return "late"

        self.server.add(tools.Tool("slow", "", {}, slow))
        self.start()
        work = self.link._work

        def watched(connection: int, call: tools.Call) -> None:
            work(connection, call)
            done.set()

        self.link._work = watched  # type: ignore[method-assign]
        self.client.script.put(b'{"id":1,"method":"tools/call","params":{"name":"slow"}}')
        self.assertTrue(inside.wait(PATIENCE))
        self.client.script.put(DOWN)
        self.client.script.put(UP)
        self.assertEqual([self.events.get(timeout=PATIENCE) for _ in range(2)], [2, 1])
        door.set()
        self.assertTrue(done.wait(PATIENCE))
        self.client.script.put(b'{"id":2,"method":"ping"}')
        self.assertEqual(self.sent(), b'{"jsonrpc":"2.0","id":2,"result":{}}')

    def test_broken_message(self) -> None:
        self.start()
        self.client.script.put(b"\xff")
        self.assertIn(b"-32700", self.sent())


class Ending(Case):
    def test_thread_fails(self) -> None:
        """A fault of the thread is logged, and it ends like one that was stopped."""
        self.start()

        def fail(_: bytes) -> None:
            raise RuntimeError("no")

        self.server.handle = fail  # type: ignore[method-assign,assignment]
        with self.assertLogs("mcp_provider", "ERROR"):
            self.client.script.put(b"{}")
            self.link.thread.join(PATIENCE)
        self.assertFalse(self.link.connected)
        self.assertFalse(self.link.wait_connected(None))
        self.assertFalse(self.link.send(b"x"))
