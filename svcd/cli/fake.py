"""`svcd fake`: a fake service behind a socket, for tests in any language."""

from __future__ import annotations

import json
import os
import sys
import threading
from collections.abc import Callable, Sequence
from typing import Any, Final

import click

from svcd.cli.command import OperatorCommand
from svcd.cli.exits import REFUSED, CommandError

_MOST_SPEED: Final = 10_000.0
_PARENT_S: Final = 0.2
"""Seconds between two looks at the parent."""
_LAST_S: Final = 5.0
"""Seconds that its end may take after that of the parent."""
_MANUAL: Final = "manual"


def _speed(_ctx: click.Context, _option: click.Parameter, text: str) -> float | None:
    if text == _MANUAL:
        return None
    try:
        speed = float(text)
    except ValueError:
        speed = 0.0
    if not 0.0 < speed <= _MOST_SPEED:
        raise click.BadParameter(
            f"{text!r} is neither {_MANUAL} nor a number above 0, at most {_MOST_SPEED:g}"
        )
    return speed


@click.command("fake", cls=OperatorCommand)
@click.option(
    "--port",
    type=click.IntRange(0, 65535),
    default=0,
    metavar="PORT",
    help="port of the API on 127.0.0.1 (default: any free one)",
)
@click.option(
    "--speed",
    default="60",
    metavar="N|manual",
    callback=_speed,
    show_default=True,
    help="virtual seconds in a real one; manual: time moves only by POST /_fake/advance"
    " and /_fake/until",
)
@click.option(
    "--set",
    "settings",
    multiple=True,
    metavar="SECTION.KEY=VALUE",
    help="a setting, as for twistd svcd (repeatable)",
)
@click.option("--seed", type=int, default=0, metavar="N", help="the same seed gives the same ids")
@click.option("--json", "as_json", is_flag=True, help="print the line as JSON")
def command(
    port: int, speed: float | None, settings: Sequence[str], seed: int, as_json: bool
) -> None:
    """Serve a fake svcd with its cloud, in memory, until a signal or the end of the parent.

    It prints one line with its URLs when it is ready. Time, faults and requests: the routes
    /_fake/… of its /openapi.json. Nothing is written; it has no state folder.
    """
    parent = os.getppid()  # before the imports, during which it may end
    _serve(parent, port, speed, _pairs(settings), seed, as_json)


def _serve(
    parent: int,
    port: int,
    speed: float | None,
    settings: dict[str, str],
    seed: int,
    as_json: bool,
) -> None:
    from twisted.internet.defer import Deferred

    from svcd.cli import own_reactor
    from svcd.cli.fake_socket import FakeSocket

    ended: Deferred[None] = Deferred()

    def end(error: BaseException | None = None) -> None:
        if not ended.called:
            if error is None:
                ended.callback(None)
            else:
                ended.errback(error)

    async def serve(reactor: Any, _agent: object) -> None:
        fake = FakeSocket(reactor, settings, seed, speed, end)
        try:
            fake.start(port)
        except OSError as error:
            raise CommandError(f"port {port} cannot be used: {error.strerror}", REFUSED) from None
        print(_line(fake.about, as_json), flush=True)
        threading.Thread(target=_outlive, args=(parent, reactor, end), daemon=True).start()
        try:
            await ended
        finally:
            await fake.stop()

    own_reactor.run(serve, lambda _signal: end())


def _outlive(parent: int, reactor: Any, end: Callable[[], object]) -> None:
    """End with the parent, also while a request of much virtual time holds the reactor."""
    still = threading.Event()
    while os.getppid() == parent:
        still.wait(_PARENT_S)
    print("svcd fake: the process that started it has ended", file=sys.stderr, flush=True)
    reactor.callFromThread(end)
    still.wait(_LAST_S)
    os._exit(0)


def _line(about: Any, as_json: bool) -> str:
    """The line that tells a program, or a person, that the fake is ready. Pure."""
    if as_json:
        return json.dumps({**about, "pid": os.getpid()})
    return f"Serving {about['url']} (tenant {about['tenant']}), its cloud {about['cloud_url']}"


def _pairs(settings: Sequence[str]) -> dict[str, str]:
    pairs: dict[str, str] = {}
    for text in settings:
        key, equal, value = text.partition("=")
        if not equal:
            raise click.UsageError(f"--set {text!r}: write SECTION.KEY=VALUE")
        pairs[key] = value
    return pairs
