"""Watch streams: events from the store's cursor to the client, with as little work as possible in between."""

from __future__ import annotations

import asyncio
import logging
from collections.abc import Iterator, Sequence
from dataclasses import dataclass
from typing import Final

from aiohttp import web

from nodewright.apiserver.app.commits import Commits
from nodewright.apiserver.app.rendering import EventLines, View, line
from nodewright.apiserver.store import Store
from nodewright.apiserver.store.watching import Watch
from nodewright.apiserver.values import ApiError, Obj, WatchEvent

_LOG = logging.getLogger("nodewright.apiserver")
_HEADERS: Final = {"Content-Type": "application/json", "Cache-Control": "no-cache, private"}
_PORTION_BYTES = 256 * 1024
"""Bytes after which a stream waits for its client to take them."""
_GRACE_SECONDS = 5.0
"""How long past its end a stream may take to hand its last bytes to a client that reads slowly."""


@dataclass(frozen=True, slots=True)
class Pace:
    """When a stream ends, and how often it says where it is (None: never). In seconds."""

    ends_after: float
    bookmark_every: float | None


class Stream:
    """One running watch. It holds no events: the store's log does, and a client that falls behind it gets 410."""

    def __init__(self, watch: Watch, view: View, pace: Pace) -> None:
        self.watch = watch
        self.pace = pace
        self.over = False
        self.error: ApiError | None = None
        self.wake = asyncio.Event()
        self._view = view
        self._described = False

    def end(self, error: ApiError | None = None) -> None:
        """Let the stream end, after what is pending and an ERROR event if one is given."""
        self.over = True
        self.error = error
        self.wake.set()

    def render(self, events: Sequence[WatchEvent], lines: EventLines) -> Iterator[bytes]:
        """Serialise events as this client wants them, in portions that don't grow with the size of the objects."""
        portion: list[bytes] = []
        size = 0
        for event in events:
            if self._view.wanted.as_kind:
                portion.append(line(event.type, self._shape(event)))
            else:
                portion.append(lines.plain(event))
            size += len(portion[-1])
            if size >= _PORTION_BYTES:
                yield b"".join(portion)
                portion, size = [], 0
        if portion:
            yield b"".join(portion)

    def bookmark(self, revision: str) -> WatchEvent:
        """Make the event that says: nothing before this resourceVersion is missing."""
        resource = self.watch.resource
        metadata = {"resourceVersion": revision, "creationTimestamp": None}
        obj = {"kind": resource.kind, "apiVersion": resource.api_version, "metadata": metadata}
        return WatchEvent("BOOKMARK", obj, revision)

    def _shape(self, event: WatchEvent) -> Obj:
        shaped = self._view.one(event.object)
        if shaped.get("kind") != "Table":
            return shaped
        if self._described:
            return {**shaped, "columnDefinitions": None}
        self._described = True
        return shaped


class LiveWatches:
    """The streams that are running, so that they can be ended from outside."""

    def __init__(self) -> None:
        self._streams: set[Stream] = set()
        self._closed = False

    def __len__(self) -> int:
        return len(self._streams)

    def add(self, stream: Stream) -> None:
        """Remember a stream that begins; it ends at once if the plane is stopping."""
        self._streams.add(stream)
        if self._closed:
            stream.end()

    def remove(self, stream: Stream) -> None:
        """Forget a stream that has ended."""
        self._streams.discard(stream)

    def cut(self, resource: str | None = None, error: ApiError | None = None) -> int:
        """End the streams of a resource (None: all); give their number."""
        chosen = [s for s in self._streams if resource in (None, s.watch.resource.group_resource)]
        for stream in chosen:
            stream.end(error)
        return len(chosen)

    def close(self) -> None:
        """End all streams, and those that still come."""
        self._closed = True
        self.cut()


class Streamer:
    """Serves watches."""

    def __init__(self, store: Store, commits: Commits, live: LiveWatches) -> None:
        self._store = store
        self._commits = commits
        self._live = live
        self._lines = EventLines()

    async def serve(self, request: web.BaseRequest, stream: Stream) -> web.StreamResponse:
        """Answer with the stream until its time is up, the client goes, the kind vanishes or the plane stops."""
        response = web.StreamResponse(headers=_HEADERS)
        self._live.add(stream)
        forget = self._commits.listen(stream.watch.group_resource, stream.wake.set)
        timer = asyncio.get_running_loop().call_later(stream.pace.ends_after, stream.end)
        try:
            async with asyncio.timeout(stream.pace.ends_after + _GRACE_SECONDS):
                await response.prepare(request)
                await self._pump(response, stream)
                await response.write_eof()
        except (TimeoutError, ConnectionError):
            if request.transport is not None:
                request.transport.abort()
        finally:
            timer.cancel()
            forget()
            self._live.remove(stream)
        return response

    async def _pump(self, response: web.StreamResponse, stream: Stream) -> None:
        bookmarks = _Bookmarks(stream)
        try:
            while True:
                stream.wake.clear()
                await self._send_next(response, stream, bookmarks)
                if stream.watch.pending and stream.error is None:
                    await asyncio.sleep(0)
                elif stream.over:
                    return
                elif stream.watch.ended:
                    stream.end()
                else:
                    await stream.wake.wait()
        finally:
            bookmarks.cancel()

    async def _send_next(self, response: web.StreamResponse, stream: Stream, bookmarks: _Bookmarks) -> None:
        """Send the next events, and after the last one of a round a bookmark if one is due."""
        try:
            if stream.error is not None:
                raise stream.error
            self._commits.make_durable()
            events = stream.watch.poll() if stream.watch.pending else []
            if bookmarks.due and not stream.watch.pending:
                events.append(stream.bookmark(self._store.resource_version))
                bookmarks.restart()
            for portion in stream.render(events, self._lines):
                await response.write(portion)
        except ConnectionError:
            raise
        except ApiError as error:
            await self._refuse(response, stream, error)
        except Exception:
            _LOG.exception("a watch of %s failed", stream.watch.group_resource)
            why = ApiError.internal("the server failed on this watch; its log says why")
            await self._refuse(response, stream, why)

    async def _refuse(self, response: web.StreamResponse, stream: Stream, error: ApiError) -> None:
        stream.end(error)
        await response.write(line("ERROR", error.status()))


class _Bookmarks:
    """Says when a bookmark is due: at regular times, and at the end of a stream."""

    def __init__(self, stream: Stream) -> None:
        self._stream = stream
        self._due = False
        self._timer: asyncio.TimerHandle | None = None
        self._sent_last = False
        self.restart()

    @property
    def due(self) -> bool:
        """True if the client should learn its place now."""
        if self._stream.pace.bookmark_every is None or self._sent_last:
            return False
        self._sent_last = self._stream.over
        return self._due or self._stream.over

    def restart(self) -> None:
        """Count from now."""
        self.cancel()
        self._due = False
        every = self._stream.pace.bookmark_every
        if every is not None:
            self._timer = asyncio.get_running_loop().call_later(every, self._fall_due)

    def cancel(self) -> None:
        """Stop counting."""
        if self._timer is not None:
            self._timer.cancel()

    def _fall_due(self) -> None:
        self._due = True
        self._stream.wake.set()
