"""Can this object be stored, and read again? The door of the state: what passes here can always be written and sent.

The bytes are what the journal keeps. An object that can't be serialised must not get into the state: it would fail
the flush that it is part of, and every flush after that, and with them every request.
"""

from __future__ import annotations

import orjson

from nodewright.apiserver.values import ApiError, Obj

MAX_OBJECT_BYTES = 4 * 1024 * 1024
"""Size of one object as JSON, managedFields included: a body of the greatest size and what the server adds to it."""


def encode(obj: Obj) -> bytes:
    """Give the object as JSON. Raises ApiError 400 for what JSON can't hold, 413 for what is too large."""
    try:
        body = orjson.dumps(obj)
    except TypeError as error:  # orjson.JSONEncodeError: no JSON type, more than 64 bits, too deep, lone surrogates
        raise ApiError.bad_request(f"the object can't be stored: {error}") from None
    if len(body) > MAX_OBJECT_BYTES:
        message = f"Request entity too large: the object has {len(body)} bytes, limit is {MAX_OBJECT_BYTES}"
        raise ApiError(413, "RequestEntityTooLarge", message)
    return body
