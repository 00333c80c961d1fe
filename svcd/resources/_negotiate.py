"""Media types of a request and of its answer. Pure.

Source: interface, "Authentication" 4; behaviour, Part I 5.
"""

from __future__ import annotations

from collections.abc import Iterator
from functools import lru_cache


@lru_cache(maxsize=256)
def accepts_json(accept: bytes) -> bool:
    """Whether an `Accept` header allows an answer in application/json.

    An empty header allows everything. The most specific range that matches decides by its q-value.
    An unreadable q-value counts as 1.
    """
    if not accept.strip():
        return True
    best = (-1, 0.0)
    for word, quality in _weighed(accept):
        rank = {"*/*": 0, "*": 0, "application/*": 1, "application/json": 2}.get(word)
        if rank is not None:
            best = max(best, (rank, quality))
    return best[0] >= 0 and best[1] > 0.0


@lru_cache(maxsize=256)
def takes_gzip(accept: bytes) -> bool:
    """Whether an `Accept-Encoding` header names gzip; "" does not."""
    return any(word in ("gzip", "x-gzip") and quality > 0.0 for word, quality in _weighed(accept))


def _weighed(header: bytes) -> Iterator[tuple[str, float]]:
    """The entries of an `Accept` header in lower case, with their q-values."""
    for part in header.decode("latin-1").split(","):
        word, *parameters = (piece.strip().lower() for piece in part.split(";"))
        quality = 1.0
        for parameter in parameters:
            name, _, value = parameter.partition("=")
            if name.strip() == "q":
                try:
                    quality = float(value)
                except ValueError:
                    quality = 1.0
        yield word, quality


@lru_cache(maxsize=256)
def is_identity(content_encoding: bytes) -> bool:
    """Whether a `Content-Encoding` means an unchanged body, as an empty header does."""
    return all(word in ("", "identity") for word, _ in _weighed(content_encoding))


@lru_cache(maxsize=256)
def is_of(types: tuple[str, ...], content_type: bytes) -> bool:
    """Whether a `Content-Type` is one of `types`; parameters are allowed."""
    return content_type.split(b";", 1)[0].strip().lower().decode("latin-1") in types


@lru_cache(maxsize=256)
def is_json(content_type: bytes) -> bool:
    """Whether a `Content-Type` is application/json; parameters are allowed."""
    return content_type.split(b";", 1)[0].strip().lower() == b"application/json"
