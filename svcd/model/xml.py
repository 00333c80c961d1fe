"""Escapes a text as the content of an XML element. Pure."""

from __future__ import annotations

from xml.sax.saxutils import escape

_REFERENCES = {"\t": "&#9;", "\n": "&#10;", "\r": "&#13;"}
"""White space as references, which readers neither trim nor normalise."""


def content(text: str) -> str:
    """`text` for use between two tags, so that a reader gets it back unchanged."""
    return escape(text, _REFERENCES)
