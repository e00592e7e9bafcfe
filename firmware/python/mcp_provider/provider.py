"""The class Provider: a slot, its tools, and the connection to the broker."""

from __future__ import annotations

import dataclasses
import logging
import pathlib
import ssl
import threading
import urllib.parse
from types import TracebackType
from typing import Any, Callable, Mapping, Optional, Union

from . import native, tools
from .link import Link

log = logging.getLogger("mcp_provider")

_KINDS = {1: "connected", 2: "disconnected", 3: "retry_failed"}


class ProviderError(Exception):
    """What was asked for cannot be had; the text says why."""


@dataclasses.dataclass(frozen=True)
class Settings:
    """What rarely needs another value. Times are seconds."""

    verify_name: Optional[str] = None  #: the name in the broker's certificate; None = the host of the URL
    connect_timeout: float = 10.0
    retry_initial: float = 1.0  #: the first retry window; it doubles
    retry_max: float = 30.0
    ping_interval: float = 30.0
    poll_period: float = 0.2  #: how long the thread waits at a time; a queued message and stop() do not wait for it
    max_message: int = 1 << 20  #: bytes of the largest message, 256 or more; a larger one ends the connection (1009)
    workers: int = 4  #: threads that run tools; 0 = the connection's own thread, one call after the other
    max_calls: int = 64  #: calls at once, waiting for a thread included; more are refused
    max_queue: int = 1024  #: notifications waiting to be sent
    version: str = "1.0"  #: of the server, as initialize tells it


@dataclasses.dataclass(frozen=True)
class Event:
    """What happened to the connection."""

    kind: str  #: "connected", "disconnected" (it was up) or "retry_failed" (it was down already)
    error: str  #: what kind of failure, in words; "" with "connected"
    close_code: int  #: the broker's close code, 1006 when it went without one, else 0
    reason: str  #: the broker's words
    http_status: int  #: what the broker answered instead of opening a WebSocket, else 0
    detail: str  #: the library's own words, those about a refused certificate included
    attempts: int  #: failures in a row
    connects: int  #: how often it came up, this time included
    next_retry: float  #: seconds until the next attempt
    down: float  #: "connected": how long it was down, in seconds

    def __str__(self) -> str:
        if self.kind == "connected":
            return self.kind
        status = f"HTTP {self.http_status}" if self.http_status else ""
        code = f"code {self.close_code}" if self.close_code else ""
        why = ", ".join(part for part in (self.error, status, code, self.reason, self.detail) if part)
        return f"{self.kind}: {why}; the next attempt is in {self.next_retry:.1f} s"

    @classmethod
    def _of(cls, raw: native.RawEvent, words: Callable[[int], str]) -> "Event":
        return cls(
            kind=_KINDS.get(raw.type, "unknown"),
            error=words(raw.error) if raw.error != native.OK else "",
            close_code=raw.close_code,
            reason=raw.reason.decode("utf-8", "replace"),
            http_status=raw.http_status,
            detail=(raw.tls or raw.detail).decode("utf-8", "replace"),
            attempts=raw.attempts,
            connects=raw.connects,
            next_retry=raw.next_retry_ms / 1000,
            down=raw.down_ms / 1000,
        )


@dataclasses.dataclass(frozen=True)
class _Target:
    host: str
    port: int
    tls: bool
    prefix: Optional[str]


def _target(url: str) -> _Target:
    """ws://host:port; a path replaces /provider, the broker's prefix for providers."""
    parts = urllib.parse.urlsplit(url)
    if parts.scheme not in ("ws", "wss", "http", "https"):
        raise ProviderError(f"{url!r}: a broker's URL begins with ws:// or wss://")
    if parts.query or parts.fragment or parts.username is not None:
        raise ProviderError(f"{url!r}: a broker's URL has no user, query or fragment")
    try:
        port = parts.port
    except ValueError as err:
        raise ProviderError(f"{url!r}: {err}") from err
    path = parts.path.rstrip("/")
    return _Target(parts.hostname or "", port or 0, parts.scheme in ("wss", "https"), path or None)


def _trusted(ca: Optional[Union[str, pathlib.Path]]) -> bytes:
    """The certificates to trust, in PEM."""
    name = ca if ca is not None else ssl.get_default_verify_paths().cafile
    if name is None:
        raise ProviderError("wss:// needs ca: the file with the certificates to trust")
    try:
        return pathlib.Path(name).read_bytes()
    except OSError as err:
        raise ProviderError(f"cannot read the certificates: {err}") from err


def _bytes(text: Optional[str]) -> Optional[bytes]:
    if text is not None and "\0" in text:
        raise ProviderError("a text has a NUL in it")
    return None if text is None else text.encode("utf-8")


def _ms(seconds: float) -> int:
    return max(1, min(int(seconds * 1000), 3_600_000))


class Provider:
    """A slot on a broker.

    url is the broker's address, ws://host:port or wss://host:port. token is sent as X-Provider-Token. ca is the file
    with the certificates to trust, for wss; None = the system's. on_event gets an Event for each change of the
    connection, in the connection's thread: it must be quick, and may call stop. What it raises is logged.

    The methods can be called by any thread.
    """

    def __init__(
        self,
        url: str,
        slot: str,
        *,
        aggregate: bool = False,
        token: Optional[str] = None,
        ca: Optional[Union[str, pathlib.Path]] = None,
        on_event: Optional[Callable[[Event], None]] = None,
        settings: Settings = Settings(),
    ) -> None:
        self._target, self._slot, self._aggregate = _target(url), slot, aggregate
        self._token, self._ca, self._on_event, self._settings = token, ca, on_event, settings
        self._server = tools.ToolServer(slot, settings.version)
        self._lock = threading.Lock()
        self._link: Optional[Link] = None

    def tool(
        self, name: str, description: str = "", schema: Optional[Mapping[str, Any]] = None
    ) -> Callable[[tools.ToolFunction], tools.ToolFunction]:
        """Registers the decorated function as a tool, while the provider runs too.

        schema is the JSON Schema of its arguments; None: an object. The function gets the arguments as a dict; it has
        to check them itself. An exception becomes a result with isError. See tools.ToolFunction for what it returns.
        """

        def register(function: tools.ToolFunction) -> tools.ToolFunction:
            self._server.add(tools.Tool(name, description, schema or {"type": "object"}, function))
            self.notify("notifications/tools/list_changed")
            return function

        return register

    def notify(self, method: str, params: Optional[Mapping[str, Any]] = None) -> bool:
        """Queues a notification. False: not connected, or too much is queued. What is queued when the connection ends
        is lost: the sessions it was for have ended with it."""
        message = tools.encode(tools.notification(method, params))
        with self._lock:
            link = self._link
        return link is not None and link.send(message)

    def start(self) -> None:
        """Begins to connect, and to reconnect until stop; returns at once. ProviderError: it runs already, or the
        configuration is wrong."""
        with self._lock:
            if self._link is not None and self._link.thread.is_alive():
                raise ProviderError("the provider runs already")
            self._link = self._make_link()
            self._link.thread.start()

    def stop(self) -> None:
        """Closes the connection and ends its thread. Tools that still run are left alone; their answers are dropped.
        May be called again, and by on_event, which it does not wait for."""
        with self._lock:
            link, self._link = self._link, None
        if link is not None:
            link.end()
            if threading.current_thread() is not link.thread:
                link.thread.join()

    @property
    def connected(self) -> bool:
        with self._lock:
            link = self._link
        return link is not None and link.connected

    def wait_connected(self, timeout: Optional[float] = None) -> bool:
        """Waits until it is connected, or has stopped. A broker may still refuse the slot: see on_event."""
        with self._lock:
            link = self._link
        return link is not None and link.wait_connected(timeout)

    def __enter__(self) -> "Provider":
        self.start()
        return self

    def __exit__(
        self, kind: Optional[type[BaseException]], err: Optional[BaseException], trace: Optional[TracebackType]
    ) -> None:
        self.stop()

    def _make_link(self) -> Link:
        settings = self._settings
        try:
            library = native.Library()
            client = library.create(self._config(library))
        except native.LibraryError as err:
            raise ProviderError(str(err)) from err

        def on_event(raw: native.RawEvent) -> None:
            event = Event._of(raw, library.strerror)
            # A program that has not set up logging still hears of trouble.
            log.log(logging.INFO if event.kind == "connected" else logging.WARNING, "%s: %s", self._slot, event)
            if self._on_event is not None:
                self._on_event(event)

        return Link(
            client,
            self._server,
            on_event,
            poll_ms=_ms(settings.poll_period),
            workers=settings.workers,
            max_calls=settings.max_calls,
            max_queue=settings.max_queue,
        )

    def _config(self, library: native.Library) -> native.Config:
        target, settings = self._target, self._settings
        if target.tls and not library.has_tls():
            raise ProviderError("the library was built without TLS: install mbed TLS and build it again")
        if not 0 < settings.max_message < 1 << 31:
            raise ProviderError(f"max_message is {settings.max_message}, and has to be from 256 to 2147483647 bytes")
        return native.Config(
            host=_bytes(target.host),
            slot=_bytes(self._slot),
            prefix=_bytes(target.prefix),
            token=_bytes(self._token),
            ca_pem=_trusted(self._ca) if target.tls else None,
            verify_name=_bytes(settings.verify_name),
            port=target.port,
            tls=target.tls,
            aggregate=self._aggregate,
            rx_capacity=settings.max_message,
            connect_timeout_ms=_ms(settings.connect_timeout),
            retry_initial_ms=_ms(settings.retry_initial),
            retry_max_ms=_ms(settings.retry_max),
            ping_interval_ms=_ms(settings.ping_interval),
        )
