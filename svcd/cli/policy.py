"""`svcd config policy`: the roles that each request needs, from the routes that the door serves.

`python -m svcd.cli.policy` prints the list of docs/security.md.
"""

from __future__ import annotations

import textwrap
from collections.abc import Mapping, Sequence
from typing import Any

from svcd.resources.api import Needs, policy
from svcd.settings import Auth

_PREFIX = "/<tenant_id>"
_JOINED = "\0"
"""Stands for a blank at which no line ends."""


def requests() -> Sequence[tuple[Needs, str, str, str]]:
    """Need, method, versions and path of every request, in the order of the routes."""
    versions: dict[tuple[Needs, str, str], list[str]] = {}
    for method, path, needs in policy():
        version, tenant, below = path.partition(_PREFIX)
        key = (needs, method, below if tenant else path)
        versions.setdefault(key, []).append(version.strip("/") if tenant else "-")
    return [(needs, method, " ".join(v), path) for (needs, method, path), v in versions.items()]


def meanings(auth: Auth) -> Mapping[Needs, str]:
    """Need -> the callers who may send its requests."""
    if auth.mode == "none":
        return dict.fromkeys(Needs, "everybody who reaches the port (auth.mode=none)")
    return {
        Needs.OPEN: "everybody who reaches the port",
        Needs.READ: f"one of the roles {', '.join(auth.read_roles)} (auth.read_roles)",
        Needs.WRITE: f"one of the roles {', '.join(auth.write_roles)} (auth.write_roles)",
    }


def table(auth: Auth) -> str:
    """The table for a terminal."""
    lines = [f"{needs.value:5}  {who}" for needs, who in meanings(auth).items()]
    lines.append("Users and passwords of data sources and binaries are shown to writers only.")
    lines.append("")
    rows = requests()
    wide = max(len(versions) for _, _, versions, _ in rows)
    lines += [
        f"{needs.value:5}  {method:6}  {versions:{wide}}  {path}"
        for needs, method, versions, path in rows
    ]
    return "\n".join(lines)


def rows(auth: Auth) -> Mapping[str, Any]:
    """The same as an object for JSON."""
    return {
        "needs": {needs.value: who for needs, who in meanings(auth).items()},
        "requests": [
            {"needs": needs.value, "method": method, "versions": versions.split(), "path": path}
            for needs, method, versions, path in requests()
        ],
    }


def markdown() -> str:
    """The list for the docs: the requests of each need and version."""
    routes: dict[tuple[Needs, str], list[str]] = {}
    for needs, method, versions, path in requests():
        routes.setdefault((needs, versions), []).append(f"`{method} {path}`")
    return "\n".join(_item(*key, routes[key]) for key in sorted(routes, key=_place))


def _place(key: tuple[Needs, str]) -> tuple[int, str]:
    needs, versions = key
    return list(Needs).index(needs), versions


def _item(needs: Needs, versions: str, shown: Sequence[str]) -> str:
    of = "" if versions == "-" else f", {' and '.join(versions.split())}"
    whole = ", ".join(request.replace(" ", _JOINED) for request in shown)
    lines = textwrap.fill(
        f"- **{needs.value}**{of}: {whole}", 120, subsequent_indent="  ", break_on_hyphens=False
    )
    return lines.replace(_JOINED, " ")


if __name__ == "__main__":
    print(markdown())
