"""The shell commands that svcd runs on machines, and the readers of their output. Pure.

The commands need POSIX sh and coreutils. They run alike on servers and on machines that are folders
(`SVCD_MACHINE_ROOT` is set there; they have no `sudo`).
"""

from __future__ import annotations

import shlex
from collections.abc import Sequence
from typing import Final

from svcd.model.cluster import Cluster, MachineFacts
from svcd.provisioning.distributions.spi import WriteFile

DEFAULT_PREFIX = "/opt/svcd/vanilla"

FACTS = f"""\
: svcd-facts
printf 'home=%s\\n' "$HOME"
printf 'root=%s\\n' "${{SVCD_MACHINE_ROOT:-}}"
prefix=${{SVCD_VANILLA_PREFIX:-{DEFAULT_PREFIX}}}
printf 'prefix=%s\\n' "$prefix"
for each in "$prefix"/*/; do
    [ ! -d "$each" ] || printf 'software=%s\\n' "$(basename "$each")"
done
printf 'cores=%s\\n' "$(getconf _NPROCESSORS_ONLN 2>/dev/null || echo 1)"
printf 'memory_mib=%s\\n' "$(awk '/^MemTotal:/ {{print int($2/1024)}}' /proc/meminfo)"
"""


_MOST_FOLDERS: Final = 100
_MOST_NAME: Final = 100
_MOST_DIGITS: Final = 12
"""Folders of software, characters of their names, digits of a number: the rest is left out."""


def facts(output: str) -> MachineFacts | None:
    """The facts in the output of FACTS; None for other text (a banner alone, a cut line)."""
    values: dict[str, str] = {}
    software: list[str] = []
    for line in output.splitlines():
        name, equals, value = line.partition("=")
        if equals and name.strip() == "software":
            software.append(value.strip()[:_MOST_NAME])
        elif equals:
            values[name.strip()] = value.strip()
    home = values.get("home", "")
    if not home.startswith("/"):
        return None
    return MachineFacts(
        home=home,
        root=values.get("root", ""),
        prefix=values.get("prefix", "") or DEFAULT_PREFIX,
        software=tuple(software[:_MOST_FOLDERS]),
        cores=_number(values.get("cores"), 1),
        memory_mib=_number(values.get("memory_mib"), 1024),
    )


def _number(text: str | None, default: int) -> int:
    if text is None or not text.isdecimal() or len(text) > _MOST_DIGITS:
        return default
    return int(text) or default


def hosts(cluster: Cluster) -> str:
    """The lines of the hosts file for all machines of the cluster that have an address."""
    lines = [
        f"{i.internal_ip} {i.instance_name}\n"
        for i in cluster.instances()
        if i.internal_ip is not None
    ]
    return "# svcd begin\n127.0.0.1 localhost\n" + "".join(lines) + "# svcd end\n"


def home_of(user: str) -> str:
    """The home folder of a user on a server."""
    return f"/home/{user}"


def as_user(user: str, command: str) -> str:
    """The command of the login user that runs `command` as the system user `user`, in its home."""
    inner = f"cd {home_of(user)} || exit\n{command}"
    words = f"su -s /bin/sh {user} -c {shlex.quote(inner)}"
    return f'root=; [ "$(id -u)" = 0 ] || root="sudo -n"; exec $root {words}'


_PREPARE = """\
set -eu
root=${SVCD_MACHINE_ROOT:-}
hosts=${SVCD_HOSTS_FILE:-/etc/hosts}
as_root() {
    if [ -n "$root" ] || [ "$(id -u)" = 0 ]; then "$@"; else sudo -n "$@"; fi
}
owner=$(id -u):$(id -g) private=
own() {
    as_root chown "$owner" "$1"
    if [ -n "$private" ]; then as_root chmod 700 "$1"; fi
}
account() {
    user=$1 home=$2
    if ! id "$user" >/dev/null 2>&1; then
        as_root useradd --system --user-group --home-dir "$home" --no-create-home \\
            --shell /bin/sh "$user"
    fi
    if command -v sudo >/dev/null 2>&1 && as_root sudo -n -l -U "$user" true >/dev/null 2>&1; then
        echo "the user $user may use sudo here, and jobs run as $user:" \\
            "remove this user or its rights from the image" >&2
        return 1
    fi
    owner=$user: private=1
    as_root mkdir -p "$home"
    own "$home"
}
volume() {
    device=$1 id=$2 point=$3
    if [ -n "$root" ]; then
        folder=$root/dev/${device##*/}
        [ -d "$folder" ] || { echo "volume $id is not at $folder" >&2; return 75; }
        mkdir -p "$root${point%/*}"
        if [ -L "$root$point" ]; then rm -f "$root$point"; fi
        ln -s "$folder" "$root$point"
        return 0
    fi
    if mountpoint -q "$point" 2>/dev/null; then own "$point"; return 0; fi
    serial=$(printf %.20s "$id")
    tries=0
    while :; do
        for found in /dev/disk/by-id/*"$serial"*; do
            if [ -b "$found" ]; then device=$found; break 2; fi
        done
        if [ -b "$device" ] && [ "$tries" -ge 2 ]; then break; fi
        tries=$((tries + 1))
        [ "$tries" -le 20 ] || { echo "volume $id: no device $device" >&2; return 75; }
        sleep 0.5
    done
    if ! as_root blkid -p "$device" >/dev/null 2>&1; then as_root mkfs.ext4 -q -F "$device"; fi
    as_root mkdir -p "$point"
    as_root mount "$device" "$point"
    if ! grep -q " $point " /etc/fstab; then
        uuid=$(as_root blkid -s UUID -o value "$device")
        echo "UUID=$uuid $point ext4 defaults,nofail 0 2" | as_root tee -a /etc/fstab >/dev/null
    fi
    own "$point"
}
new=$(mktemp)
trap 'rm -f "$new"' EXIT
if [ -f "$hosts" ]; then
    sed '/^# svcd begin/,/^# svcd end/d;/^127\\.0\\.1\\.1[[:space:]]/d' "$hosts" >"$new"
else
    mkdir -p "${hosts%/*}"
fi
cat >>"$new"
as_root cp "$new" "$hosts"
if [ -z "$root" ]; then as_root chmod 644 "$hosts"; fi
"""


def prepare(volumes: Sequence[tuple[str, str, str]], user: str = "") -> str:
    """The command that installs the hosts lines of its stdin and mounts volumes.

    volumes: (device, volume id, mount point without root) of each. user: the system user without
    sudo that the command creates, and that owns the volumes; "": the login user owns them.
    """
    calls = f"account {shlex.quote(user)} {shlex.quote(home_of(user))}\n" if user else ""
    calls += "".join(
        f"volume {shlex.quote(d)} {shlex.quote(i)} {shlex.quote(p)}\n" for d, i, p in volumes
    )
    return _PREPARE + calls


def write_files(files: Sequence[WriteFile]) -> tuple[str, bytes]:
    """Command and stdin that write all `files` (of one machine), each atomically.

    The contents follow one another on stdin. The command copies them to a temporary file and cuts
    them by size: some `head -c` read ahead in a pipe and lose bytes.
    """
    folders = sorted({f.path.rpartition("/")[0] or "/" for f in files})
    lines = [
        "set -eu",
        "all=$(mktemp)",
        "trap 'rm -f \"$all\"' EXIT",
        'cat >"$all"',
        "mkdir -p -- " + " ".join(shlex.quote(f) for f in folders),
        "umask 077",  # a file may hold a secret until its mode is set
        "put() {",
        '    tail -c "+$1" "$all" | head -c "$2" >"$4.svcd-new"',
        '    chmod "$3" "$4.svcd-new"',
        '    mv -f -- "$4.svcd-new" "$4"',
        "}",
    ]
    offset = 1
    for file in files:
        size = len(file.content)
        lines.append(f"put {offset} {size} {file.mode:04o} {shlex.quote(file.path)}")
        offset += size
    return "\n".join(lines) + "\n", b"".join(f.content for f in files)


def tail(path: str, lines: int = 20) -> str:
    """The command that prints the last lines of a log; an absent log prints nothing."""
    return f"tail -n {lines} -- {shlex.quote(path)} 2>/dev/null || true"


def user_data(username: str, public_key: str) -> str:
    """A `#!/bin/sh` script that adds `public_key` to the authorized keys of `username`.

    Safe to repeat. On servers cloud-init runs it as root; on machines that are folders
    (SVCD_MACHINE_ROOT is set) the login user runs it and $HOME is the user's.
    """
    return f"""#!/bin/sh
# Lets svcd log in as the image's user. Safe to repeat.
set -eu
user={shlex.quote(username)}
key={shlex.quote(public_key.strip())}
if [ -n "${{SVCD_MACHINE_ROOT:-}}" ]; then
    home=$HOME
else
    home=$(getent passwd "$user" | cut -d: -f6)
fi
if [ -z "$home" ]; then
    echo "svcd: user $user does not exist on this image" >&2
    exit 1
fi
mkdir -p "$home/.ssh"
keys=$home/.ssh/authorized_keys
touch "$keys"
if ! grep -qxF "$key" "$keys"; then
    if [ -s "$keys" ] && [ -n "$(tail -c 1 "$keys")" ]; then echo >>"$keys"; fi
    printf '%s\\n' "$key" >>"$keys"
fi
chmod 700 "$home/.ssh"
chmod 600 "$keys"
if [ -z "${{SVCD_MACHINE_ROOT:-}}" ]; then
    chown -R "$user:" "$home/.ssh"
fi
"""
