"""A text as the content of an XML element. Pure."""

from __future__ import annotations

from xml.sax.saxutils import escape

_REFERENCES = {"\t": "&#9;", "\n": "&#10;", "\r": "&#13;"}
"""Readers that trim or normalise white space leave references alone."""


def content(text: str) -> str:
    """`text` between two tags, so that a reader has it back as it is."""
    return escape(text, _REFERENCES)
