"""Finds the processes that listen on a TCP port of this machine, from `/proc`. Reads only."""

from __future__ import annotations

import socket
import struct
from collections.abc import Iterator
from pathlib import Path
from typing import Final

_LISTENS: Final = "0A"
"""The state of a listening socket in `/proc/net/tcp`."""
_ANY: Final = "0.0.0.0"


def owners(host: str, port: int, proc: Path = Path("/proc")) -> list[int]:
    """The ids of the processes that listen on `port` at an address that overlaps `host`.

    host: an IPv4 address. Empty when none listens, and when this user may not see its files.
    """
    wanted = {f"socket:[{inode}]" for inode in _inodes(proc, host, port)}
    if not wanted:
        return []
    found = [int(each.name) for each in proc.iterdir() if each.name.isdigit()]
    return [pid for pid in sorted(found) if wanted & set(_files(proc / str(pid)))]


def command(pid: int, proc: Path = Path("/proc")) -> str:
    """The name of a process's program; "" when it has ended."""
    try:
        return (proc / str(pid) / "comm").read_text(encoding="utf-8", errors="replace").strip()
    except OSError:
        return ""


def _inodes(proc: Path, host: str, port: int) -> Iterator[str]:
    for table in ("tcp", "tcp6"):
        try:
            lines = (proc / "net" / table).read_text(encoding="ascii").splitlines()[1:]
        except OSError:
            continue  # the kernel has no IPv6
        for line in lines:
            fields = line.split()
            address, _, number = fields[1].rpartition(":")
            if fields[3] == _LISTENS and int(number, 16) == port and _meets(address, host):
                yield fields[9]


def _meets(address: str, host: str) -> bool:
    """Whether a listener at `address`, in the words of the kernel, excludes another at `host`."""
    if len(address) != 8:  # IPv6: the listeners that exclude an IPv4 one have all addresses
        return not int(address, 16)
    there = socket.inet_ntoa(struct.pack("=I", int(address, 16)))
    return _ANY in (there, host) or there == host


def _files(process: Path) -> Iterator[str]:
    """The open files of a process; none when it has ended or belongs to another user."""
    try:
        for each in (process / "fd").iterdir():
            yield str(each.readlink())
    except OSError:
        return
