"""The folder of a loopback machine: its layout, environment, keys and first-boot script.

<machine>/home, tmp, etc, bin, dev, run, log stand for the usual folders of a server. This module
starts no process and does not listen.
"""

# mypy: disable-error-code="no-untyped-call"

from __future__ import annotations

import os
import re
from collections.abc import Mapping, Sequence
from pathlib import Path
from typing import Final

from attrs import field, frozen
from twisted.conch.ssh.keys import BadKeyError, Key

from svcd.embedded.cloud.guests import GuestError, GuestSpec
from svcd.embedded.process_marks import ROOT_VARIABLE
from svcd.runtime.keys import new_key_pair

_FOLDERS: Final = ("home/.ssh", "tmp", "etc", "bin", "dev", "run", "log")
_SAFE_NAME: Final = re.compile(r"[A-Za-z0-9][A-Za-z0-9._-]{0,127}")

_SUDO: Final = """\
#!/bin/sh
echo "sudo: machines of the embedded cloud have no sudo: they belong to one user" >&2
exit 1
"""


def is_safe_name(name: str) -> bool:
    """Whether `name` can name a folder of ours."""
    return _SAFE_NAME.fullmatch(name) is not None


def safe_name(name: str, what: str) -> str:
    """`name`, when it can name a file. Raises GuestError otherwise."""
    if not is_safe_name(name):
        raise GuestError(f"{what} {name!r} cannot name a folder")
    return name


@frozen(kw_only=True)
class MachineFiles:
    """One machine's folder. root: absolute; spec: as last booted."""

    root: Path
    spec: GuestSpec = field(repr=False)

    @property
    def home(self) -> Path:
        return self.root / "home"

    @property
    def hosts(self) -> Path:
        return self.root / "etc" / "hosts"

    @property
    def user_data_log(self) -> Path:
        return self.root / "log" / "user-data.log"

    def prepare(self) -> bool:
        """Lay out what is missing. True when this is the first boot.

        Raises GuestError.
        """
        try:
            first = not self._marker.exists()
            for name in _FOLDERS:
                (self.root / name).mkdir(parents=True, exist_ok=True)
            (self.root / "home" / ".ssh").chmod(0o700)
            if first or not self.hosts.exists():  # an earlier try had another address
                own = f"{self.spec.addresses[0]} {self.spec.name}\n" if self.spec.addresses else ""
                self.hosts.write_text(f"127.0.0.1 localhost\n{own}", encoding="utf-8")
            _write(self.root / "etc" / "hostname", f"{self.spec.name}\n", 0o644)
            _write(self.root / "bin" / "sudo", _SUDO, 0o755)
        except OSError as error:
            raise GuestError(f"machine folder {self.root}: {error.strerror}") from None
        return first

    def environment(self, environ: Mapping[str, str], image_prefix: Path) -> dict[str, str]:
        """The environment of commands and first-boot script. environ: of the daemon, for PATH."""
        path = environ.get("PATH", "/usr/local/bin:/usr/bin:/bin")
        return {
            "HOME": str(self.home),
            ROOT_VARIABLE: str(self.root),
            "SVCD_MACHINE_ADDRESS": self.spec.addresses[0] if self.spec.addresses else "",
            "SVCD_HOSTS_FILE": str(self.hosts),
            "SVCD_VANILLA_PREFIX": str(image_prefix),
            "TMPDIR": str(self.root / "tmp"),
            "USER": self.spec.user_name,
            "LOGNAME": self.spec.user_name,
            "SHELL": "/bin/sh",
            "PATH": f"{self.root / 'bin'}:{path}",
            "LANG": "C.UTF-8",
        }

    def host_key(self) -> Key:
        """The machine's own ed25519 key, made at the first call. Raises GuestError."""
        path = self.root / "etc" / "ssh_host_ed25519_key"
        try:
            if not path.exists():
                _write(path, new_key_pair(self.spec.name)[1].reveal(), 0o600)
            return Key.fromString(path.read_bytes())  # type: ignore[no-any-return]
        except OSError as error:
            raise GuestError(f"host key {path}: {error.strerror}") from None
        except (BadKeyError, ValueError, LookupError):
            raise GuestError(f"host key {path} cannot be read: remove the file") from None

    def authorized_keys(self) -> Sequence[Key]:
        """Keys of the spec and of $HOME/.ssh/authorized_keys as it is now, without bad lines."""
        lines = list(self.spec.authorized_keys)
        try:
            added = (self.home / ".ssh" / "authorized_keys").read_text("utf-8", "replace")
            lines += added.splitlines()
        except OSError:
            pass  # the user has no such file
        keys: list[Key] = []
        for line in lines:
            try:
                if line.strip() and not line.startswith("#"):
                    keys.append(Key.fromString(line.strip().encode(), type="public_openssh"))
            except (BadKeyError, ValueError, LookupError):
                continue
        return keys

    def first_boot_script(self) -> Path | None:
        """The script in the user data, ready to run; None without one, as svcd writes no other."""
        text = self.spec.user_data.decode("utf-8", "replace")
        if not text.startswith("#!"):
            return None
        path = self.root / "run" / "user-data"
        _write(path, text, 0o700)
        return path

    def mark_booted(self) -> None:
        """Record the end of the first boot, so that its script does not run again."""
        self._marker.touch()

    @property
    def _marker(self) -> Path:
        return self.root / "run" / "user-data.done"


def _write(path: Path, text: str, mode: int) -> None:
    """Write the whole file or nothing."""
    draft = path.with_name(f".{path.name}.new")
    handle = os.open(draft, os.O_WRONLY | os.O_CREAT | os.O_TRUNC, mode)
    with os.fdopen(handle, "w", encoding="utf-8") as out:
        out.write(text)
    draft.chmod(mode)
    draft.replace(path)
