"""Encrypts stored secrets (Fernet: AES-128-CBC with HMAC-SHA-256).

The key is stored in a file that only the daemon's user may read, so the database alone reveals no
secret. A sealed text is plain ASCII and carries a version prefix, so that the scheme can change.

Note: the key file. It has the key alone, until `svcd keys rotate` has made another one. Then it has
lines of a name and a value: `key`, which seals; `former`, which still opens; `installation` and
`digests`, which come from the first key and stay, because clouds and clusters have values that
svcd made with them.
"""

from __future__ import annotations

import contextlib
import hashlib
import hmac
import os
import re
import stat
from pathlib import Path
from typing import Final

from attrs import evolve, field, frozen
from cryptography.fernet import Fernet, InvalidToken, MultiFernet

from svcd.model.secret import Secret
from svcd.runtime.drafts import draft_of, give, publish, sync
from svcd.settings import Settings

_PREFIX: Final = "f1:"
SEALED_LIKE: Final = f"%{_PREFIX}gAAAA%"
"""The SQL pattern of a text that may contain a sealed text."""
_SEALED: Final = re.compile(rf"(?<![\w-]){_PREFIX}(gAAAA[\w=-]+)", re.ASCII)


def key_file(settings: Settings) -> Path:
    """The path of the key file of a daemon with these settings."""
    named = settings.server.seal_key
    return Path(named).absolute() if named else settings.server.state_dir.absolute() / "seal.key"


def kept_key(key_file: Path, of: str) -> Path:
    """The file in which `svcd keys rotate` keeps a copy of a key. of: its fingerprint."""
    return key_file.with_name(f"{key_file.name}.{of}")


def fingerprint(key: bytes) -> str:
    """Identifies a key without revealing it."""
    return hashlib.sha256(b"svcd seal key\0" + key).hexdigest()[:16]


class SealerError(Exception):
    """svcd cannot use the key file, or another key has sealed a text. One line with the reason."""


@frozen(kw_only=True)
class Keys:
    """The content of a key file.

    seals: the key that seals. former: keys that only open, the newest first. installation: 16
    hexadecimal digits, see svcd.model.ownership_tags. digests: the key of the digests.
    """

    seals: bytes = field(repr=False)
    former: tuple[bytes, ...] = field(default=(), repr=False)
    installation: str
    digests: bytes = field(repr=False)

    @classmethod
    def of(cls, key: bytes) -> Keys:
        """The keys of a new file with the one key `seals`."""
        return cls(
            seals=key,
            installation=hmac.new(key, b"svcd installation", hashlib.sha256).hexdigest()[:16],
            digests=hmac.new(key, b"svcd digests", hashlib.sha256).digest(),
        )

    @classmethod
    def parsed(cls, text: bytes) -> Keys:
        """Raises ValueError."""
        if b" " not in text.strip():
            Fernet(text.strip())
            return cls.of(text.strip())
        values: dict[bytes, list[bytes]] = {}
        for line in text.splitlines():
            name, _, value = line.strip().partition(b" ")
            values.setdefault(name, []).append(value.strip())
        former = tuple(values.pop(b"former", []))
        (seals,), (installation,), (digests,) = (
            values.pop(name, []) for name in (b"key", b"installation", b"digests")
        )
        if values or len(installation) != 16:
            raise ValueError("unknown lines")
        for key in (seals, *former):
            Fernet(key)
        return cls(
            seals=seals,
            former=former,
            installation=installation.decode("ascii"),
            digests=bytes.fromhex(digests.decode("ascii")),
        )

    def text(self) -> bytes:
        """The content of the file."""
        if not self.former and self == Keys.of(self.seals):
            return self.seals
        lines = [b"key " + self.seals, *(b"former " + key for key in self.former)]
        lines.append(b"installation " + self.installation.encode())
        lines.append(b"digests " + self.digests.hex().encode())
        return b"\n".join(lines) + b"\n"

    def renewed(self) -> Keys:
        """These keys with a new key that seals; the present one becomes a former key."""
        return evolve(self, seals=Fernet.generate_key(), former=(self.seals, *self.former))

    def alone(self) -> Keys:
        """These keys without the former ones."""
        return evolve(self, former=())


class MemorySealer:
    """A sealer whose keys exist only in memory: for fakes and tests.

    installation: see Keys.
    """

    def __init__(self, keys: Keys | None = None, where: str = "this sealer's key") -> None:
        """where: the place of the keys, for errors."""
        self.keys = Keys.of(Fernet.generate_key()) if keys is None else keys
        self.installation = self.keys.installation
        self._where = where
        self._newest = Fernet(self.keys.seals)
        self._fernet = MultiFernet([self._newest, *map(Fernet, self.keys.former)])

    def seal(self, secret: Secret) -> str:
        """Two seals of one secret differ."""
        return _PREFIX + self._fernet.encrypt(secret.reveal().encode()).decode("ascii")

    def open(self, sealed: str) -> Secret:
        """Raises SealerError: not sealed with these keys."""
        return _open(self._fernet, sealed, self._where)

    def digest(self, data: bytes) -> str:
        """See ports.Sealer."""
        return hmac.new(self.keys.digests, data, hashlib.sha256).hexdigest()

    def renewed(self, text: str) -> str:
        """`text` with each sealed text in it sealed by the newest key.

        A text that no key opens stays as it is: a caller wrote it, or its secret is lost already.
        """
        return _SEALED.sub(self._renewed, text)

    def _renewed(self, found: re.Match[str]) -> str:
        token = found[1].encode()
        try:
            self._newest.decrypt(token)
        except InvalidToken:
            with contextlib.suppress(InvalidToken):
                return _PREFIX + self._fernet.rotate(token).decode("ascii")
        return found[0]


class FernetSealer(MemorySealer):
    """A sealer with the keys in `key_file`, which is created (mode 0600) when it does not exist."""

    def __init__(self, key_file: Path) -> None:
        """Raises SealerError: the file cannot be read, holds no key or may be read by others."""
        keys, self._new = _loaded(key_file)
        super().__init__(keys, str(key_file))
        self._file = key_file

    def refused(self, error: SealerError) -> SealerError:
        """The error when the database was sealed with another key. A new key file is removed."""
        if not self._new:
            return error
        self._file.unlink(missing_ok=True)
        return missing(self._file)


def missing(key_file: Path) -> SealerError:
    """The error when the database has sealed texts, and the key file does not exist."""
    return SealerError(
        f"{key_file} is missing, but the database has data that was sealed with a key: copy the"
        " seal.key of the daemon that wrote it, or rotated its key last:"
        f" install -m 600 KEY {key_file}"
    )


def _open(fernet: MultiFernet, sealed: str, where: str) -> Secret:
    if not sealed.startswith(_PREFIX):
        raise SealerError("a stored secret is not a sealed text: the row was changed by hand")
    try:
        return Secret(fernet.decrypt(sealed.removeprefix(_PREFIX).encode()).decode())
    except InvalidToken:
        raise SealerError(
            f"a stored secret cannot be opened with {where}: it was sealed with another key;"
            " restore the key file that belongs to this database: a copy of the seal.key of the"
            " daemon that created it, or rotated its key last (server.seal_key is its path),"
            " readable by this user only"
        ) from None


def load(key_file: Path) -> Keys:
    """The keys of a file, which is created when it does not exist. Raises SealerError."""
    return _loaded(key_file)[0]


def _loaded(key_file: Path) -> tuple[Keys, bool]:
    """The same, and whether this call has created the file."""
    try:
        is_new = _create(key_file)
        mode = stat.S_IMODE(key_file.stat().st_mode)
        if mode & 0o077:
            raise SealerError(
                f"key file {key_file} may be read by other users (mode {mode:04o}):"
                f" run chmod 600 {key_file}"
            )
        return Keys.parsed(key_file.read_bytes()), is_new
    except OSError as error:
        raise SealerError(f"cannot use key file {key_file}: {error.strerror}") from None
    except ValueError:
        raise SealerError(
            f"key file {key_file} holds no key (expected 32 bytes in URL-safe base64):"
            " restore the right file; without the key the stored secrets cannot be recovered"
        ) from None


def replace(key_file: Path, keys: Keys) -> None:
    """Write a key file anew for its owner, and copies of the keys that it had and has now.

    See kept_key: no key that was ever in the file is lost. A crash leaves the former or the new
    file at its place. Raises SealerError.
    """
    if key_file.is_symlink():
        raise SealerError(f"key file {key_file} is a link: name the file itself (server.seal_key)")
    former = load(key_file)
    try:
        owner = key_file.stat()
        for kept_keys in (former, keys):
            kept = kept_key(key_file, fingerprint(kept_keys.seals))
            if not kept.exists():
                _publish(kept, kept_keys.alone().text(), owner)
            elif kept.read_bytes() != kept_keys.alone().text():
                raise SealerError(f"{kept} does not hold the key of its name: move it away")
        _publish(key_file, keys.text(), owner)
    except OSError as error:
        raise SealerError(f"cannot write key file {key_file}: {error.strerror}") from None


def _publish(path: Path, content: bytes, owner: os.stat_result) -> None:
    with draft_of(path) as draft:
        draft.write_bytes(content)
        give(draft, owner)
        publish(draft, path)


def _create(key_file: Path) -> bool:
    """Make a key file if there is none, and return whether this call has made it.

    A new key is linked to its name: of two processes the faster one gives the key.
    """
    if key_file.exists():
        return False
    key_file.parent.mkdir(parents=True, exist_ok=True)
    with draft_of(key_file) as draft:
        draft.write_bytes(Fernet.generate_key())
        sync(draft)
        with contextlib.suppress(FileExistsError):
            key_file.hardlink_to(draft)
            sync(key_file.parent)  # before anything is sealed with the key
            return True
    return False
