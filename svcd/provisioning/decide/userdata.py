"""The script that a new server runs at first boot: it lets svcd log in. Pure."""

from __future__ import annotations

import shlex


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
