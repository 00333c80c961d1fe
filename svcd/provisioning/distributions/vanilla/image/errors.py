"""The one error of the image recipe."""

from __future__ import annotations


class ImageError(Exception):
    """Says what failed, where, and the command that helps; fit to be shown as it is."""
