"""The provider against the broker: spec 04 8."""

from __future__ import annotations

import gc
import os
import pathlib
import queue
import threading
import time
import unittest
from typing import Any, Optional

from mcp_provider import Event, Provider, ProviderError, Settings, native

from .broker import PATIENCE, Broker, Client, need_broker

QUICK = Settings(retry_initial=0.1, retry_max=0.4, poll_period=30.0)
HELD = 'Slot already held by a live provider; call provider_status on _broker. Slot: "greeter"'


def setUpModule() -> None:
    need_broker()


class Case(unittest.TestCase):
    def setUp(self) -> None:
        self.broker = Broker()
        self.addCleanup(self.broker.close)
        self.events: "queue.Queue[Event]" = queue.Queue()

    def provider(self, slot: str = "greeter", **more: Any) -> Provider:
        more.setdefault("settings", QUICK)
        more.setdefault("on_event", self.events.put)
        p = Provider(self.broker.url, slot, **more)

        @p.tool("greet", "Greets somebody.", {"type": "object", "properties": {"name": {"type": "string"}}})
        def greet(arguments: dict) -> str:
            return "Hello, " + arguments["name"]

        self.addCleanup(p.stop)
        return p

    def await_event(self, kind: str) -> Event:
        event = self.events.get(timeout=PATIENCE)
        self.assertEqual(event.kind, kind, event)
        return event

    def await_slot(self, slot: str) -> None:
        """A provider that answers holds its slot."""
        with Client(self.broker, slot):
            pass


class Serving(Case):
    def test_list_and_call(self) -> None:
        with self.provider(aggregate=True):
            self.assertEqual(self.await_event("connected").connects, 1)
            with Client(self.broker, "greeter") as c:
                self.assertEqual(c.server["serverInfo"], {"name": "greeter", "version": "1.0"})
                self.assertEqual(c.tools(), ["greet"])
                awkward = 'say "hi" to C:\\temp\n\tä €😀 \u2028 \x01 end\\'
                self.assertEqual(c.text("greet", name=awkward), "Hello, " + awkward)
                with self.assertLogs("mcp_provider", "WARNING"):
                    failed = c.call("greet")["result"]
                self.assertEqual(failed, {"content": [{"type": "text", "text": "KeyError: 'name'"}], "isError": True})
            with Client(self.broker, "_all") as c:
                c.await_tools("greeter-greet")
                self.assertEqual(c.text("greeter-greet", name="all"), "Hello, all")
        with _Answer(self.broker, "greeter") as answer:
            self.assertEqual(answer["error"]["code"], -32000)

    def test_not_in_the_catalog_unless_asked(self) -> None:
        with self.provider("asked", aggregate=True), self.provider("unasked"):
            self.await_slot("unasked")
            with Client(self.broker, "_all") as c:
                c.await_tools("asked-greet")
                self.assertNotIn("unasked-greet", c.tools())

    def test_tools_change(self) -> None:
        p = self.provider()
        with p:
            with Client(self.broker, "greeter") as c:
                p.tool("late")(lambda _: "here")
                c.await_tools("greet", "late")
                self.assertEqual(c.text("late"), "here")

    def test_calls_overlap(self) -> None:
        """Answers leave in the order they are ready, and do not wait for the poll period."""
        p = self.provider()
        door = threading.Event()
        p.tool("wait")(lambda _: door.wait(PATIENCE) and "waited")
        with p, Client(self.broker, "greeter") as first, Client(self.broker, "greeter") as second:
            answers: "queue.Queue[str]" = queue.Queue()
            t = threading.Thread(target=lambda: answers.put(first.text("wait")))
            t.start()
            self.assertEqual(second.text("greet", name="you"), "Hello, you")
            self.assertTrue(answers.empty())
            door.set()
            self.assertEqual(answers.get(timeout=PATIENCE), "waited")
            t.join()

    def test_without_pool(self) -> None:
        with self.provider(settings=Settings(workers=0, poll_period=30.0)) as p:
            p.tool("thread")(lambda _: threading.current_thread().name)
            with Client(self.broker, "greeter") as c:
                self.assertEqual(c.text("thread"), "mcp-provider")

    def test_busy(self) -> None:
        p = self.provider(settings=Settings(workers=1, max_calls=1, poll_period=30.0))
        inside, door = threading.Event(), threading.Event()

        @p.tool("wait")
        def wait(_: dict) -> None:
            inside.set()
            door.wait(PATIENCE)

        with p, Client(self.broker, "greeter") as first, Client(self.broker, "greeter") as second:
            t = threading.Thread(target=first.call, args=("wait",))
            t.start()
            self.assertTrue(inside.wait(PATIENCE))
            self.assertEqual(second.call("wait")["error"], {"code": -32000, "message": "more than 1 calls at once"})
            door.set()
            t.join()

    def test_notify(self) -> None:
        p = self.provider()
        self.assertFalse(p.notify("notifications/message", {}))
        with p:
            self.await_slot("greeter")
            self.assertTrue(p.notify("notifications/message", {"level": "info", "data": "hi"}))
            with self.assertRaises(ValueError):
                p.notify("notifications/message", {"data": float("nan")})
        self.assertFalse(p.notify("notifications/message", {}))


class _Answer:
    """The answer to a request of an empty slot. Not to initialize, which the broker answers by itself until it has read
    the provider's goodbye."""

    def __init__(self, broker: Broker, slot: str) -> None:
        self._client = Client(broker, slot)

    def __enter__(self) -> dict:
        params = {"protocolVersion": "2025-11-25", "capabilities": {}, "clientInfo": {"name": "test", "version": "1"}}
        self._client.request("initialize", params)
        return self._client.request("tools/list")

    def __exit__(self, *_: object) -> None:
        self._client.__exit__()


class Losing(Case):
    def test_refused(self) -> None:
        """R-33: open, then close 1008; the reason says who holds the slot."""
        with self.provider(on_event=None):
            self.await_slot("greeter")
            with self.provider():
                self.await_event("connected")
                event = self.await_event("disconnected")
                self.assertEqual((event.close_code, event.reason), (1008, HELD))
                self.assertGreaterEqual(event.next_retry, 0.05)
                self.assertEqual(event.attempts, 1)
                words = f"disconnected: closed by the peer, code 1008, {HELD}; the next attempt is in "
                self.assertEqual(str(event), f"{words}{event.next_retry:.1f} s")

    def test_refusal_is_heard(self) -> None:
        """A program that set up no logging, and has no callback, hears of a refusal all the same."""
        with self.provider(on_event=None):
            self.await_slot("greeter")
            with self.assertLogs("mcp_provider", "WARNING") as logs, self.provider():
                self.await_event("connected")
                self.await_event("disconnected")
        self.assertIn(f"greeter: disconnected: closed by the peer, code 1008, {HELD}", logs.output[0])

    def test_restart(self) -> None:
        with self.provider(aggregate=True) as p:
            self.await_event("connected")
            self.await_slot("greeter")
            self.broker.kill()
            event = self.await_event("disconnected")
            self.assertTrue(event.error)
            self.assertGreater(self.await_event("retry_failed").attempts, 1)
            self.assertFalse(p.notify("notifications/message", {}))
            self.broker.restart()
            while (event := self.events.get(timeout=PATIENCE)).kind == "retry_failed":
                pass
            self.assertEqual((event.kind, event.connects), ("connected", 2))
            with Client(self.broker, "greeter") as c:
                self.assertEqual(c.text("greet", name="again"), "Hello, again")
            with Client(self.broker, "_all") as c:
                c.await_tools("greeter-greet")

    def test_late_answers_are_dropped(self) -> None:
        """An answer to a request of the connection before would answer another's."""
        p = self.provider()
        inside, door, done = threading.Event(), threading.Event(), threading.Event()

        @p.tool("slow")
        def slow(_: dict) -> str:
            inside.set()
            door.wait(PATIENCE)
            done.set()
            return "too late"

        with p:
            self.await_event("connected")
            with Client(self.broker, "greeter") as c:
                t = threading.Thread(target=self._call_in_vain, args=(c,))
                t.start()
                self.assertTrue(inside.wait(PATIENCE))
                self.broker.kill()
                t.join()
            self.broker.restart()
            while self.events.get(timeout=PATIENCE).kind != "connected":
                pass
            self.await_slot("greeter")
            door.set()
            self.assertTrue(done.wait(PATIENCE))
            with Client(self.broker, "greeter") as c:
                self.assertEqual(c.text("greet", name="x"), "Hello, x")

    @staticmethod
    def _call_in_vain(c: Client) -> None:
        try:
            c.call("slow")
        except (OSError, ValueError, AssertionError):
            pass

    def test_callback_fails(self) -> None:
        """An exception in the callback never leaves it."""

        def fail(event: Event) -> None:
            self.events.put(event)
            raise RuntimeError("no")

        with self.assertLogs("mcp_provider", "ERROR") as logs:
            with self.provider(on_event=fail):
                self.await_slot("greeter")
        self.assertIn("on_event has failed", logs.output[0])


class Stopping(Case):
    def test_during_poll(self) -> None:
        """It returns within one poll period; here the wait of the poll is ended."""
        p = self.provider()
        p.start()
        self.await_slot("greeter")
        before = time.monotonic()
        p.stop()
        self.assertLess(time.monotonic() - before, QUICK.poll_period / 2)
        self.assertFalse(p.connected)
        p.stop()

    def test_while_down(self) -> None:
        self.broker.kill()
        settings = Settings(retry_initial=600.0, retry_max=600.0, poll_period=60.0)
        p = self.provider(settings=settings)
        p.start()
        self.await_event("retry_failed")
        before = time.monotonic()
        p.stop()
        self.assertLess(time.monotonic() - before, settings.poll_period / 2)
        self.assertFalse(p.wait_connected(0))

    def test_while_a_tool_runs(self) -> None:
        p = self.provider()
        inside, door = threading.Event(), threading.Event()
        self.addCleanup(door.set)
        p.tool("wait")(lambda _: (inside.set(), door.wait(PATIENCE)) and None)
        p.start()
        with Client(self.broker, "greeter") as c:
            answers: "queue.Queue[dict]" = queue.Queue()
            t = threading.Thread(target=lambda: answers.put(c.call("wait")))
            t.start()
            self.assertTrue(inside.wait(PATIENCE))
            p.stop()
            self.assertEqual(answers.get(timeout=PATIENCE)["error"]["code"], -32000)
            t.join()

    def test_by_the_callback(self) -> None:
        stopped = threading.Event()

        def stop(_: Event) -> None:
            p.stop()
            stopped.set()

        p = self.provider(on_event=stop)
        p.start()
        self.assertTrue(stopped.wait(PATIENCE))
        self.assertFalse(p.connected)

    def test_and_start_again(self) -> None:
        p = self.provider()
        for _ in range(5):
            p.start()
            with self.assertRaisesRegex(ProviderError, "runs already"):
                p.start()
            self.await_slot("greeter")
            p.stop()

    def test_races(self) -> None:
        """Starts, stops and notifications of several threads leave a provider that works."""
        p = self.provider(on_event=None)

        def race(seed: int) -> None:
            for i in range(20):
                if (i + seed) % 2:
                    p.stop()
                else:
                    try:
                        p.start()
                    except ProviderError:
                        pass
                p.notify("notifications/message", {"level": "info", "data": "race"})

        threads = [threading.Thread(target=race, args=(n,)) for n in range(4)]
        for t in threads:
            t.start()
        for t in threads:
            t.join()
        p.stop()
        p.start()
        self.await_slot("greeter")


def _resident() -> int:
    """Bytes."""
    pages = pathlib.Path("/proc/self/statm").read_text(encoding="ascii").split()[1]
    return int(pages) * os.sysconf("SC_PAGE_SIZE")


def _open_files() -> int:
    return len(os.listdir("/proc/self/fd"))


@unittest.skipUnless(pathlib.Path("/proc/self/statm").exists(), "there is no /proc")
class Growing(Case):
    def test_calls(self) -> None:
        # One worker, whose thread is there after the first call: a pool grows whenever none is idle yet.
        with self.provider(settings=Settings(workers=1, poll_period=30.0)), Client(self.broker, "greeter") as c:
            for i in range(200):
                c.text("greet", name=str(i))
            gc.collect()
            before = _resident(), _open_files(), threading.active_count()
            for i in range(1000):
                self.assertEqual(c.text("greet", name=str(i)), f"Hello, {i}")
            gc.collect()
            after = _resident(), _open_files(), threading.active_count()
            self.assertLess(after[0] - before[0], 1 << 20)
            self.assertEqual(after[1:], before[1:])

    def test_starts(self) -> None:
        p = self.provider(on_event=None)
        before: Optional[tuple[int, int]] = None
        for i in range(20):
            p.start()
            self.assertTrue(p.wait_connected(PATIENCE))
            p.stop()
            if i == 9:
                before = _open_files(), threading.active_count()
        self.assertEqual((_open_files(), threading.active_count()), before)


class Configuring(unittest.TestCase):
    def test_refused(self) -> None:
        for url, slot, words in (
            ("127.0.0.1:3000", "x", "begins with ws://"),
            ("ftp://127.0.0.1", "x", "begins with ws://"),
            ("ws://me@127.0.0.1", "x", "no user"),
            ("ws://127.0.0.1:3000/?q", "x", "no user, query"),
            ("ws://127.0.0.1:99999", "x", "ort out of range"),
            ("ws://:3000", "x", "host"),
            ("ws://127.0.0.1:3000", "", "slot name"),
            ("ws://127.0.0.1:3000", "x" * 65, "slot name"),
            ("ws://127.0.0.1:3000", "a\0b", "NUL"),
        ):
            with self.subTest(url=url, slot=slot):
                with self.assertRaisesRegex(ProviderError, words):
                    Provider(url, slot).start()

    def test_max_message(self) -> None:
        """What the library would read as another number is refused, not passed on."""
        for size, words in ((-1, "max_message is -1"), (0, "max_message is 0"), ((1 << 32) + 4096, "max_message"),
                            (255, "receive buffer too small")):
            with self.subTest(size), self.assertRaisesRegex(ProviderError, words):
                Provider("ws://127.0.0.1:3000", "x", settings=Settings(max_message=size)).start()

    def test_header_injection(self) -> None:
        """D-09."""
        with self.assertRaises(ProviderError):
            Provider("ws://127.0.0.1:3000", "x", token="wrong\r\nHost: y").start()

    def test_library(self) -> None:
        with self.assertRaisesRegex(native.LibraryError, "cannot use"):
            native.Library("no-such-library.so")
        with self.assertRaisesRegex(native.LibraryError, "mcplink_client_abi"):
            native.Library("libc.so.6")


TLS = [os.environ.get("MCPLINK_TLS_" + part) for part in ("CERT", "KEY", "CA", "WRONG_CA")]


@unittest.skipUnless(all(TLS), "MCPLINK_TLS_CERT, _KEY, _CA and _WRONG_CA, files for broker.test, are not set")
class Securing(unittest.TestCase):
    def setUp(self) -> None:
        if not native.Library().has_tls():
            self.skipTest("the library was built without TLS (Debian package libmbedtls-dev)")
        self.broker = Broker(f'[tls]\ncert = "{TLS[0]}"\nkey = "{TLS[1]}"\n')
        self.addCleanup(self.broker.close)

    def event(self, ca: Optional[str], name: Optional[str]) -> Event:
        events: "queue.Queue[Event]" = queue.Queue()
        settings = Settings(verify_name=name, poll_period=30.0)
        url = self.broker.url.replace("ws:", "wss:")
        with Provider(url, "x", ca=ca, on_event=events.put, settings=settings):
            return events.get(timeout=PATIENCE)

    def test_accepted(self) -> None:
        self.assertEqual(self.event(TLS[2], "broker.test").kind, "connected")

    def test_refused(self) -> None:
        for ca, name, words in (
            (TLS[3], "broker.test", "unknown authority"),
            (TLS[2], "else.test", "wrong name"),
            (TLS[2], None, "wrong name"),
        ):
            with self.subTest(words):
                event = self.event(ca, name)
                self.assertEqual(event.kind, "retry_failed")
                self.assertIn(words, event.detail)
