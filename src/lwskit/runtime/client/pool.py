"""Connections of the aiohttp transport, and which of them present which client certificate."""

from __future__ import annotations

import asyncio
import socket
from contextlib import suppress
from typing import Any
from weakref import WeakSet

import aiohttp

LAST_TURNS = 100
"""How many turns of the loop sockets get to be closed when the transport is."""
KEEPALIVE_IDLE, KEEPALIVE_INTERVAL, KEEPALIVE_PROBES = 30, 10, 3


class Pool:
    """Connections that are used for one another's requests, and how many use them now."""

    def __init__(self, session: aiohttp.ClientSession) -> None:
        self.session = session
        self.users = 0


class Connections:
    """The pool that requests go out from, and former ones until the last answer from them has ended."""

    def __init__(self) -> None:
        self._latest: Pool | None = None
        self._former: set[Pool] = set()
        self._sockets: WeakSet[socket.socket] = WeakSet()

    def take(self) -> Pool:
        """The pool for a request, which must be given back."""
        if self._latest is None:
            # Watches hold their connections, so their number has no limit here.
            connector = aiohttp.TCPConnector(limit=0, socket_factory=self._make_socket)
            session = aiohttp.ClientSession(
                connector=connector,
                cookie_jar=aiohttp.DummyCookieJar(),
                headers={"accept-encoding": "gzip"},
                max_line_size=64 * 1024,
                max_field_size=64 * 1024,
            )
            self._latest = Pool(session)
        self._latest.users += 1
        return self._latest

    async def give_back(self, pool: Pool) -> None:
        """End of a request. Cancelled, connections of a former pool may stay open until `close`."""
        pool.users -= 1
        if pool.users == 0 and pool in self._former:
            await pool.session.close()
            self._former.discard(pool)

    async def renew(self) -> None:
        """Have later requests use new connections. Cancelled, old ones that nobody uses may stay open until `close`."""
        pool, self._latest = self._latest, None
        if pool is not None:
            self._former.add(pool)
            pool.users += 1
            await self.give_back(pool)

    async def close(self) -> None:
        """End all connections. Cancelled, some may stay open until the loop ends."""
        pools = [*self._former, *([self._latest] if self._latest else [])]
        self._latest, self._former = None, set()
        for pool in pools:
            await pool.session.close()
        if pools:
            await self._let_go()

    async def _let_go(self) -> None:
        """End connections that the session no longer knows: cancelled while TLS was being set up or ended."""
        for sock in self.sockets:
            with suppress(OSError):
                sock.shutdown(socket.SHUT_RDWR)
        for _ in range(LAST_TURNS):
            if not self.sockets:
                return
            await asyncio.sleep(0)

    @property
    def sockets(self) -> list[socket.socket]:
        """The sockets that are open."""
        return [sock for sock in self._sockets if sock.fileno() != -1]

    def _make_socket(self, address: Any) -> socket.socket:
        sock = _keepalive_socket(address)
        self._sockets.add(sock)
        return sock


def _keepalive_socket(address: Any) -> socket.socket:
    """A socket whose other end, when it is gone, is noticed within a minute."""
    family, kind, protocol, *_ = address
    sock = socket.socket(family, kind, protocol)
    sock.setblocking(False)
    sock.setsockopt(socket.SOL_SOCKET, socket.SO_KEEPALIVE, 1)
    options = (
        ("TCP_KEEPIDLE", KEEPALIVE_IDLE),
        ("TCP_KEEPINTVL", KEEPALIVE_INTERVAL),
        ("TCP_KEEPCNT", KEEPALIVE_PROBES),
    )
    for name, value in options:
        if hasattr(socket, name):
            sock.setsockopt(socket.IPPROTO_TCP, getattr(socket, name), value)
    return sock
