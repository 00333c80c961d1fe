"""Small jobs of MapReduce, which run within their master ("uber"), and options against it. Pure.

Tasks within the master use the master's heap and environment, and each has one attempt. So a job
that asks for a heap, memory, an environment or attempts of its own gets containers of its own. The
caller's own option always wins.
"""

from __future__ import annotations

import re
from collections.abc import Iterable
from typing import Final

ENABLED: Final = "mapreduce.job.ubertask.enable"
MOST_BYTES: Final = 16 << 20
"""Input of a small job."""
OF_TASKS: Final = (
    r"(mapred|mapreduce)\.(job\.|admin\.)?((map|reduce|child)\.)+"
    r"(java\.opts|memory\.mb|memory\.physical\.mb|cpu\.vcores|env(\..+)?|maxattempts|max\.attempts)"
    r"|mapreduce\.(map|reduce)\.resource\..+|mapreduce\.admin\.user\.env"
    r"|(mapreduce\.task\.)?io\.sort\.mb"
    r"|yarn\.app\.mapreduce\.am\.(resource\.(mb|memory|memory-mb)|command-opts|admin-command-opts)"
)
"""A regular expression of Python and Java: names of options that need tasks in containers."""
_PATTERN: Final = re.compile(OF_TASKS)


def keeps_tasks_apart(names: Iterable[str]) -> bool:
    """Whether one of these options needs tasks in containers of their own."""
    return any(_PATTERN.fullmatch(name) for name in names)
