"""Finds the listening TCP sockets of this machine, and their processes, in `/proc`. Reads only."""

from __future__ import annotations

import struct
from collections.abc import Iterator, Sequence
from contextlib import suppress
from ipaddress import IPv4Address, IPv6Address
from pathlib import Path
from typing import Final

from attrs import frozen

from svcd.model import redaction

_LISTENS: Final = "0A"
"""The state of a listening socket in `/proc/net/tcp`."""
WILDCARDS: Final = frozenset({"0.0.0.0", "::"})
_MOST_SHOWN: Final = 100
"""Characters of a command line."""


@frozen
class Listener:
    """A listening socket. address: an IPv4 address also when the socket is of IPv6.

    inode: the number of the socket, "0" in the tables of some systems.
    """

    address: str
    port: int
    inode: str

    def excludes(self, host: str, port: int) -> bool:
        """Whether nothing else can listen at this place. host: an IPv4 address."""
        return self.port == port and (self.address in WILDCARDS | {host} or host in WILDCARDS)


def parsed(table: str) -> Iterator[Listener]:
    """The listeners in the text of `/proc/net/tcp` or `/proc/net/tcp6`."""
    for line in table.splitlines()[1:]:
        fields = line.split()
        if len(fields) > 9 and fields[3] == _LISTENS:
            address, _, port = fields[1].rpartition(":")
            yield Listener(_address(address), int(port, 16), fields[9])


def _address(words: str) -> str:
    """The address that the kernel writes as hexadecimal words in the byte order of the host."""
    numbers = [int(words[at : at + 8], 16) for at in range(0, len(words), 8)]
    packed = struct.pack(f"={len(numbers)}I", *numbers)
    if len(packed) == 4:
        return str(IPv4Address(packed))
    address = IPv6Address(packed)
    return str(address.ipv4_mapped or address)


def listeners(proc: Path = Path("/proc")) -> Sequence[Listener]:
    """All listeners of this machine; [] on a system without `/proc/net`."""
    all_: list[Listener] = []
    for table in ("tcp", "tcp6"):
        with suppress(OSError):  # the kernel has no IPv6
            all_ += parsed((proc / "net" / table).read_text(encoding="ascii"))
    return all_


def owners(host: str, port: int, proc: Path = Path("/proc")) -> list[int]:
    """The ids of the processes that listen on `port` at an address that overlaps `host`.

    host: an IPv4 address. Empty when none listens, and when this user may not see its files.
    """
    others = [other for other in listeners(proc) if other.excludes(host, port)]
    return owners_of([other.inode for other in others], proc)


def owners_of(inodes: Sequence[str], proc: Path = Path("/proc")) -> list[int]:
    """The ids of the processes with one of these sockets that this user may see."""
    wanted = {f"socket:[{inode}]" for inode in inodes}
    if not wanted:
        return []
    pids = [int(folder.name) for folder in proc.iterdir() if folder.name.isdigit()]
    return [pid for pid in sorted(pids) if wanted & set(open_files(proc / str(pid)))]


def open_files(process: Path) -> Iterator[str]:
    """The open files of a process; none when it has ended or belongs to another user."""
    with suppress(OSError):
        for file in (process / "fd").iterdir():
            with suppress(FileNotFoundError):  # the process has just closed this one
                yield str(file.readlink())


def described(pid: int, proc: Path = Path("/proc")) -> str:
    """A process for people: its id, its command line without secrets, and its folder."""
    try:
        line = (proc / str(pid) / "cmdline").read_text(encoding="utf-8", errors="replace")
        words = line.rstrip("\0").split("\0")
        folder = (proc / str(pid) / "cwd").readlink()
    except OSError:
        return f"process {pid}"
    programs = [Path(word).name for word in words[:2]]  # an interpreter and its script
    text = redaction.hidden(" ".join([*programs, *words[2:]]), redaction.listed(words))
    text = " ".join(text.split())
    if len(text) > _MOST_SHOWN:
        text = text[:_MOST_SHOWN] + "…"
    return f"process {pid} ({text}, in {folder})"
