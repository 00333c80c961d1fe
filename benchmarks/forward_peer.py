"""The far side of the `forward` benchmark: loopback machines with an HTTP service each.

It prints the ports of SSH and HTTP as one line of JSON, and ends when its standard input does.
"""

from __future__ import annotations

import json
import os
import sys
import tempfile
from pathlib import Path
from typing import Any

from twisted.internet import reactor as _reactor
from twisted.internet.defer import Deferred
from twisted.internet.protocol import Protocol
from twisted.internet.stdio import StandardIO
from twisted.web.resource import Resource
from twisted.web.server import Site

from svcd.embedded.cloud.guests import GuestSpec
from svcd.embedded.machines import LoopbackMachines

reactor: Any = _reactor


class Service(Resource):
    """Answers a GET with 1 KiB, and a PUT with nothing once it has read the body."""

    isLeaf = True

    def render_GET(self, request: Any) -> bytes:
        return b"x" * 1024

    def render_PUT(self, request: Any) -> bytes:
        return b""


class _Input(Protocol):
    def connectionLost(self, reason: Any = None) -> None:
        reactor.stop()


async def serve(root: Path, ssh_port: int, addresses: list[str], key: str) -> None:
    """Start the machines."""
    site = Site(Service())
    ports = [reactor.listenTCP(0, site, interface=addresses[0])]
    port = ports[0].getHost().port
    ports += [reactor.listenTCP(port, site, interface=each) for each in addresses[1:]]
    machines = LoopbackMachines(reactor, reactor, root, ssh_port, Path("/opt/none"), os.environ)
    for number, address in enumerate(addresses):
        spec = GuestSpec(
            server_id=f"m{number}",
            name=f"m{number}",
            addresses=(address,),
            user_name="svcd",
            authorized_keys=(key,),
        )
        await machines.boot(spec)
    print(json.dumps({"http": port}), flush=True)


def main() -> None:
    """arguments: SSH port, public key, addresses."""
    ssh_port, key, *addresses = sys.argv[1:]
    with tempfile.TemporaryDirectory() as folder:
        reactor.callWhenRunning(
            lambda: Deferred.fromCoroutine(
                serve(Path(folder), int(ssh_port), addresses, key)
            ).addErrback(lambda why: (why.printTraceback(), reactor.stop()))
        )
        StandardIO(_Input())
        reactor.run()


if __name__ == "__main__":
    main()
