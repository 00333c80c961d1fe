"""The steps that turn a plain Debian or Ubuntu server into one whose snapshot is an image. Pure.

Each step is a script for `sh` that the login user of the server runs. A script that fails writes
one line for people on stderr. `docs/openstack.md` takes the same steps with virt-customize.

Note: machines of the embedded cloud. They are folders of svcd's own host, where `sudo` does
nothing. There these scripts would install packages on the host and delete its SSH keys, so each of
them refuses such a machine.
"""

from __future__ import annotations

import shlex
from typing import Final

PREFIX: Final = "/opt/svcd/vanilla"
"""The place of the software tree on a server."""
PACKAGES: Final = ("openjdk-17-jre-headless", "e2fsprogs", "python3", "sudo")
"""The packages that a server needs beside the software tree, by their names in Debian."""
PACKAGES_MIB: Final = 700
"""Room on the server's disk for these packages, their lists and downloads."""
CLASS_DATA_MIB: Final = 450
"""Room for the archives of class data, which are made on the server."""

_GUARD: Final = """\
set -eu
if [ -n "${SVCD_MACHINE_ROOT:-}" ]; then
    echo "this is a machine of the embedded cloud, whose clusters need no image" >&2
    exit 1
fi
"""

READY: Final = f"""{_GUARD}
if command -v cloud-init >/dev/null; then
    timeout 300 cloud-init status --wait >/dev/null 2>&1 || :
fi
if ! sudo -n true 2>/dev/null; then
    echo "the user $(id -un) may not use sudo without a password:" \\
        "name another login with --user" >&2
    exit 1
fi
"""
"""Waits for the end of the first boot, and checks that the user may change the server."""

INSTALL: Final = f"""{_GUARD}
missing=
for each in {" ".join(PACKAGES)}; do
    command -v "$each" >/dev/null && continue
    dpkg-query -W -f='${{Status}}' "$each" 2>/dev/null | grep -q 'ok installed' && continue
    missing="$missing $each"
done
[ -n "$missing" ] || exit 0
if ! command -v apt-get >/dev/null; then
    echo "the base image has no apt-get to install$missing: take one of Debian or Ubuntu" >&2
    exit 1
fi
get="sudo env DEBIAN_FRONTEND=noninteractive apt-get -q -y
    -o DPkg::Lock::Timeout=300 -o Acquire::Retries=3 -o Acquire::http::Timeout=30"
$get update >/dev/null
$get --no-install-recommends install $missing >/dev/null
"""
"""Installs those of PACKAGES that the server does not have."""

EMPTY: Final = f"""{_GUARD}
sudo rm -rf {PREFIX}
sudo mkdir -p {PREFIX}
"""
"""Makes the folder of the software tree, empty."""

UNPACK: Final = f"""{_GUARD}
sudo tar -x --no-same-owner -C {PREFIX}
"""
"""Adds the files of the tar archive on stdin to the software tree. Safe to repeat."""

CLASS_DATA: Final = f"""{_GUARD}
[ -x {PREFIX}/bin/class-data ] || exit 0
sudo timeout 480 {PREFIX}/bin/class-data ||
    echo "no class data: daemons and jobs of clusters will start later" >&2
"""
"""Makes the archives of class data, which depend on the tree's place and on the server's Java.

A server can do without them, so this step does not fail. A tree of an older recipe has none.
`timeout` runs as root, because no other user may end a program of root.
"""

_CLEAN: Final = """\
set -eu
if command -v apt-get >/dev/null; then
    apt-get clean
    rm -rf /var/lib/apt/lists/*
fi
if command -v cloud-init >/dev/null; then
    cloud-init clean --logs >/dev/null
fi
rm -f /etc/ssh/ssh_host_*
rm -f /root/.ssh/authorized_keys /home/*/.ssh/authorized_keys
rm -f /root/.*_history /home/*/.*_history
if [ -e /etc/machine-id ]; then
    truncate -s 0 /etc/machine-id
fi
rm -f /var/lib/systemd/random-seed
sync
"""

CLEAN: Final = f"""{_GUARD}
sudo sh -c {shlex.quote(_CLEAN)}
"""
"""Removes what belongs to this one server: keys, its id, histories, logs. The last step.

cloud-init makes the keys of the SSH server and the id anew at the first boot of each server.
"""


def room(tree_mib: int) -> str:
    """Checks that the disk of the server has room. tree_mib: size of the software tree."""
    needed = tree_mib + PACKAGES_MIB + CLASS_DATA_MIB
    return f"""{_GUARD}
free=$(df -Pm / | awk 'NR == 2 {{print $4}}')
if [ "$free" -lt {needed} ]; then
    echo "the disk has $free MiB free, and the software needs {needed} MiB:" \\
        "choose a flavor with a larger disk" >&2
    exit 1
fi
"""


def verify(list_sha256: str, hadoop: str) -> str:
    """Checks the software tree as the login user. list_sha256: of the tree's list of digests."""
    return f"""{_GUARD}
cd {PREFIX}
if ! echo "{list_sha256}  files.sha256" | sha256sum -c --status; then
    echo "{PREFIX}/files.sha256 is not the list of the tree on this machine" >&2
    exit 1
fi
if ! said=$(sha256sum -c --quiet files.sha256 2>&1); then
    printf '%s\\n' "$said" | tail -n 3 >&2
    exit 1
fi
said=$(bin/hadoop version 2>&1) || :
if ! printf '%s\\n' "$said" | grep -qxF {shlex.quote(f"Hadoop {hadoop}")}; then
    echo "bin/hadoop version does not say Hadoop {hadoop}:" >&2
    printf '%s\\n' "$said" | tail -n 3 >&2
    exit 1
fi
"""
