"""The contents of an edited file: the jobs and binaries that `svcd run` has made of it. Pure.

`job_files` gives them names, from which they are known again.
"""

from __future__ import annotations

import re
from collections.abc import Mapping
from typing import Any

from svcd.cli.job_files import DIGITS, Rows, content_of, digest_of, plain, with_digest


def versions(name: str, known: Rows) -> Rows:
    """The jobs that `name` means: that of this name, and those that `job` makes of later contents.

    known: the jobs of the tenant.
    """
    return [
        row for row in known if row["name"] in (name, with_digest(name, digest_of(content_of(row))))
    ]


def program_of(row: Mapping[str, Any]) -> str:
    """The name of the file that a job runs; "" when it has none."""
    files = [*(row.get("mains") or ()), *(row.get("libs") or ())]
    return _file_of(files[0]) if files else ""


def later_jobs(known: Rows) -> Rows:
    """The jobs that `svcd run` made of the later contents of files."""
    return [row for row in known if str(row["name"]).endswith(f"-{digest_of(content_of(row))}")]


def later_binaries(known: Rows) -> Rows:
    """The job binaries that `svcd run` made of the later contents of files."""
    return [row for row in known if _is_later(row)]


def newest(known: Rows) -> Rows:
    """Job binaries, and of those with the contents of one file the newest.

    The field `contents` has their number. known: the job binaries of the tenant, oldest first.
    """
    files: dict[tuple[str, str], list[Mapping[str, Any]]] = {}
    for row in known:
        file = _file_of(row)
        is_content = _is_later(row) or row["name"] == plain(file)
        files.setdefault((file, "" if is_content else str(row["id"])), []).append(row)
    return [{**rows[-1], "contents": len(rows)} for rows in files.values()]


def _is_later(row: Mapping[str, Any]) -> bool:
    digits = re.search(rf"-([0-9a-f]{{{DIGITS}}})(\.[^.]*)?\Z", str(row["name"]))
    return digits is not None and row["name"] == with_digest(_file_of(row), digits.group(1))


def _file_of(row: Mapping[str, Any]) -> str:
    return str(row.get("file_name") or row["name"])
