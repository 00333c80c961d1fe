"""Input and output of a job on the command line: the place of a text, and its data source.

A place is a URL, a data source, or for an input a file or folder of this machine, whose content
goes into the object store. Making a data source uploads nothing.
"""

from __future__ import annotations

from collections.abc import Mapping
from pathlib import Path
from typing import Any

from attrs import field, frozen

from svcd.cli import local_input, names, swift
from svcd.cli.client import safe
from svcd.cli.data import SOURCE
from svcd.cli.exits import REFUSED, CommandError
from svcd.cli.job_files import Reuse, Unusable, place_type, source
from svcd.cli.local_input import LocalInput
from svcd.cli.session import Session
from svcd.cli.uploads import files as count
from svcd.cli.uploads import reused, size
from svcd.model.redaction import shown_url
from svcd.workflow.decide.object_store import container_of


@frozen(kw_only=True)
class Place:
    """Input or output. id: of an existing data source. local: files to upload before the job."""

    type: str = ""
    url: str = field(default="", repr=shown_url)
    id: str = ""
    local: LocalInput | None = None

    @property
    def needs_account(self) -> bool:
        return self.type == "objstore" and not self.id


class JobData:
    """The places of one invocation. made: takes a line for each data source that is made."""

    def __init__(self, session: Session, invocation: str) -> None:
        self._session = session
        self._invocation = invocation
        self.made: list[str] = []
        self._account: Mapping[str, str] = {}
        self._store: swift.ObjectStore | None = None

    def place(self, option: str, text: str | None, flat: str = "") -> Place:
        """The place that an option names. flat: see `local_input.gather`. Raises CommandError."""
        if not text:
            return Place()
        type_ = place_type(option, text)
        if type_:
            return Place(type=type_, url=text)
        if option == "--input" and Path(text).exists():
            local = local_input.gather(Path(text), flat)
            return Place(type="objstore", url=local.url, local=local)
        known = names.exactly(self._session.api, SOURCE, text)
        if known is not None:
            return Place(type=str(known["type"]), id=str(known["id"]))
        path = f"hdfs:///{text.strip('/')}"
        if option == "--input":
            raise Unusable(
                f"--input {text}: there is neither a file nor a data source of this name; a path in"
                f" HDFS is written {path}"
            )
        raise Unusable(
            f"--output {text}: there is no data source of this name; write {path} or"
            " objstore://CONTAINER/PATH"
        )

    def check(self, input_: Place, output: Place) -> None:
        """Log in to the object store when a place needs it. Raises CommandError.

        An output in the object store that cannot be written is refused.
        """
        if not (input_.needs_account or output.needs_account):
            return
        self._account = swift.account(self._session)
        self._store = swift.of(self._session)
        if output.needs_account:
            _refuse_present(self._store, output)

    def source_id(self, place: Place) -> str:
        """The id of the data source, which is made if it is not there; "" without a place."""
        if place.id or not place.type:
            return place.id
        given = self._account if place.type == "objstore" else {}
        user, password = given.get("user", ""), given.get("password", "")

        def look() -> Reuse:
            path = f"/data-sources?url={safe(place.url)}"
            rows = self._session.api.listed(path)["data_sources"]
            known = [row for row in rows if row.get("url") == place.url]
            return source(place.type, place.url, user, password, known, self._invocation)

        def make(name: str) -> Any:
            body: dict[str, Any] = {"name": name, "type": place.type, "url": place.url}
            if given:
                body["credentials"] = given
            key = f"{self._invocation}-{name}"
            row = self._session.api.post("/data-sources", body, key)["data_source"]
            self.made.append(f"data source {name}")
            return row

        return reused(look, make).id

    def upload(self, place: Place) -> None:
        """Upload the files of this machine that are not there yet."""
        wanted, store = place.local, self._store
        if wanted is None or store is None:
            return
        for line in wanted.left:
            self._session.note(f"left out of --input: {line}")
        there = store.list(local_input.CONTAINER, f"{wanted.prefix}/")
        files = local_input.missing(wanted, there)
        if not files:
            self._session.note(f"input {wanted.url}: uploaded already")
            return
        store.make(local_input.CONTAINER)
        for file in files:
            name = f"{wanted.prefix}/{file.name}"
            store.upload(local_input.CONTAINER, name, file.path, file.size)
        sent = size(sum(file.size for file in files))
        self._session.note(f"uploaded {count(len(files))}, {sent}, to {wanted.url}")


def _refuse_present(store: swift.ObjectStore, output: Place) -> None:
    """Refuse an output in the object store that cannot be written. Raises CommandError."""
    container = container_of(output.url)
    path = output.url.removeprefix("objstore://").partition("/")[2]
    if not store.has(container):
        raise CommandError(
            f"--output: there is no container {container} in the object store: svcd source add"
            f" {container} {output.url} --create-container makes it",
            REFUSED,
        )
    if store.list(container, path.rstrip("/") + "/"):
        text = f"--output {output.url} exists already: name another folder, or remove it first"
        raise CommandError(text, REFUSED)
