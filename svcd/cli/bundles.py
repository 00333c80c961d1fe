"""`svcd apply`, `svcd diff` and `svcd export`: bundles of clusters, jobs and what they need."""

from __future__ import annotations

import os
import uuid
from collections.abc import Mapping, Sequence
from pathlib import Path
from typing import Any, Final

import click
import yaml

from svcd.cli import bundle, bundle_file
from svcd.cli.bundle import BY_NAME, KINDS, Item, Kind, There
from svcd.cli.bundle_plan import Change, Step, plan
from svcd.cli.bundle_trial import tried
from svcd.cli.client import name_taken, safe
from svcd.cli.clusters import machines, wait_option
from svcd.cli.command import Command
from svcd.cli.exits import FAILED, INTERRUPTED, NOT_FOUND, REFUSED, CommandError
from svcd.cli.files import data_of
from svcd.cli.job_files import Unusable, with_digest
from svcd.cli.local_images import register, unregistered
from svcd.cli.names import CLUSTER, find
from svcd.cli.names import Kind as Named
from svcd.cli.output import write
from svcd.cli.question import confirm, yes_option
from svcd.cli.session import Session
from svcd.cli.uploads import Program, program, read, stored, sum_of
from svcd.model.controls import visible
from svcd.model.job import INTERNAL_URL

_MOST_TEXT: Final = 64 * 2**10
"""The largest content of a binary that an export holds."""
_MARKS: Final = {
    Change.CREATE: "+", Change.SCALE: "~", Change.NONE: "=", Change.REFUSED: "!",
    Change.FAILED: "!",
}  # fmt: skip
_DONE: Final = {
    Change.CREATE: "created", Change.SCALE: "changed", Change.NONE: "unchanged",
    Change.FAILED: "left",
}  # fmt: skip
_WORDS: Final = {
    "template": ("cluster_templates", "node_group_templates"),
    "source": ("data_sources",),
    "binary": ("job_binaries",),
    "job": ("jobs",),
    "cluster": ("clusters",),
}

_files: Final = click.option(
    "-f", "files", type=click.Path(path_type=Path), multiple=True, required=True, metavar="FILE",
    help="bundle (YAML; - is stdin); repeatable",
)  # fmt: skip


@click.command("apply", cls=Command)
@_files
@click.option("--dry-run", is_flag=True, help="show what would be done")
@yes_option
@wait_option
@click.pass_obj
def apply(session: Session, files: Sequence[Path], dry_run: bool, yes: bool, wait: bool) -> None:
    """Make what a bundle names and the project lacks, and change size and lifetime of its clusters.

    It may be repeated: what is there already stays. The API checks everything first: when it
    refuses an object or a change, nothing is done. A cluster loses machines only after a question,
    and one in Error is left as it is. With --wait the command ends when all clusters of the bundle
    are Active.
    """
    work = Work(session, files)
    refused = [step for step in work.steps if step.change is Change.REFUSED]
    if dry_run:
        work.show(work.steps)
    for step in refused:
        session.note(f"{step.item.where}: {step.item.title}: {'; '.join(step.texts)}")
    if refused:
        titles = ", ".join(step.item.title for step in refused[:5])
        raise CommandError(f"nothing was done, because of {titles}", REFUSED)
    if not dry_run:
        confirm("remove", work.shrunk(), yes)
        work.perform()
        if wait:
            work.await_clusters()
    failed = [step for step in work.steps if step.change is Change.FAILED]
    if failed:
        raise CommandError("; ".join(f"{step.item.title}: {step.texts[-1]}" for step in failed))


@click.command("diff", cls=Command)
@_files
@click.option("--exit-code", is_flag=True, help="end with 1 when something differs")
@click.pass_obj
def diff(session: Session, files: Sequence[Path], exit_code: bool) -> int:
    """Show how the project differs from a bundle.

    + is missing, ~ has other sizes, ! is refused by the API, or is in Error.
    """
    work = Work(session, files)
    steps = [step for step in work.steps if step.change is not Change.NONE]
    work.show(steps)
    return FAILED if steps and exit_code else 0


@click.command("export", cls=Command)
@click.argument("kind", type=click.Choice(list(_WORDS)))
@click.argument("name")
@click.pass_obj
def export(session: Session, kind: str, name: str) -> None:
    """Print an object and what it refers to as a bundle, without secrets.

    In the place of a secret is a variable of the environment, which apply reads.
    """
    there = _there(session)
    found = _found(session, kind, name)
    wanted: dict[tuple[str, str], Mapping[str, Any]] = {}
    waiting = [found]
    while waiting:
        kind_, row = waiting.pop()
        if (kind_.name, str(row["name"])) in wanted:
            continue
        body = bundle.exported(kind_, row, there)
        wanted[kind_.name, str(row["name"])] = body
        item = Item(kind=kind_, name=str(row["name"]), body=body)
        for other, reference in bundle.references(item):
            target = there.find(other, reference)
            if target is not None:
                waiting.append((BY_NAME[other], target))
    document: dict[str, Any] = {}
    for listed_kind in KINDS:
        rows = [body for (of, _), body in wanted.items() if of == listed_kind.name]
        if rows:
            document[listed_kind.name] = rows
    for body in document.get("job_binaries", ()):
        _with_content(session, body, there)
    secrets = sorted(set(_variables(document)))
    if secrets:
        session.note(f"svcd apply reads the secrets from the environment: {', '.join(secrets)}")
    write(
        visible(yaml.dump(document, Dumper=_Dumper, sort_keys=False, allow_unicode=True, width=100))
    )


class _Dumper(yaml.SafeDumper):
    """Writes texts of several lines as such."""


def _text(dumper: yaml.SafeDumper, text: str) -> Any:
    style = "|" if "\n" in text else None
    return dumper.represent_scalar("tag:yaml.org,2002:str", text, style=style)


_Dumper.add_representer(str, _text)


def _found(session: Session, word: str, name: str) -> tuple[Kind, Any]:
    refusal: CommandError | None = None
    for kind_name in _WORDS[word]:
        kind = BY_NAME[kind_name]
        noun = Named(path=kind.path, one=kind.key, many=kind.rows, noun=kind.word)
        try:
            return kind, find(session.api, noun, name)
        except CommandError as error:
            if error.code != NOT_FOUND:
                raise
            refusal = refusal or error
    assert refusal is not None
    raise refusal


def _with_content(session: Session, body: Any, there: There) -> None:
    """Add the content of a binary that svcd keeps, or the name of its file."""
    if "url" in body:
        return
    row = there.find("job_binaries", str(body["name"]))
    assert row is not None
    data = b"".join(_pieces(session, row, _MOST_TEXT + 1))
    try:
        text = data.decode()
    except UnicodeDecodeError:
        text = ""
    if text and len(data) <= _MOST_TEXT and visible(text) == text:
        body["content"] = text
        return
    body["file"] = body["name"]
    session.note(f"its content: svcd binary get {body['name']} {body['name']}")


def _pieces(session: Session, row: Any, most: int) -> Any:
    """The content of a binary in pieces, until there are `most` bytes."""
    path = f"/job-binaries/{safe(str(row['id']))}/data"
    count = 0
    for piece in session.api.pieces(path):
        yield piece
        count += len(piece)
        if count >= most:
            return


def _variables(value: Any) -> Any:
    if isinstance(value, dict):
        if set(value) == {"env"}:
            yield str(value["env"])
        for item in value.values():
            yield from _variables(item)
    elif isinstance(value, list):
        for item in value:
            yield from _variables(item)


def _there(session: Session) -> There:
    api = session.api
    rows = {kind.name: api.listed(kind.path)[kind.rows] for kind in KINDS}
    images = api.listed("/images")["images"]
    local = unregistered(session, [image["id"] for image in images])
    return There(rows=rows, images=images, local=local)


def _show(steps: Sequence[Step]) -> None:
    for step in steps:
        texts = f": {'; '.join(step.texts)}" if step.texts else ""
        print(f"{_MARKS[step.change]} {step.item.title}{texts}")


class Work:
    """A bundle, and the steps to it."""

    def __init__(self, session: Session, files: Sequence[Path]) -> None:
        self._session = session
        self._items = [item for file in files for item in _parsed(file)]
        self._programs = {
            item.name: _program(item) for item in self._items if bundle.has_content(item)
        }
        planned = self._planned()
        self.steps = tried(session, planned, self._there, self._ids())

    def _planned(self) -> Sequence[Step]:
        """The steps from the present project to the bundle."""
        there = _there(self._session)
        self._there = There(
            rows=there.rows, images=there.images, local=there.local,
            digests=dict(self._digests(there)),
        )  # fmt: skip
        digests = {name: wanted_program.digest for name, wanted_program in self._programs.items()}
        return plan(self._items, self._there, digests)

    def _digests(self, there: There) -> Any:
        """The digests of binaries that are in the bundle and in the project."""
        rows = self._session.api.listed("/job-binary-internals")["binaries"]
        internals = {INTERNAL_URL + str(row["id"]): row for row in rows}
        for name, mine in self._programs.items():
            row = there.find("job_binaries", name)
            data = None if row is None else internals.get(str(row["url"]))
            if row is None or data is None:
                continue
            if data["datasize"] != len(mine.data):
                yield name, ""
            elif data["name"] == with_digest(name, mine.digest):
                yield name, mine.digest
            else:
                yield name, sum_of(_pieces(self._session, row, len(mine.data) + 1))

    def show(self, steps: Sequence[Step]) -> None:
        """Print the steps of a plan."""
        _show(steps)
        for image in self._local_images():
            text = f"image {image['name']} is not registered yet: svcd apply does it"
            self._session.note(text)

    def _local_images(self) -> Sequence[Mapping[str, Any]]:
        """The images of the embedded cloud that new objects name, and that are not registered."""
        new = [step.item for step in self.steps if step.change is Change.CREATE]
        named = {name for item in new for kind, name in bundle.references(item) if kind == "images"}
        images = [self._there.image(name) for name in sorted(named)]
        return [image for image in self._there.local if image in images]

    def shrunk(self) -> Sequence[str]:
        """The machines that clusters lose."""
        return [
            machines(step.item.name, group, before, after)
            for step in self.steps
            for group, (before, after) in step.shrunk.items()
        ]

    def perform(self) -> None:
        """Do the steps in their order. Raises CommandError with the number of finished changes."""
        urls = self._uploaded()
        for image in self._local_images():
            register(self._session, image)
        ids = self._ids()
        done = 0
        try:
            for planned in self.steps:
                step = planned
                try:
                    self._perform(step, ids, urls)
                except CommandError as error:
                    if not name_taken(error):
                        raise
                    step = self._made_meanwhile(step, error)
                    ids[step.item.kind.name, step.item.name] = step.id
                done += step.change in (Change.CREATE, Change.SCALE)
                said = step.texts and step.change is not Change.FAILED
                texts = f": {'; '.join(step.texts)}" if said else ""
                print(f"{_DONE[step.change]} {step.item.title}{texts}")
        except CommandError as error:
            text = f"{step.item.title}: {error}; {self._left(done)}"
            raise CommandError(text, error.code) from None
        except KeyboardInterrupt:
            raise CommandError(f"interrupted; {self._left(done)}", INTERRUPTED) from None

    def await_clusters(self) -> None:
        """Wait until the clusters of the bundle are Active. Raises CommandError."""
        from svcd.cli.waiting import await_change, await_cluster

        for step in self.steps:
            if step.item.kind.name == "clusters" and step.change is not Change.FAILED:
                wait = await_change if step.sizes or step.groups else await_cluster
                wait(self._session, find(self._session.api, CLUSTER, step.item.name))
                self._session.note(f"{step.item.title} is Active")

    def _left(self, done: int) -> str:
        if not done:
            return "nothing was changed"
        all_ = sum(step.change in (Change.CREATE, Change.SCALE) for step in self.steps)
        return f"{done} of {all_} changes are made; the same svcd apply makes the others"

    def _made_meanwhile(self, step: Step, refusal: CommandError) -> Step:
        """The step for an object that another command has made equal. Raises `refusal`."""
        for planned in self._planned():
            if planned.item is step.item and planned.change is Change.NONE:
                return planned
        raise refusal

    def _ids(self) -> dict[tuple[str, str], str]:
        """The ids of the existing objects, by kind and name; kind `images` for an image."""
        there = self._there
        ids = {
            (kind, str(row["name"])): str(row["id"])
            for kind, rows in there.rows.items()
            for row in rows
        }
        for item in self._items:
            for kind, name in bundle.references(item):
                row = there.image(name) if kind == "images" else there.find(kind, name)
                if row is not None:
                    ids.setdefault((kind, name), str(row["id"]))
        return ids

    def _uploaded(self) -> Mapping[str, str]:
        """The URLs of the contents of new binaries, by name: an upload can still be refused."""
        new = [step.item for step in self.steps if step.change is Change.CREATE]
        return {
            item.name: stored(self._session, self._programs[item.name])
            for item in new
            if item.kind.name == "job_binaries" and item.name in self._programs
        }

    def _perform(
        self, step: Step, ids: dict[tuple[str, str], str], urls: Mapping[str, str]
    ) -> None:
        api, item = self._session.api, step.item
        if step.change is Change.SCALE:
            body = bundle.scale_request(step.sizes, step.groups, ids)
            api.put(f"/clusters/{safe(step.id)}", body | step.life)
        elif step.change is Change.CREATE:
            url = urls.get(item.name, "") if item.kind.name == "job_binaries" else ""
            answer = api.post(item.kind.path, bundle.request(item, ids, url), uuid.uuid4().hex)
            ids[item.kind.name, item.name] = str(answer[item.kind.key]["id"])


def _parsed(file: Path) -> Sequence[Item]:
    name, folder = ("stdin", "") if str(file) == "-" else (str(file), str(file.parent))
    return bundle_file.parse(data_of(file), name, folder, os.environ)


def _program(item: Item) -> Program:
    if "content" in item.body:
        text = str(item.body["content"])
        if not text:
            raise Unusable(f"{item.where}.content is empty")
        return program(item.name, text.encode())
    found = read(Path(item.folder, str(item.body["file"])))
    return found._replace(name=item.name)
