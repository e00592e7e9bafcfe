"""The shared library, by ctypes. Its handle is opaque: nothing here knows a struct of the C library."""

from __future__ import annotations

import ctypes
import ctypes.util
import os
import pathlib
from typing import Optional

ABI = 1
TEXT = 128

OK = 0
ERR_TIMEOUT = -2
ERR_STATE = -8


class LibraryError(Exception):
    """The shared library cannot be loaded, or refuses a configuration."""


class Config(ctypes.Structure):
    """mcplink_client_config of client.h."""

    _fields_ = [
        ("host", ctypes.c_char_p),
        ("slot", ctypes.c_char_p),
        ("prefix", ctypes.c_char_p),
        ("token", ctypes.c_char_p),
        ("ca_pem", ctypes.c_char_p),
        ("verify_name", ctypes.c_char_p),
        ("port", ctypes.c_uint32),
        ("tls", ctypes.c_uint32),
        ("aggregate", ctypes.c_uint32),
        ("rx_capacity", ctypes.c_uint32),
        ("connect_timeout_ms", ctypes.c_uint32),
        ("retry_initial_ms", ctypes.c_uint32),
        ("retry_max_ms", ctypes.c_uint32),
        ("ping_interval_ms", ctypes.c_uint32),
    ]


class RawEvent(ctypes.Structure):
    """mcplink_client_event of client.h."""

    _fields_ = [
        ("type", ctypes.c_int32),
        ("error", ctypes.c_int32),
        ("next_retry_ms", ctypes.c_uint32),
        ("window_ms", ctypes.c_uint32),
        ("attempts", ctypes.c_uint32),
        ("down_ms", ctypes.c_uint32),
        ("connects", ctypes.c_uint32),
        ("close_code", ctypes.c_uint32),
        ("http_status", ctypes.c_uint32),
        ("reason", ctypes.c_char * TEXT),
        ("detail", ctypes.c_char * TEXT),
        ("tls", ctypes.c_char * TEXT),
    ]


def _candidates() -> list[str]:
    """Where the library is looked for: MCPLINK_LIBRARY alone if set, else beside this file, else the system's paths."""
    named = os.environ.get("MCPLINK_LIBRARY")
    if named:
        return [named]
    beside = pathlib.Path(__file__).with_name("libmcplink.so")
    found = ctypes.util.find_library("mcplink")
    return [str(beside)] * beside.exists() + [found] * bool(found)


class Library:
    """The functions of client.h. ctypes releases the interpreter lock around each call."""

    def __init__(self, path: Optional[str] = None) -> None:
        paths = [path] if path else _candidates()
        if not paths:
            raise LibraryError("libmcplink.so was not found: build it with `make shared` and set MCPLINK_LIBRARY to its path")
        try:
            self._lib = ctypes.CDLL(paths[0])
            self._declare()
        except (OSError, AttributeError) as err:
            raise LibraryError(f"cannot use {paths[0]}: {err}") from err
        if self._lib.mcplink_client_abi() != ABI:
            raise LibraryError(f"{paths[0]} is of another version: its interface is {self._lib.mcplink_client_abi()}, not {ABI}")

    def _declare(self) -> None:
        handle = ctypes.c_void_p
        signatures: dict[str, tuple] = {
            "abi": (ctypes.c_uint32,),
            "has_tls": (ctypes.c_int32,),
            "create": (handle, ctypes.POINTER(Config), ctypes.c_char_p, ctypes.c_uint32),
            "poll": (ctypes.c_int32, handle, ctypes.POINTER(ctypes.c_void_p), ctypes.POINTER(ctypes.c_size_t), ctypes.c_int32),
            "send": (ctypes.c_int32, handle, ctypes.c_char_p, ctypes.c_size_t),
            "next_event": (ctypes.c_int32, handle, ctypes.POINTER(RawEvent)),
            "wake": (None, handle),
            "stop": (None, handle),
            "destroy": (None, handle),
        }
        for name, (result, *arguments) in signatures.items():
            function = getattr(self._lib, "mcplink_client_" + name)
            function.restype, function.argtypes = result, arguments
        self._lib.mcplink_strerror.restype = ctypes.c_char_p
        self._lib.mcplink_strerror.argtypes = [ctypes.c_int]

    def has_tls(self) -> bool:
        return bool(self._lib.mcplink_client_has_tls())

    def strerror(self, code: int) -> str:
        return self._lib.mcplink_strerror(code).decode()

    def create(self, config: Config) -> "Client":
        why = ctypes.create_string_buffer(TEXT)
        handle = self._lib.mcplink_client_create(ctypes.byref(config), why, TEXT)
        if not handle:
            raise LibraryError(why.value.decode("utf-8", "replace"))
        return Client(self._lib, handle)


class Client:
    """One handle. All methods but wake belong to one thread."""

    def __init__(self, lib: ctypes.CDLL, handle: int) -> None:
        self._lib, self._handle = lib, handle
        self._json, self._len = ctypes.c_void_p(), ctypes.c_size_t()
        self._event = RawEvent()

    def poll(self, timeout_ms: int) -> tuple[int, bytes]:
        """A code, and the message when it is OK."""
        code = self._lib.mcplink_client_poll(self._handle, ctypes.byref(self._json), ctypes.byref(self._len), timeout_ms)
        if code != OK:
            return code, b""
        return code, ctypes.string_at(self._json.value or 0, self._len.value)

    def send(self, message: bytes) -> int:
        return self._lib.mcplink_client_send(self._handle, message, len(message))

    def next_event(self) -> Optional[RawEvent]:
        """The event is overwritten by the next call."""
        return self._event if self._lib.mcplink_client_next_event(self._handle, ctypes.byref(self._event)) else None

    def wake(self) -> None:
        self._lib.mcplink_client_wake(self._handle)

    def stop(self) -> None:
        self._lib.mcplink_client_stop(self._handle)

    def destroy(self) -> None:
        """After this nothing may be called, wake included."""
        self._lib.mcplink_client_destroy(self._handle)
        self._handle = None
