"""The formats of names: one pattern each, used by the request shapes and by the upload's path.

Patterns are ASCII only and anchored. `svcd.model.shapes` refuses control characters in every text
of a body, also a trailing newline, which passes Python's `$`.

Source: behaviour, Part I 7 and Part II 1.3.
"""

from __future__ import annotations

import re

MAX_NAME = 50
"""Most characters of a name."""

HOST_NAME = r"^[A-Za-z]([A-Za-z0-9-]*[A-Za-z0-9])?(\.[A-Za-z]([A-Za-z0-9-]*[A-Za-z0-9])?)*$"
"""Clusters, node groups, both templates: dot-separated labels that are usable as host names."""

DATA_NAME = r"^[A-Za-z0-9][A-Za-z0-9._-]*$"
"""Data sources, binaries and jobs: may start with a digit and hold `_`."""

TAG = r"^[A-Za-z0-9]([A-Za-z0-9_-]*[A-Za-z0-9])?(\.[A-Za-z0-9]([A-Za-z0-9_-]*[A-Za-z0-9])?)*$"
"""Image tags; a label may start with a digit (`3.5.0`)."""

MAX_TAG = 240
"""Most characters of a tag: it is part of the name of an image property (`_svc_tag_<tag>`), which
may have 255 characters."""

USERNAME = r"^[A-Za-z_][A-Za-z0-9._-]*$"
"""Login name of an image's operating system."""

MOUNT_PREFIX = r"^(/[A-Za-z0-9_-]+)+$"
"""Folders of volumes: an absolute path of plain segments, to which a number is appended."""

MOMENT = r"^\d{4}-\d\d-\d\d[ T]\d\d:\d\d(:\d\d(\.\d{1,6})?)?Z?$"
"""A time in UTC, as `created_at` shows it or as ISO 8601 writes it."""

_DATA_NAME = re.compile(DATA_NAME)

DESCRIPTIONS = {
    HOST_NAME: (
        "letters, digits and '-' in labels separated by '.', each label starting with a letter "
        "and ending with a letter or digit"
    ),
    DATA_NAME: "letters, digits, '.', '_' and '-', starting with a letter or digit",
    TAG: "letters, digits, '-' and '_' in labels separated by '.'",
    USERNAME: "a login name: letters, digits, '.', '_' and '-', starting with a letter or '_'",
    MOUNT_PREFIX: "an absolute path like /volumes/disk of letters, digits, '-' and '_'",
    MOMENT: "a time in UTC like 2026-01-31T18:00:00Z",
}
"""The description of each pattern in the texts of faults."""


def is_data_name(text: str) -> bool:
    """Whether `text` may name a data source, binary or job."""
    return len(text) <= MAX_NAME and bool(_DATA_NAME.match(text)) and not text.endswith("\n")
