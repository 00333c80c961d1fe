"""`svcd orphans`: lists or removes objects with svcd's ownership tags that belong to no cluster.

The command asks the daemon for the tenant's clusters. When no daemon answers, the command lists
and removes nothing. It removes only with `--delete` and after a question, only objects with
ownership tags, and only objects of this installation, unless `--id` or `--unmarked` is given.
"""

from __future__ import annotations

import signal
from collections.abc import Callable, Sequence
from functools import partial
from pathlib import Path
from typing import Any

import click
from twisted.web.iweb import IAgent

from svcd.cli import clouds, own_reactor
from svcd.cli.client import Api
from svcd.cli.command import Command, settings_of, settings_options
from svcd.cli.exits import DONE, FAILED, INTERRUPTED, REFUSED, UNREACHABLE, USAGE, CommandError
from svcd.cli.orphan_search import WAIT_S, YOUNG_S, Outcome, Rules, Search, rows_of
from svcd.cli.output import write
from svcd.cli.question import confirm, refuse_unasked, yes_option
from svcd.cli.session import Session
from svcd.cli.show import as_text
from svcd.clients.ownership_tags import TaggedCloud
from svcd.model.secret import Secret
from svcd.ports.cloud import CloudError
from svcd.settings import Settings


@click.command("orphans", cls=Command)
@click.option("--delete", is_flag=True, help="remove the objects, after a question")
@click.option(
    "--id",
    "ids",
    multiple=True,
    metavar="ID",
    help="remove this object whatever its tag says; repeatable",
)
@click.option(
    "--unmarked",
    is_flag=True,
    help="also remove objects whose tag names no installation, such as server groups",
)
@click.option(
    "--younger",
    type=float,
    default=YOUNG_S,
    metavar="SECONDS",
    show_default=True,
    help="leave alone objects younger than this",
)
@click.option(
    "--wait",
    type=float,
    default=WAIT_S,
    metavar="SECONDS",
    show_default=True,
    help="wait at most so long for the removal",
)
@yes_option
@settings_options
@click.pass_obj
def command(
    session: Session,
    delete: bool,
    ids: Sequence[str],
    unmarked: bool,
    younger: float,
    wait: float,
    yes: bool,
    config: Path | None,
    flags: Sequence[str],
) -> int:
    """List or remove objects with svcd's ownership tags that belong to no cluster."""
    if delete:
        refuse_unasked("remove orphans", yes)
    session.configure(config, flags)
    settings: Settings = settings_of(config, flags).settings
    api = _logged_in(session)
    cloud = clouds.settings_of(settings.cloud, api.door.auth_url, session.environment)
    clouds.trust(session.cacert)
    rules = Rules(ids=frozenset(ids), unmarked=unmarked, young_s=max(0.0, younger))
    is_data = session.output in ("json", "yaml")
    say = session.note if is_data else partial(print, flush=True)

    async def search(reactor: Any, agent: IAgent) -> Outcome:
        token = Secret(api.door.token)
        tagged = TaggedCloud(agent, reactor, cloud, token, api.door.tenant)
        whole = Search(tagged, partial(rows_of, api), reactor, rules, say, _asks(yes))
        try:
            return await whole.run(delete, max(0.0, wait))
        except CloudError as error:
            raise CommandError(error.text, UNREACHABLE if error.passing else REFUSED) from None

    outcome = own_reactor.run(search)
    if is_data:
        write(as_text(outcome.body, session.output))
    return FAILED if outcome.troubles else DONE


def _logged_in(session: Session) -> Api:
    """The daemon's API with a login at its cloud. Raises CommandError."""
    api = session.api
    rows_of(api)  # a fault of the daemon ends the command before any request to the cloud
    if not api.door.auth_url:
        text = "the URL of the cloud is unknown: set OS_AUTH_URL, or the setting cloud.auth_url"
        raise CommandError(text, USAGE)
    if not api.door.token:
        text = "no token: set OS_TOKEN, or OS_USERNAME, OS_PASSWORD and OS_PROJECT_NAME"
        raise CommandError(text, USAGE)
    return api


def _asks(yes: bool) -> Callable[[Sequence[str]], None]:
    """The question before the named objects go. Ctrl-C ends it, also while the reactor runs."""

    def ask(names: Sequence[str]) -> None:
        former = signal.signal(signal.SIGINT, signal.default_int_handler)
        try:
            confirm("remove", names, yes)
        except KeyboardInterrupt:
            raise CommandError("interrupted; nothing was removed", INTERRUPTED) from None
        finally:
            signal.signal(signal.SIGINT, former)

    return ask
