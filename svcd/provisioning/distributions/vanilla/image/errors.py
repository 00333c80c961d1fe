"""The one error of the image recipe."""

from __future__ import annotations


class ImageError(Exception):
    """A text for people: the failure, its place, and the command that helps."""
