"""`svcd run`: runs a file of this machine as a job, shows its log, and ends with its result.

The command first checks everything that it can check. Then it uploads, makes or finds the job and
the data sources, and executes. Its POSTs carry keys of idempotency that belong to this invocation,
so that a request that is sent again never runs a job twice.
"""

from __future__ import annotations

import uuid
from collections.abc import Callable, Mapping, Sequence
from pathlib import Path
from typing import Any

import click
from attrs import evolve, field, frozen

from svcd.cli import local_input, names, swift
from svcd.cli.api import name_taken, safe
from svcd.cli.command import FORMATS, SHARED, Command
from svcd.cli.exits import INTERRUPTED, NOT_FOUND, REFUSED, CommandError
from svcd.cli.followed_execution import Followed
from svcd.cli.job_files import (
    Reuse,
    Unusable,
    binary,
    job,
    kind_of,
    missing_places,
    pairs,
    place_type,
    source,
    spark_faults,
    takes_mains,
)
from svcd.cli.local_input import LocalInput
from svcd.cli.session import Session
from svcd.cli.uploads import Program, kept, read, size, stored
from svcd.cli.uploads import files as count
from svcd.model.choices import listed
from svcd.model.job import JobType
from svcd.model.redaction import shown_url
from svcd.workflow.decide.document import container_of


class _Run(Command):
    """`--output` names the job's output here, so the form of the answer is `-o` alone."""

    def __init__(self, *args: Any, **kwargs: Any) -> None:
        super().__init__(*args, **kwargs)
        form = click.Option(
            ["-o", "output"], type=click.Choice(FORMATS), help="with --detach: form of the output"
        )
        at = next(
            n for n, each in enumerate(self.params) if each in SHARED and each.name == "output"
        )
        self.params = [*self.params[:at], form, *self.params[at + 1 :]]


@frozen(kw_only=True)
class Place:
    """Input or output. id: of a data source that exists. local: what is uploaded first."""

    type: str = ""
    url: str = field(default="", repr=shown_url)
    id: str = ""
    local: LocalInput | None = None

    @property
    def needs_account(self) -> bool:
        return self.type == "objstore" and not self.id


@click.command("run", cls=_Run)
@click.argument("file", type=click.Path(path_type=Path))
@click.argument("args", nargs=-1, metavar="[-- ARGS]")
@click.option("--on", metavar="CLUSTER", help="name or id of the cluster")
@click.option(
    "--transient",
    metavar="TEMPLATE",
    help="run on a new cluster of this template, which goes after the job",
)
@click.option("--image", metavar="IMAGE", help="image of the transient cluster")
@click.option("--keypair", metavar="NAME", help="key pair of the transient cluster")
@click.option(
    "--input",
    "input_",
    metavar="URL|PATH",
    help="hdfs:///…, objstore://…, a data source,"
    " or a file or folder of this machine, which is uploaded to the object store",
)
@click.option(
    "--output",
    "place",
    metavar="URL",
    help="hdfs:///… or objstore://…, which must not exist, or a data source",
)
@click.option("--type", "type_", metavar="TYPE", help="type of the job (default: by the file)")
@click.option(
    "--lib",
    "libs",
    type=click.Path(path_type=Path),
    multiple=True,
    metavar="FILE",
    help="further file of the job; repeatable",
)
@click.option("--main-class", metavar="CLASS", help="main class of a .jar")
@click.option(
    "-c",
    "configs",
    multiple=True,
    metavar="NAME=VALUE",
    help="configuration of the job; repeatable (svcd plugin configs)",
)
@click.option(
    "-p",
    "params",
    multiple=True,
    metavar="NAME=VALUE",
    help="parameter of a Pig job, variable of a Shell job or of a .sql file; repeatable",
)
@click.option("--detach", is_flag=True, help="print the execution and do not follow it")
@click.option(
    "--all",
    "shows_all",
    is_flag=True,
    help="show each line, also those of Oozie, Hadoop, Pig, Spark and Java",
)
@click.pass_obj
def command(session: Session, /, shows_all: bool, **options: Any) -> int:
    """Run FILE as a job on a cluster, show its log, and end with its result: 0 or 1.

    The file is uploaded once: the same content is the same binary. Ctrl-C leaves the job going.
    """  # fmt: skip
    run = Run(session, **options)
    execution = run.start()
    id_ = str(execution["id"])
    if options["detach"]:
        from svcd.cli.jobs import table_of

        session.note(f"svcd job logs -f {id_} follows it, svcd job cancel {id_} cancels it")
        session.show(execution, table_of(session))
        return 0
    session.note(f"job execution {id_}")
    return Followed(session, id_, shows_all).to_its_end()


class Run:
    """One invocation. The arguments are the options of the command."""

    def __init__(
        self,
        session: Session,
        *,
        file: Path,
        args: Sequence[str] = (),
        on: str | None = None,
        transient: str | None = None,
        image: str | None = None,
        keypair: str | None = None,
        input_: str | None = None,
        place: str | None = None,
        type_: str | None = None,
        libs: Sequence[Path] = (),
        main_class: str | None = None,
        configs: Sequence[str] = (),
        params: Sequence[str] = (),
        detach: bool = False,
    ) -> None:
        if bool(on) == bool(transient):
            raise Unusable("give --on CLUSTER or --transient TEMPLATE")
        if (image or keypair) and not transient:
            raise Unusable("--image and --keypair are for a cluster of --transient")
        self._asked = False
        self._made: list[str] = []
        self._session = session
        self._invocation = uuid.uuid4().hex
        self._on, self._transient, self._image, self._keypair = on, transient, image, keypair
        self._input, self._output = input_, place
        self._configs, self._params = pairs("-c", configs), pairs("-p", params)
        self._args = list(args)
        self._main = read(file)
        self._libs = [read(each) for each in libs]
        self._kind = kind_of(
            str(file), self._main.data[:4096], self._main.main_class, type_ or "",
            main_class or "", self._configs,
        )  # fmt: skip
        if self._kind.main_class:
            self._configs.setdefault("edp.java.main_class", self._kind.main_class)
        if self._kind.type is JobType.SPARK:
            faults = spark_faults(self._main.name, self._configs, self._params, self._args)
            if faults:
                raise Unusable("; ".join(faults))
        lacks = missing_places(self._kind.type, bool(input_), bool(place))
        if lacks:
            raise Unusable(lacks)

    def start(self) -> Any:
        """Check, upload, and execute; the execution as the API answers it. Raises CommandError.

        A failure removes nothing that it has made: another run of the same file may use it by then.
        """
        try:
            return self._started()
        except (CommandError, KeyboardInterrupt) as error:
            if self._made:
                made = listed(self._made)
                self._session.note(f"made and kept for the next svcd run of this file: {made}")
            if not isinstance(error, CommandError):
                begun = "the job may run already: svcd job ls shows it"
                text = f"interrupted; {begun if self._asked else 'nothing runs'}"
                raise CommandError(text, INTERRUPTED) from None
            if self._asked and error.code not in (NOT_FOUND, REFUSED):
                text = f"{error}; the job may run already: svcd job ls shows it"
                raise CommandError(text, error.code) from None
            raise

    def _started(self) -> Any:
        where = self._place_to_run()
        places = [self._place("--input", self._input), self._place("--output", self._output)]
        account = self._account(places)
        store = swift.of(self._session) if any(e.needs_account for e in places) else None
        if store is not None:
            _refuse_present(store, places[1])
        why = f" ({self._kind.why})" if self._kind.why else ""
        self._session.note(f"{self._main.name} is a {self._kind.type.value} job{why}")
        job_id = self._job()
        ids = []
        for each in places:
            if each.local is not None and store is not None:
                self._upload(store, each.local)
            ids.append(self._source(each, account) if each.type and not each.id else each.id)
        body = {
            **where,
            **{name: id_ for name, id_ in zip(("input_id", "output_id"), ids, strict=True) if id_},
            "job_configs": {"configs": self._configs, "params": self._params, "args": self._args},
        }
        self._asked = True
        made = self._post(f"/jobs/{safe(job_id)}/execute", body, "execute")
        return made["job_execution"]

    # ---- checks ---------------------------------------------------------------------------------

    def _place_to_run(self) -> dict[str, Any]:
        api = self._session.api
        if self._on:
            return {"cluster_id": names.find(api, names.CLUSTER, self._on)["id"]}
        template = names.find(api, names.CLUSTER_TEMPLATE, self._transient or "")
        cluster = {
            "name": f"run-{self._invocation[:8]}",
            "plugin_name": template["plugin_name"],
            "engine_version": template["engine_version"],
            "cluster_template_id": template["id"],
        }
        if self._image:
            cluster["default_image_id"] = names.find(api, names.IMAGE, self._image)["id"]
        if self._keypair:
            cluster["user_keypair_id"] = self._keypair
        return {"cluster": cluster}

    def _place(self, option: str, text: str | None) -> Place:
        """The place that an option names. Raises CommandError."""
        if not text:
            return Place()
        type_ = place_type(option, text)
        if type_:
            return Place(type=type_, url=text)
        if option == "--input" and Path(text).exists():
            local = local_input.gather(Path(text))
            return Place(type="objstore", url=local.url, local=local)
        rows = self._listed("/data-sources", "data_sources", name=text)
        if rows:
            return Place(type=str(rows[0]["type"]), id=str(rows[0]["id"]))
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

    def _account(self, places: Sequence[Place]) -> Mapping[str, str]:
        """User and password that the job uses at the object store; {} when it needs none."""
        if not any(each.needs_account for each in places):
            return {}
        return swift.account(self._session)

    # ---- what is made ---------------------------------------------------------------------------

    def _post(self, path: str, body: object, step: str) -> Any:
        return self._session.api.post(path, body, key=f"{self._invocation}-{step}")

    def _listed(self, path: str, key: str, **filters: str) -> Sequence[Any]:
        query = "&".join(f"{name}={safe(value)}" for name, value in filters.items())
        rows: Sequence[Any] = self._session.api.listed(f"{path}?{query}", key)[key]
        return [each for each in rows if all(each.get(n) == v for n, v in filters.items())]

    def _job(self) -> str:
        files = [self._main, *self._libs]
        main = takes_mains(self._kind.type)
        ids = [
            self._binary(each, n, main and n > 0 and self._is_named(each))
            for n, each in enumerate(files)
        ]
        mains, libs = (ids[:1], ids[1:]) if main else ([], ids)
        name = Path(self._main.name).stem

        def look() -> Reuse:
            path = f"/jobs?type={self._kind.type.value}"
            known = self._session.api.listed(path, "jobs")["jobs"]
            return job(name, self._kind.type, mains, libs, self._with_taken(known, name))

        body = {"type": self._kind.type.value, "mains": mains, "libs": libs}
        found = self._kept("/jobs", "job", "job", look, body)
        made = ": made" if f"job {found.name}" in self._made else ""
        self._session.note(f"job {found.name}{made}")
        return found.id

    def _kept(
        self,
        path: str,
        key: str,
        step: str,
        look: Callable[[], Reuse],
        body: Mapping[str, Any],
        tries: int = 3,
    ) -> Reuse:
        """What `look` finds, or what is made of `body` under the name that it says is free.

        Another command may take the name in between: then it looks again.
        """
        found = look()
        if found.id:
            return found
        try:
            made = self._post(path, {"name": found.name, **body}, f"{step}-{tries}")
        except CommandError as error:
            if tries > 1 and name_taken(error):
                return self._kept(path, key, step, look, body, tries - 1)
            raise
        self._made.append(f"{key.replace('_', ' ')} {found.name}")
        return evolve(found, id=str(made[key]["id"]))

    def _with_taken(self, known: Sequence[Any], name: str) -> Sequence[Any]:
        """`known` with the job of that name, whose type may be another."""
        from svcd.cli.job_files import slug

        return [*known, *self._listed("/jobs", "jobs", name=slug(name))]

    def _is_named(self, file: Program) -> bool:
        return self._kind.type is JobType.SHELL or not file.name.endswith(".jar")

    def _binary(self, file: Program, number: int, named: bool) -> str:
        def look(data_id: str) -> Reuse:
            rows = self._session.api.listed("/job-binaries", "binaries")["binaries"]
            return binary(file.name, file.digest, data_id, rows, named)

        look(kept(self._session, file)[0])  # refuses before the upload
        data = stored(self._session, file)
        step, body = f"binary-{number}", {"url": data.url}
        return self._kept("/job-binaries", "job_binary", step, lambda: look(data.id), body).id

    def _upload(self, store: swift.ObjectStore, wanted: LocalInput) -> None:
        there = store.list(local_input.CONTAINER, f"{wanted.prefix}/")
        files = local_input.missing(wanted, there)
        if not files:
            self._session.note(f"input {wanted.url}: uploaded already")
            return
        store.make(local_input.CONTAINER)
        for each in files:
            name = f"{wanted.prefix}/{each.name}"
            store.upload(local_input.CONTAINER, name, each.path, each.size)
        sent = size(sum(each.size for each in files))
        left = f"; hidden, so left out: {count(wanted.ignored)}" if wanted.ignored else ""
        self._session.note(f"uploaded {count(len(files))}, {sent}, to {wanted.url}{left}")

    def _source(self, place: Place, account: Mapping[str, str]) -> str:
        given = account if place.type == "objstore" else {}
        known = self._listed("/data-sources", "data_sources", url=place.url)
        user, password = given.get("user", ""), given.get("password", "")
        found = source(place.type, place.url, user, password, known, self._invocation)
        if found.id:
            return found.id
        body: dict[str, Any] = {"name": found.name, "type": place.type, "url": place.url}
        if given:
            body["credentials"] = given
        id_ = str(self._post("/data-sources", body, found.name)["data_source"]["id"])
        self._made.append(f"data source {found.name}")
        return id_


def _refuse_present(store: swift.ObjectStore, output: Place) -> None:
    """Refuse an output in the object store that cannot be written. Raises CommandError."""
    if not output.needs_account:
        return
    container = container_of(output.url)
    path = output.url.removeprefix("objstore://").partition("/")[2]
    if not store.has(container):
        text = f"--output: there is no container {container} in the object store: create it first"
        raise CommandError(text, REFUSED)
    if store.list(container, path.rstrip("/") + "/"):
        text = f"--output {output.url} exists already: name another folder, or remove it first"
        raise CommandError(text, REFUSED)
