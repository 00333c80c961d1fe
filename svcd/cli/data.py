"""`svcd source …` and `svcd binary …`: locations of data, and the programs of jobs."""

from __future__ import annotations

import getpass
import os
import sys
import uuid
from collections.abc import Iterator, Mapping, Sequence
from pathlib import Path
from typing import Any, Final

import click

from svcd.cli import swift
from svcd.cli.client import safe
from svcd.cli.command import Group
from svcd.cli.exits import REFUSED, USAGE, CommandError
from svcd.cli.names import Kind, find
from svcd.cli.question import delete, yes_option
from svcd.cli.session import Session
from svcd.cli.show import Column, Table, ago, field, get

SOURCE: Final = Kind(
    path="/data-sources", one="data_source", many="data_sources", noun="data source"
)
BINARY: Final = Kind(path="/job-binaries", one="job_binary", many="binaries", noun="job binary")
SOURCES: Final = Table(
    many="data_sources",
    one="data_source",
    columns=(
        field("NAME", "name", key=True),
        field("TYPE", "type", cut=False),
        field("URL", "url"),
        field("USER", "credentials.user", spare=1),
        ago("CREATED", "created_at", spare=3),
        field("ID", "id", wide=True, id=True, spare=2),
    ),
    empty="no data sources; svcd source add NAME URL makes one",
)
BINARIES: Final = Table(
    many="binaries",
    one="job_binary",
    columns=(
        field("NAME", "name", key=True),
        Column(title="FILE", text=lambda row, _: get(row, "file_name", get(row, "name"))),
        field("URL", "url"),
        field("DESCRIPTION", "description", spare=1),
        ago("CREATED", "created_at", spare=3),
        field("ID", "id", wide=True, id=True, spare=2),
    ),
    empty="no binaries; svcd binary add FILE makes one",
)
_NEWEST: Final = BINARIES._replace(
    columns=(*BINARIES.columns[:2], field("CONTENTS", "contents", cut=False), *BINARIES.columns[2:])
)
_FOLDER: Final = "application/directory"
"""The type of an object that marks a folder, as in the image's ObjStoreFileSystem."""

source: Final = Group("source", help="Locations of the input and output of jobs.")
binary: Final = Group("binary", help="The programs of jobs.")


# ---- data sources -------------------------------------------------------------------------------


@source.command("ls")
@click.pass_obj
def sources(session: Session) -> None:
    """List the data sources of the project."""
    session.show(session.api.listed(SOURCE.path), SOURCES)


@source.command("show")
@click.argument("what", metavar="SOURCE")
@click.pass_obj
def show_source(session: Session, what: str) -> None:
    """Show a data source."""
    session.show({SOURCE.one: find(session.api, SOURCE, what)}, SOURCES)


@source.command("add")
@click.argument("name")
@click.argument("url")
@click.option(
    "--user",
    metavar="USER",
    help="account of the object store; its password is read from"
    " SVCD_OBJSTORE_PASSWORD or asked for (default: the account of the login)",
)
@click.option("--description", metavar="TEXT")
@click.option("--create-container", is_flag=True, help="make the container if it is not there")
@click.pass_obj
def add_source(
    session: Session,
    name: str,
    url: str,
    user: str | None,
    description: str | None,
    create_container: bool,
) -> None:
    """Make a data source for hdfs:///PATH or objstore://CONTAINER/PATH."""  # fmt: skip
    from svcd.cli.job_files import Unusable, place_type
    from svcd.workflow.decide.object_store import container_of

    type_ = place_type("URL", url)
    if not type_:
        raise Unusable(f"URL {url}: expected hdfs:///PATH or objstore://CONTAINER/PATH")
    if create_container:
        if type_ != "objstore":
            raise Unusable(f"--create-container: {url} has no container")
        swift.of(session).make(container_of(url))
    body: dict[str, Any] = {"name": name, "type": type_, "url": url}
    if description:
        body["description"] = description
    if user:
        body["credentials"] = {"user": user, "password": _password(session, user)}
    elif type_ == "objstore":
        body["credentials"] = dict(swift.account(session))
    row = session.api.post(SOURCE.path, body, uuid.uuid4().hex)
    session.note(f"made data source {name}")
    session.show(row, SOURCES)


def _password(session: Session, user: str) -> str:
    given = session.environment.get("SVCD_OBJSTORE_PASSWORD")
    if given:
        return given
    if not (sys.stdin.isatty() and sys.stderr.isatty()):
        text = f"the password of {user} is missing: set SVCD_OBJSTORE_PASSWORD"
        raise CommandError(text, USAGE)
    return getpass.getpass(f"password of {user}: ", sys.stderr)


@source.command("rm")
@click.argument("what", metavar="SOURCE…", nargs=-1, required=True)
@yes_option
@click.pass_obj
def remove_sources(session: Session, what: Sequence[str], yes: bool) -> None:
    """Delete data sources. The data stays."""
    delete(session, SOURCE.noun, [(SOURCE, find(session.api, SOURCE, word)) for word in what], yes)


@source.command("get")
@click.argument("what", metavar="SOURCE")
@click.argument("folder", type=click.Path(path_type=Path), default=Path())
@click.pass_obj
def get_source(session: Session, what: str, folder: Path) -> None:
    """Download the data of a source in the object store into FOLDER (default: this one)."""
    from svcd.cli.uploads import files as count
    from svcd.workflow.decide.object_store import container_of

    row = find(session.api, SOURCE, what)
    url = str(row["url"])
    if row["type"] != "objstore":
        text = f"{url} is not in the object store: svcd cluster ssh CLUSTER -- hdfs dfs -cat"
        raise CommandError(f"{text} {url}/* prints it", REFUSED)
    store = swift.of(session)
    container, path = container_of(url), url.partition("://")[2].partition("/")[2].rstrip("/")
    files = files_below(path, store.list(container, path))
    if not files:
        raise CommandError(f"there is no object at {url}", REFUSED)
    for name in files:
        inner = name[len(path) :].lstrip("/") or name.rpartition("/")[2]
        if any(part in ("", ".", "..") for part in inner.split("/")):
            raise CommandError(
                f"the object {name} has no name of a file; get it by itself", REFUSED
            )
        _save(store.read(container, name), folder / inner)
    session.note(f"got {count(len(files))} of {url} into {folder}")


def files_below(path: str, rows: Sequence[Mapping[str, Any]]) -> Sequence[str]:
    """The names of the object `path` and of those in the folder `path`; "" is the container.

    rows: of the container's list. Objects that only mark a folder have no content, and are no
    files: a name with a slash at its end, or the type that Hadoop's jobs give them.
    """
    named = [
        str(row.get("name"))
        for row in rows
        if str(row.get("content_type")).partition(";")[0].strip().lower() != _FOLDER
    ]
    below = [name for name in named if not path or name == path or name.startswith(f"{path}/")]
    return [name for name in below if not name.endswith("/")]


# ---- binaries -----------------------------------------------------------------------------------


@binary.command("ls")
@click.pass_obj
def binaries(session: Session) -> None:
    """List the job binaries of the project: of an edited file the newest, `-o wide` shows each.

    `svcd binary rm --unused` deletes the others when no job has them.
    """
    from svcd.cli.job_contents import newest

    body = session.api.listed(BINARY.path)
    if session.output == "table":
        session.show({BINARY.many: newest(body[BINARY.many])}, _NEWEST)
    else:
        session.show(body, BINARIES)


@binary.command("show")
@click.argument("what", metavar="BINARY")
@click.pass_obj
def show_binary(session: Session, what: str) -> None:
    """Show a job binary."""
    session.show({BINARY.one: find(session.api, BINARY, what)}, BINARIES)


@binary.command("add")
@click.argument("file", type=click.Path(path_type=Path))
@click.option("--name", metavar="NAME", help="name of the binary (default: of the file)")
@click.pass_obj
def add_binary(session: Session, file: Path, name: str | None) -> None:
    """Upload a file as a job binary. The same content is uploaded once."""
    from svcd.cli.job_files import slug
    from svcd.cli.uploads import read, stored

    program = read(file)
    invocation = uuid.uuid4().hex
    body = {"name": name or slug(file.name), "url": stored(session, program)}
    if body["name"] != file.name:
        body["file_name"] = file.name
    row = session.api.post(BINARY.path, body, invocation)
    session.note(f"made job binary {row[BINARY.one]['name']}")
    session.show(row, BINARIES)


@binary.command("rm")
@click.argument("what", metavar="BINARY…", nargs=-1)
@click.option(
    "--unused",
    is_flag=True,
    help="those that svcd run made of the later contents of files, and that no job has",
)
@yes_option
@click.pass_obj
def remove_binaries(session: Session, what: Sequence[str], unused: bool, yes: bool) -> None:
    """Delete job binaries, and their data when svcd keeps it for no other binary."""
    from svcd.cli.job_contents import later_binaries
    from svcd.cli.uploads import forget

    found = named_or_unused(session, BINARY, what, unused)
    if unused:
        jobs = session.api.listed("/jobs")["jobs"]
        used = {binary["id"] for job in jobs for key in ("mains", "libs") for binary in job[key]}
        known = session.api.listed(BINARY.path)[BINARY.many]
        found = [row for row in later_binaries(known) if row["id"] not in used]
    delete(session, BINARY.noun, [(BINARY, row) for row in found], yes)
    for row in found:
        forget(session, str(row["url"]))


@binary.command("get")
@click.argument("what", metavar="BINARY")
@click.argument("file", type=click.Path(path_type=Path), required=False)
@click.pass_obj
def get_binary(session: Session, what: str, file: Path | None) -> None:
    """Write the content of a job binary to FILE (default: stdout)."""
    row = find(session.api, BINARY, what)
    pieces = session.api.pieces(f"{BINARY.path}/{safe(str(row['id']))}/data")
    if file is not None:
        _save(pieces, file)
        return
    sys.stdout.flush()
    for piece in pieces:
        sys.stdout.buffer.write(piece)
    sys.stdout.buffer.flush()


# ---- sources and binaries -----------------------------------------------------------------------


def named_or_unused(
    session: Session, kind: Kind, what: Sequence[str], unused: bool
) -> Sequence[Any]:
    """The rows that a command deletes by their names; none with `--unused`. Raises CommandError."""
    if unused == bool(what):
        raise CommandError(f"give the {kind.noun}s, or --unused", USAGE)
    return [find(session.api, kind, word) for word in what]


def _save(pieces: Iterator[bytes], file: Path) -> None:
    """Write a file, whole or not at all. Raises CommandError."""
    part = file.with_name(f".{file.name}.{uuid.uuid4().hex[:8]}")
    try:
        file.parent.mkdir(parents=True, exist_ok=True)
        try:
            with part.open("xb") as opened:
                for piece in pieces:
                    opened.write(piece)
            os.replace(part, file)  # noqa: PTH105 - it replaces on every system
        finally:
            part.unlink(missing_ok=True)
    except OSError as error:
        raise CommandError(f"{file} cannot be written: {error.strerror}") from None
