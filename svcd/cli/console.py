"""`svcd open`: the console in a browser, at a cluster or a job execution."""

from __future__ import annotations

import sys
from urllib.parse import quote, urlsplit

import click

from svcd.cli.command import Command
from svcd.cli.exits import CommandError
from svcd.cli.names import CLUSTER, find
from svcd.cli.session import Session
from svcd.cli.show import get


@click.command("open", cls=Command)
@click.argument("what", metavar="[CLUSTER|EXECUTION]", required=False)
@click.option("--print", "only", is_flag=True, help="print the URL and open nothing")
@click.pass_obj
def command(session: Session, what: str | None, only: bool) -> None:
    """Open the console in a browser, at a cluster or a job execution; print its URL."""
    api = session.api
    view = ""
    if what is not None:
        execution = api.get(f"/job-executions/{quote(what, safe='')}")
        if execution is not None:
            view = f"#/runs/{quote(get(execution, 'id'), safe='')}"
        else:
            view = f"#/clusters/{quote(get(find(api, CLUSTER, what), 'id'), safe='')}"
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
