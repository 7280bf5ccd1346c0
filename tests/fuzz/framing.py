"""Requests as bytes, with damage to HTTP's own framing: what no client library would let a test send."""

from __future__ import annotations

import asyncio
import contextlib
import random
import re
import ssl
from collections.abc import Callable, Mapping, Sequence
from dataclasses import dataclass, field

from tests.fuzz.inputs import damaged

CRLF = b"\r\n"
STATUS = re.compile(rb"^HTTP/1\.[01] ([0-9]{3})", re.MULTILINE)
NOT_IMPLEMENTED = frozenset({501, 505})
"""What a server says of methods, encodings and versions that it has not: the one kind of 5xx that is no fault of it."""
GIVE_UP = 300.0
"""Seconds after which a connection that the server keeps open counts as a hang; its own bounds are far below."""


@dataclass(frozen=True, slots=True)
class Asked:
    """A request before it is written. ``fields`` in order, a name may come twice."""

    method: bytes
    target: bytes
    fields: tuple[tuple[bytes, bytes], ...] = ()
    body: bytes = b""
    version: bytes = b"HTTP/1.1"

    def written(self) -> bytes:
        lines = [b" ".join((self.method, self.target, self.version)), *(k + b": " + v for k, v in self.fields)]
        return CRLF.join(lines) + CRLF + CRLF + self.body

    def with_fields(self, *fields: tuple[bytes, bytes], without: bytes = b"") -> Asked:
        kept = tuple(each for each in self.fields if each[0].lower() != without.lower())
        return Asked(self.method, self.target, (*kept, *fields), self.body, self.version)


def whole(method: bytes, target: bytes, fields: Mapping[bytes, bytes], body: bytes = b"") -> Asked:
    """A request as it should be."""
    length = ((b"Content-Length", str(len(body)).encode()),) if body else ()
    return Asked(method, target, ((b"Host", b"localhost"), *fields.items(), *length), body)


def _length_lies(rng: random.Random, asked: Asked) -> bytes:
    said = str(len(asked.body)).encode()
    wrong = (
        b"-1", b"+" + said, b"0x10", said + b", " + said, said + b", 1", b" " + said, b"", b"1e3", b"9" * 30, b"99999",
        str(max(len(asked.body) - 3, 0)).encode(), str(len(asked.body) + 7).encode(), b"\xd9\xa1", said + b"\x00",
    )  # fmt: skip
    fields = [
        (rng.choice((b"Content-Length", b"content-length")), rng.choice(wrong)) for _ in range(rng.randrange(1, 3))
    ]
    return asked.with_fields(*fields, without=b"Content-Length").written()


def _chunks(rng: random.Random, asked: Asked) -> bytes:
    size = f"{len(asked.body):x}".encode()
    body = rng.choice((
        size + CRLF + asked.body + CRLF + b"0" + CRLF + CRLF,
        size + b";x=" + b"y" * rng.choice((1, 9000)) + CRLF + asked.body + CRLF + b"0" + CRLF + CRLF,
        b"f" * rng.choice((7, 15, 16, 17, 400)) + CRLF + asked.body,
        b"-1" + CRLF + asked.body + CRLF + b"0" + CRLF + CRLF,
        size + b"\n" + asked.body + b"\n0\n\n",
        size + CRLF + asked.body + b"xx" + CRLF + b"0" + CRLF + CRLF,
        b"0" + CRLF + b"X: y" + CRLF * rng.choice((1, 2)),
        b"zz" + CRLF + asked.body,
        b"0" + CRLF,
        (b"1" + CRLF + b"a" + CRLF) * 300,
        asked.body,
    ))  # fmt: skip
    coding = rng.choice(
        (b"chunked",) * 4 + (b"Chunked", b"chunked, chunked", b"gzip, chunked", b"x", b"identity", b"chun\x0bked")
    )
    without = b"Content-Length" if rng.random() < 0.7 else b"-"
    changed = asked.with_fields((b"Transfer-Encoding", coding), without=without)
    return Asked(changed.method, changed.target, changed.fields, body, changed.version).written()


def _soup(rng: random.Random, asked: Asked) -> bytes:
    odd = (
        (b"Host", b"b"), (b"Host", b""), (b"Expect", b"100-continue"), (b"Expect", b"x"), (b"Upgrade", b"h2c"),
        (b"Upgrade", b"websocket"), (b"Connection", b"Upgrade, HTTP2-Settings"), (b"Connection", b"close, keep-alive"),
        (b"X A", b"b"), (b"X\x00", b"b"), (b"", b"b"), (b"X", b"a\x00b"), (b"X", b"\xff\xfe"), (b"X" * 9000, b"b"),
        (b"X", b"b" * 9000), (b"X", b"b" + CRLF + b" folded"), (b"Content-Encoding", b"br"), (b"Range", b"bytes=-1"),
        (b"Authorization", b"Bearer \xff"), (b"Authorization", b"Basic ===="), (b"Cookie", b"=;=;" * 300),
        (b"Origin", b"null"), (b"Origin", b"http://["), (b"Content-Type", b'a/b; charset="\xff'),
        (b"Accept", b";;q=\x01"),
        (b"Content-Type", b"application/json; charset=utf-77"), (b"X-Forwarded-For", b"1" * 300),
        (b"Accept", b"*/*;" * 900),
    )  # fmt: skip
    number = rng.choice((1, 2, 3, 200))
    return asked.with_fields(*(rng.choice(odd) for _ in range(number))).written()


def _target(rng: random.Random, asked: Asked) -> bytes:
    path = asked.target
    target = rng.choice((
        b"http://evil.test" + path, b"https://localhost:443" + path, b"*", b"evil.test:443", b"//evil.test" + path,
        b"http://[" + path, b"http://a:b@c" + path, b"http://h:99999999" + path, path + b"#x",
        path + b"?" + b"a=%" * 300,
        b"/../.." + path, b"/%2e%2e" + path, path + b"%00", path + b"%", path + b"%zz", b"\\\\x" + path, path + b"\xff",
        path + b"/" + b"a" * 9000, b"", path + b" x", path.replace(b"/", b"//"), path + b";a=b", b"/" + b"../" * 900,
        path + b"%0d%0aX:%20y", b"?" + path, b"#",
    ))  # fmt: skip
    method = rng.choice(
        (asked.method, asked.method, b"CONNECT", b"OPTIONS", b"TRACE", b"get", b"X" * 300, b"G\x00T", b"PRI")
    )
    version = rng.choice((b"HTTP/1.1",) * 6 + (b"HTTP/1.0", b"HTTP/2.0", b"HTTP/0.9", b"HTTP/9.9", b"http/1.1", b""))
    return Asked(method, target, asked.fields, asked.body, version).written()


def _injected(rng: random.Random, asked: Asked) -> bytes:
    text = asked.written()
    piece = rng.choice(
        (b"\r", b"\n", CRLF, CRLF + b"X: y", CRLF + CRLF, b"\n\n", b"\r\r\n", b"\x00", b"\n GET / HTTP/1.1\n")
    )
    head = text.index(CRLF + CRLF)
    at = rng.randrange(head)
    if rng.random() < 0.3:
        return text.replace(CRLF, piece)
    return text[:at] + piece + text[at:]


def _half(rng: random.Random, asked: Asked) -> bytes:
    text = asked.written()
    return text[: rng.randrange(len(text))]


def _pipelined(rng: random.Random, asked: Asked) -> bytes:
    texts = [
        rng.choice(DAMAGES[:-1])(rng, asked) if rng.random() < 0.2 else asked.written()
        for _ in range(rng.randrange(2, 20))
    ]
    return b"".join(texts) + (_half(rng, asked) if rng.random() < 0.5 else b"")


def _bytes(rng: random.Random, asked: Asked) -> bytes:
    return damaged(rng, asked.written())


DAMAGES: Sequence[Callable[[random.Random, Asked], bytes]] = (
    _length_lies, _chunks, _soup, _target, _injected, _half, _bytes, _pipelined,
)  # fmt: skip


def framed(rng: random.Random, asked: Asked) -> bytes:
    """The request with damage of one kind."""
    return rng.choice(DAMAGES)(rng, asked)


@dataclass(slots=True)
class Wire:
    """A server's address; ``seen``: statuses of all answers so far."""

    host: str
    port: int
    tls: ssl.SSLContext | None = None
    seen: set[int] = field(default_factory=set)

    async def send(self, sent: bytes) -> bytes:
        """All that the server answers on one connection until it closes that; it has to, whatever was sent."""
        found = b""
        async with asyncio.timeout(GIVE_UP):
            reader, writer = await asyncio.open_connection(self.host, self.port, ssl=self.tls)
            try:
                writer.write(sent)
                while part := await reader.read(1 << 16):
                    found += part
            except (ConnectionError, ssl.SSLError):
                pass
            finally:
                writer.transport.abort()
                with contextlib.suppress(ConnectionError, ssl.SSLError):
                    await writer.wait_closed()
        return found

    async def must_answer(self, sent: bytes) -> None:
        """Raises AssertionError for an answer of 5xx that is the server's own fault."""
        found = await self.send(sent)
        codes = {int(code) for code in STATUS.findall(found)}
        self.seen |= codes
        assert not [code for code in codes - NOT_IMPLEMENTED if code >= 500], (found[:1000], sent[:1000])
        assert b"Traceback" not in found, (found[:1000], sent[:1000])

    async def must_serve(self, asked: Asked) -> None:
        """The next request as it should be is answered; again and again where the machine is too slow for its time."""
        text = asked.with_fields((b"Connection", b"close"), without=b"Connection").written()
        async with asyncio.timeout(GIVE_UP):
            while True:
                found = STATUS.search(await self.send(text))
                if found is not None and found[1] == b"200":
                    return
