"""`svcd run`: runs a file of this machine as a job, shows its log, and ends with its result.

The command first checks everything that it can check. Then it uploads, makes or finds the job and
the data sources, and executes. Its POSTs carry keys of idempotency that belong to this invocation,
so that a request that is sent again never runs a job twice.
"""

from __future__ import annotations

import hashlib
import uuid
import zipfile
from collections.abc import Mapping, Sequence
from pathlib import Path
from typing import Any, Final

import click
from attrs import field, frozen

from svcd.cli import local_input, names, swift
from svcd.cli.api import safe
from svcd.cli.command import FORMATS, SHARED, Command
from svcd.cli.exits import INTERRUPTED, REFUSED, CommandError
from svcd.cli.follow import Followed
from svcd.cli.job_files import (
    Reuse,
    Unusable,
    binary,
    internal,
    job,
    kind_of,
    missing_places,
    pairs,
    place_type,
    source,
    takes_mains,
)
from svcd.cli.local_input import LocalInput
from svcd.cli.session import Session
from svcd.model.job import INTERNAL_URL, JobType
from svcd.model.redaction import shown_url
from svcd.workflow.decide.document import container_of

_MOST_BYTES: Final = 512 * 2**20
"""The largest file that is read; the daemon's limit is `server.max_binary_bytes`."""
_MANIFEST: Final = "META-INF/MANIFEST.MF"
_MOST_MANIFEST: Final = 1 << 20
_NAME_TAKEN: Final = "exists already"


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
class Program:
    """A file that is read. digest: SHA-256 of the data."""

    name: str
    data: bytes = field(repr=False)
    digest: str
    main_class: str = ""


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
    help="parameter of a Pig job, variable of a Shell job; repeatable",
)
@click.option("--detach", is_flag=True, help="print the execution and do not follow it")
@click.pass_obj
def command(session: Session, /, **options: Any) -> int:
    """Run FILE as a job on a cluster, show its log, and end with its result: 0 or 1.

    The file is uploaded once: the same content is the same binary. Ctrl-C leaves the job going.
    """  # fmt: skip
    run = Run(session, **options)
    try:
        execution = run.start()
    except KeyboardInterrupt:
        text = "interrupted; nothing runs"
        if run.asked:
            text = "interrupted; the job may run already: svcd job ls shows it"
        raise CommandError(text, INTERRUPTED) from None
    id_ = str(execution["id"])
    if options["detach"]:
        from svcd.cli.jobs import EXECUTIONS

        session.note(f"svcd job logs -f {id_} follows it, svcd job cancel {id_} cancels it")
        session.show(execution, EXECUTIONS)
        return 0
    session.note(f"job execution {id_}")
    return Followed(session, id_).to_its_end()


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
        self.asked = False
        self._session = session
        self._invocation = uuid.uuid4().hex
        self._on, self._transient, self._image, self._keypair = on, transient, image, keypair
        self._input, self._output = input_, place
        self._configs, self._params = pairs("-c", configs), pairs("-p", params)
        self._args = list(args)
        self._main = _read(file)
        self._libs = [_read(each) for each in libs]
        self._kind = kind_of(
            str(file), self._main.data[:4096], self._main.main_class, type_ or "",
            main_class or "", self._configs,
        )  # fmt: skip
        if self._kind.main_class:
            self._configs.setdefault("edp.java.main_class", self._kind.main_class)
        lacks = missing_places(self._kind.type, bool(input_), bool(place))
        if lacks:
            raise Unusable(lacks)

    def start(self) -> Any:
        """Check, upload, and execute; the execution as the API answers it. Raises CommandError."""
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
        self.asked = True
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
        environment = self._session.environment
        for user, password in (
            ("SVCD_OBJSTORE_USER", "SVCD_OBJSTORE_PASSWORD"),
            ("OS_USERNAME", "OS_PASSWORD"),
        ):
            if environment.get(user) and environment.get(password):
                return {"user": environment[user], "password": environment[password]}
        known = self._session.endpoints
        if known.get("username") and known.get("password"):
            return {"user": str(known["username"]), "password": str(known["password"])}
        raise CommandError(
            "a job reads and writes the object store with a user and password, and this login has"
            " none: set SVCD_OBJSTORE_USER and SVCD_OBJSTORE_PASSWORD, or use hdfs:///… or a data"
            " source that exists (nothing was uploaded)",
            REFUSED,
        )

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
        known = self._session.api.listed(f"/jobs?type={self._kind.type.value}", "jobs")["jobs"]
        name = Path(self._main.name).stem
        found = job(name, self._kind.type, mains, libs, self._with_taken(known, name))
        if found.id:
            self._session.note(f"job {found.name}")
            return found.id
        body = {"name": found.name, "type": self._kind.type.value, "mains": mains, "libs": libs}
        id_ = str(self._post("/jobs", body, "job")["job"]["id"])
        self._session.note(f"job {found.name}: made")
        return id_

    def _with_taken(self, known: Sequence[Any], name: str) -> Sequence[Any]:
        """`known` with the job of that name, whose type may be another."""
        from svcd.cli.job_files import slug

        return [*known, *self._listed("/jobs", "jobs", name=slug(name))]

    def _is_named(self, file: Program) -> bool:
        return self._kind.type is JobType.SHELL or not file.name.endswith(".jar")

    def _binary(self, file: Program, number: int, named: bool) -> str:
        api = self._session.api
        known = api.listed("/job-binary-internals", "binaries")["binaries"]
        binaries = api.listed("/job-binaries", "binaries")["binaries"]
        data = internal(file.name, file.digest, len(file.data), known)
        binary(file.name, file.digest, data.id, binaries, named)  # refuses before the upload
        if not data.id:
            data = self._uploaded(file, data.name)
        found = binary(file.name, file.digest, data.id, binaries, named)
        if found.id:
            return found.id
        body = {"name": found.name, "url": INTERNAL_URL + data.id}
        return str(self._post("/job-binaries", body, f"binary-{number}")["job_binary"]["id"])

    def _uploaded(self, file: Program, name: str) -> Reuse:
        """The new data of a binary. Another run may have uploaded it at the same moment."""
        api = self._session.api
        path = f"/job-binary-internals/{safe(name)}"
        try:
            made = api.upload(path, file.data)["job_binary_internal"]
        except CommandError as error:
            if error.code != REFUSED or _NAME_TAKEN not in str(error):
                raise
            rows = self._listed("/job-binary-internals", "binaries", name=name)
            if not rows or rows[0]["datasize"] != len(file.data):
                raise
            made = rows[0]
        self._session.note(f"uploaded {file.name}: {_size(len(file.data))}")
        return Reuse(name=name, id=str(made["id"]))

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
        size = _size(sum(each.size for each in files))
        left = f"; {wanted.ignored} hidden files left out" if wanted.ignored else ""
        self._session.note(f"uploaded {len(files)} files, {size}, to {wanted.url}{left}")

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
        return str(self._post("/data-sources", body, found.name)["data_source"]["id"])


def _read(file: Path) -> Program:
    """The content of a file. Raises Unusable."""
    try:
        if file.is_dir():
            raise Unusable(f"{file} is a folder: name the file of the program")
        with file.open("rb") as opened:
            data = opened.read(_MOST_BYTES + 1)
    except OSError as error:
        raise Unusable(f"{file} cannot be read: {error.strerror}") from None
    if len(data) > _MOST_BYTES:
        raise Unusable(f"{file} has more than {_MOST_BYTES >> 20} MiB")
    if not data:
        raise Unusable(f"{file} is empty")
    main = _manifest_class(file) if file.suffix.lower() == ".jar" else ""
    return Program(
        name=file.name, data=data, digest=hashlib.sha256(data).hexdigest(), main_class=main
    )


def _manifest_class(file: Path) -> str:
    """The main class that a jar names; "" without one. Raises Unusable when it is no jar."""
    try:
        with zipfile.ZipFile(file) as jar:
            if _MANIFEST not in jar.namelist():
                return ""
            with jar.open(_MANIFEST) as opened:
                text = opened.read(_MOST_MANIFEST).decode("utf-8", "replace")
    except (OSError, ValueError, zipfile.BadZipFile, RuntimeError, NotImplementedError) as error:
        raise Unusable(f"{file} is not a jar: {error}") from None
    unfolded = text.replace("\r\n", "\n").replace("\n ", "")
    for line in unfolded.splitlines():
        if not line:
            break  # the main section ends
        name, _, value = line.partition(":")
        if name.strip().lower() == "main-class":
            return value.strip()
    return ""


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


def _size(count: int) -> str:
    """A number of bytes for people."""
    if count < 1024:
        return f"{count} bytes"
    return f"{count / 1024:.1f} KiB" if count < 1024**2 else f"{count / 1024**2:.1f} MiB"
