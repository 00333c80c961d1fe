"""`python -m tests.hostile.peers`: all hostile peers; prints their ports as one line of JSON."""

from __future__ import annotations

import json
from typing import Any

from cryptography.hazmat.primitives.asymmetric.ed25519 import Ed25519PrivateKey
from twisted.conch.ssh.keys import Key
from twisted.internet import reactor as _reactor  # noqa: TID251 - a program

from tests.hostile.http_peer import http_peer
from tests.hostile.ssh_peer import WAYS

reactor: Any = _reactor


def main() -> None:
    key = Key(Ed25519PrivateKey.generate())
    http = reactor.listenTCP(0, http_peer(), interface="127.0.0.1")
    ports = {
        name: reactor.listenTCP(0, make(key), interface="127.0.0.1").getHost().port
        for name, make in WAYS.items()
    }
    print(json.dumps({"http": http.getHost().port, "ssh": ports}), flush=True)
    reactor.run()


if __name__ == "__main__":
    main()
