"""Makes SSH key pairs, always ed25519: every SSH server of the last decade accepts it."""

from __future__ import annotations

from cryptography.hazmat.primitives import serialization
from cryptography.hazmat.primitives.asymmetric.ed25519 import Ed25519PrivateKey

from svcd.model.secret import Secret


def new_key_pair(comment: str) -> tuple[str, Secret]:
    """A new pair: the public line (`ssh-ed25519 AAAA… comment`) and the OpenSSH private text.

    comment: one line, may be empty.
    """
    key = Ed25519PrivateKey.generate()
    public = key.public_key().public_bytes(
        serialization.Encoding.OpenSSH, serialization.PublicFormat.OpenSSH
    )
    private = key.private_bytes(
        serialization.Encoding.PEM,
        serialization.PrivateFormat.OpenSSH,
        serialization.NoEncryption(),
    )
    line = f"{public.decode('ascii')} {' '.join(comment.split())}".rstrip()
    return line, Secret(private.decode("ascii"))
