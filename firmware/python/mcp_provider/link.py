"""One connection's thread, from start to stop, reconnects included. Only this thread touches the library; others
leave their messages in a queue and wake it."""

from __future__ import annotations

import collections
import concurrent.futures
import logging
import threading
from typing import Callable, Deque, Optional

from . import native, tools

log = logging.getLogger("mcp_provider")


class Link:
    def __init__(
        self,
        client: native.Client,
        server: tools.ToolServer,
        on_event: Callable[[native.RawEvent], None],
        *,
        poll_ms: int,
        workers: int,
        max_calls: int,
        max_queue: int,
    ) -> None:
        self._client, self._server, self._on_event = client, server, on_event
        self._poll_ms, self._max_calls, self._max_queue = poll_ms, max_calls, max_queue
        self._pool = concurrent.futures.ThreadPoolExecutor(workers, "mcp-tool") if workers else None
        self._changed = threading.Condition()  # guards everything below
        self._queue: Deque[bytes] = collections.deque()
        self._connection = 0  # counts connections: an answer belongs to the one its request came by
        self._up = False
        self._stopping = False
        self._gone = False  # the client has been destroyed
        self._calls = 0  # in the pool
        self.thread = threading.Thread(target=self._run, name="mcp-provider", daemon=True)

    # ---- any thread

    def send(self, message: bytes) -> bool:
        """Queues a notification; False when it is not connected or too much is queued."""
        with self._changed:
            if not self._up or len(self._queue) >= self._max_queue:
                return False
            self._put(message)
            return True

    def end(self) -> None:
        with self._changed:
            self._stopping = True
            self._changed.notify_all()
            if not self._gone:
                self._client.wake()

    @property
    def connected(self) -> bool:
        with self._changed:
            return self._up

    def wait_connected(self, timeout: Optional[float]) -> bool:
        with self._changed:
            self._changed.wait_for(lambda: self._up or self._stopping, timeout)
            return self._up

    def _put(self, message: bytes) -> None:
        self._queue.append(message)
        self._client.wake()

    # ---- the pool

    def _work(self, connection: int, call: tools.Call) -> None:
        answer = call.run()
        with self._changed:
            self._calls -= 1
            if self._up and connection == self._connection:
                self._put(answer)

    # ---- the thread

    def _run(self) -> None:
        try:
            while not self._stopped():
                self._drain()
                code, message = self._client.poll(self._poll_ms)
                self._report()
                if code == native.OK:
                    self._receive(message)
        except Exception:
            log.exception("the provider's thread has failed")
        finally:
            self._finish()

    def _stopped(self) -> bool:
        with self._changed:
            return self._stopping

    def _drain(self) -> None:
        """Sends what is queued now; what comes meanwhile waits for the next turn."""
        with self._changed:
            messages = list(self._queue)
            self._queue.clear()
        for message in messages:
            if not self._deliver(message):
                return

    def _deliver(self, message: bytes) -> bool:
        sent = self._client.send(message) == native.OK
        if not sent:
            self._report()
        return sent

    def _report(self) -> None:
        while (event := self._client.next_event()) is not None:
            with self._changed:
                self._queue.clear()  # nothing queued outlives its connection
                self._up = event.error == native.OK
                self._connection += self._up
                self._changed.notify_all()
            try:
                self._on_event(event)
            except Exception:
                log.exception("on_event has failed")

    def _receive(self, message: bytes) -> None:
        answer = self._server.handle(message)
        if isinstance(answer, tools.Call):
            answer = self._begin(answer)
        if answer is not None:
            self._deliver(answer)

    def _begin(self, call: tools.Call) -> Optional[bytes]:
        """The answer, if there is one already."""
        if self._pool is None:
            return call.run()
        with self._changed:
            if self._calls >= self._max_calls:
                return tools.encode(tools.error(call.ident, tools.BUSY, f"more than {self._max_calls} calls at once"))
            self._calls += 1
            connection = self._connection
        self._pool.submit(self._work, connection, call)
        return None

    def _finish(self) -> None:
        self._client.stop()
        with self._changed:
            self._up = False
            self._gone = True
            self._stopping = True
            self._queue.clear()
            self._client.destroy()
            self._changed.notify_all()
        if self._pool is not None:
            self._pool.shutdown(wait=False, cancel_futures=True)
