"""Texts of the API in the words of the command line: a command in the place of a request. Pure.

The API's texts are for all its callers, so their advice names requests. A person at a terminal
needs the command that sends the request.
"""

from __future__ import annotations

import re
from typing import Final

_WORDS: Final = (
    (re.compile(r"register it by POST images/(\S+)"),
     r"svcd image register \1 --user LOGIN registers it"),
    (re.compile(r"retry with an empty resize"), "retry with svcd cluster retry"),
    (re.compile(r"an empty resize (retries it|replaces)"), r"svcd cluster retry \1"),
    (re.compile(r"in the params of job_configs"), "with svcd run -p NAME=VALUE"),
    (re.compile(r"(use|delete it with) force=true"), "use svcd cluster rm --force"),
    (re.compile(r"the header X-Auth-Token is missing: get a token from the identity service"),
     "the daemon accepts only requests with a login"),
    (re.compile(r"\b(GET|POST|PUT|DELETE) /v1\S+ needs one of"), "this command needs one of"),
    (re.compile(r"^\$(\.|: )", re.M), ""),
)  # fmt: skip
"""Words of the API, and those of the command line."""


def in_commands(text: str) -> str:
    """`text` with the commands in the place of the requests that it names."""
    for pattern, words in _WORDS:
        text = pattern.sub(words, text)
    return text


def in_one_line(text: str) -> str:
    """`text`, which has a fault in each line, as one line."""
    return "; ".join(line.strip() for line in text.splitlines() if line.strip())
