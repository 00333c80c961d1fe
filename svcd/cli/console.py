"""`svcd open`: the console in a browser, at a cluster or a job execution."""

from __future__ import annotations

import sys
from urllib.parse import urlsplit

import click

from svcd.cli.client import safe
from svcd.cli.command import Command
from svcd.cli.exits import CommandError
from svcd.cli.session import Session
from svcd.cli.show import get


@click.command("open", cls=Command)
@click.argument("what", metavar="[CLUSTER|J]", required=False)
@click.option("--print", "only", is_flag=True, help="print the URL and open nothing")
@click.pass_obj
def command(session: Session, what: str | None, only: bool) -> None:
    """Open the console in a browser, at a cluster or a job execution; print its URL.

    J: id of a job execution, or the name of a job, which means its latest execution. A unique
    beginning is enough.
    """
    api = session.api
    view = ""
    if what is not None:
        from svcd.cli.jobs import cluster_or_execution

        cluster, execution = cluster_or_execution(api, what)
        kind, found = ("clusters", cluster) if cluster is not None else ("runs", execution)
        view = f"#/{kind}/{safe(get(found, 'id'))}"
    url = console_url(api.door.api, view)
    print(url)
    if only or not sys.stdout.isatty():
        return
    import webbrowser

    if not webbrowser.open(url):
        raise CommandError("no browser could be started: open the URL by hand")


def console_url(api: str, view: str) -> str:
    """The URL of the console of an API, at a view. Pure."""
    parts = urlsplit(api)
    return f"{parts.scheme}://{parts.netloc}/console/{view}"
