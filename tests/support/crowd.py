"""`python -m tests.support.crowd HOST PORT COUNT [REQUEST]`: many peers.

COUNT connections from several loopback addresses. Each sends REQUEST (`\\r\\n` written out) when
it is connected; without one it says nothing. What is answered is read, unless `--deaf` is given.
Tells on lines: `connected N` when each has been tried, `ended N` when the server has closed all.
"""

from __future__ import annotations

import argparse
import resource
import select
import socket

_FROM_ONE_ADDRESS = 2000
_PATIENCE_S = 120.0


def main() -> None:
    parser = argparse.ArgumentParser()
    parser.add_argument("host")
    parser.add_argument("port", type=int)
    parser.add_argument("count", type=int)
    parser.add_argument("request", nargs="?", default="")
    parser.add_argument("--deaf", action="store_true")
    given = parser.parse_args()
    _, hard = resource.getrlimit(resource.RLIMIT_NOFILE)
    resource.setrlimit(resource.RLIMIT_NOFILE, (hard, hard))
    request = given.request.encode().decode("unicode_escape").encode("latin-1")
    watch = select.epoll()
    peers: dict[int, socket.socket] = {}
    for number in range(given.count):
        peer = socket.socket()
        peer.settimeout(_PATIENCE_S)
        if given.deaf:
            peer.setsockopt(socket.SOL_SOCKET, socket.SO_RCVBUF, 4096)
        peer.bind((f"127.19.{number // _FROM_ONE_ADDRESS}.1", 0))
        peer.connect((given.host, given.port))
        if request:
            peer.sendall(request)
        peer.setblocking(False)
        peers[peer.fileno()] = peer
        watch.register(peer, select.EPOLLRDHUP | (0 if given.deaf else select.EPOLLIN))
    print(f"connected {given.count}", flush=True)
    while peers:
        for number, _ in watch.poll(_PATIENCE_S):
            if given.deaf or _is_over(peers[number]):
                watch.unregister(number)
                peers.pop(number).close()
    print(f"ended {given.count}", flush=True)


def _is_over(peer: socket.socket) -> bool:
    try:
        return not peer.recv(65_536)
    except BlockingIOError:
        return False
    except OSError:
        return True


if __name__ == "__main__":
    main()
