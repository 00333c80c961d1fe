"""Encrypts stored secrets (Fernet: AES-128-CBC with HMAC-SHA-256).

The key is stored in a file that only the daemon's user may read, so the database alone reveals no
secret. A sealed text is plain ASCII and carries a version prefix, so that the scheme can change.
"""

from __future__ import annotations

import contextlib
import hashlib
import hmac
import os
import stat
from pathlib import Path
from typing import Final

from cryptography.fernet import Fernet, InvalidToken

from svcd.model.secret import Secret
from svcd.settings import Settings

_PREFIX: Final = "f1:"


def key_file(settings: Settings) -> Path:
    """The path of the key file of a daemon with these settings."""
    named = settings.server.seal_key
    return Path(named).absolute() if named else settings.server.state_dir.absolute() / "seal.key"


class SealerError(Exception):
    """The key file cannot be used, or a text was sealed with another key: one line says why."""


class MemorySealer:
    """A sealer whose key exists only in memory: for fakes and tests."""

    def __init__(self) -> None:
        key = Fernet.generate_key()
        self.installation = _installation(key)
        self._fernet = Fernet(key)
        self._digests = _digests(key)

    def seal(self, secret: Secret) -> str:
        """Two seals of one secret differ."""
        return _seal(self._fernet, secret)

    def open(self, sealed: str) -> Secret:
        """Raises SealerError: not sealed with this key."""
        return _open(self._fernet, sealed, "this sealer's key")

    def digest(self, data: bytes) -> str:
        """See ports.Sealer."""
        return hmac.new(self._digests, data, hashlib.sha256).hexdigest()


class FernetSealer:
    """A sealer with the key in `key_file`, which is created (mode 0600) when it does not exist.

    installation: 16 hexadecimal digits derived from the key; they do not reveal it (see
    svcd.model.ownership_tags).
    """

    def __init__(self, key_file: Path) -> None:
        """Raises SealerError: the file cannot be read, holds no key or may be read by others."""
        self._key_file = key_file
        key = _load(key_file)
        self.installation = _installation(key)
        self._fernet = Fernet(key)
        self._digests = _digests(key)

    def seal(self, secret: Secret) -> str:
        """Two seals of one secret differ."""
        return _seal(self._fernet, secret)

    def open(self, sealed: str) -> Secret:
        """Raises SealerError: not sealed with this key."""
        return _open(self._fernet, sealed, str(self._key_file))

    def digest(self, data: bytes) -> str:
        """See ports.Sealer."""
        return hmac.new(self._digests, data, hashlib.sha256).hexdigest()


def _installation(key: bytes) -> str:
    return hmac.new(key, b"svcd installation", hashlib.sha256).hexdigest()[:16]


def _digests(key: bytes) -> bytes:
    """The key of the digests."""
    return hmac.new(key, b"svcd digests", hashlib.sha256).digest()


def _seal(fernet: Fernet, secret: Secret) -> str:
    return _PREFIX + fernet.encrypt(secret.reveal().encode()).decode("ascii")


def _open(fernet: Fernet, sealed: str, where: str) -> Secret:
    if not sealed.startswith(_PREFIX):
        raise SealerError("a stored secret is not a sealed text: the row was changed by hand")
    try:
        return Secret(fernet.decrypt(sealed.removeprefix(_PREFIX).encode()).decode())
    except InvalidToken:
        raise SealerError(
            f"a stored secret cannot be opened with {where}: it was sealed with another key;"
            " restore the key file that belongs to this database: a copy of the seal.key of the"
            " daemon that created it (server.seal_key is its path), readable by this user only"
        ) from None


def _load(key_file: Path) -> bytes:
    try:
        _create(key_file)
        mode = stat.S_IMODE(key_file.stat().st_mode)
        if mode & 0o077:
            raise SealerError(
                f"key file {key_file} may be read by other users (mode {mode:04o}):"
                f" run chmod 600 {key_file}"
            )
        key = key_file.read_bytes().strip()
        Fernet(key)
    except OSError as error:
        raise SealerError(f"cannot use key file {key_file}: {error.strerror}") from None
    except ValueError:
        raise SealerError(
            f"key file {key_file} holds no key (expected 32 bytes in URL-safe base64):"
            " restore the right file; without the key the stored secrets cannot be recovered"
        ) from None
    return key


def _create(key_file: Path) -> None:
    """Write a new key to a draft file and link it to its name: a crash leaves no partial key."""
    if key_file.exists():
        return
    key_file.parent.mkdir(parents=True, exist_ok=True)
    draft = key_file.with_name(f".{key_file.name}.{os.getpid()}")
    handle = os.open(draft, os.O_WRONLY | os.O_CREAT | os.O_TRUNC, 0o600)
    try:
        with os.fdopen(handle, "wb") as out:
            out.write(Fernet.generate_key())
            out.flush()
            os.fsync(out.fileno())
        with contextlib.suppress(FileExistsError):  # another process was faster: use its key
            key_file.hardlink_to(draft)
    finally:
        draft.unlink(missing_ok=True)
