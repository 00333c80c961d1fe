"""`svcd run`: runs a file of this machine as a job, shows its log, and ends with its result.

The command first checks everything that it can check. Then it uploads, makes or finds the job and
the data sources, and executes. Its POSTs carry keys of idempotency that belong to this invocation,
so that a request that is sent again never runs a job twice.
"""

from __future__ import annotations

import uuid
from collections.abc import Iterable, Mapping, Sequence
from pathlib import Path
from typing import Any

import click

from svcd.cli import local_input, names
from svcd.cli.client import safe
from svcd.cli.command import CommandWithOutput
from svcd.cli.create import default_image
from svcd.cli.exits import INTERRUPTED, NOT_FOUND, REFUSED, CommandError
from svcd.cli.followed_execution import Followed
from svcd.cli.job_data import JobData
from svcd.cli.job_files import (
    Reuse,
    Unusable,
    binary,
    faults,
    job,
    kind_of,
    missing_places,
    pairs,
    slug,
    takes_mains,
)
from svcd.cli.local_images import register
from svcd.cli.session import Session
from svcd.cli.uploads import Program, kept, read, reused, stored
from svcd.model.choices import listed
from svcd.model.job import INTERNAL_URL, JobConfigs, JobType


@click.command("run", cls=CommandWithOutput)
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
    "--nested",
    is_flag=True,
    help="the program reads an input whose folders have folders (for Spark; other jobs always do)",
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
        nested: bool = False,
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
        self._unregistered: Mapping[str, Any] = {}
        self._session = session
        self._invocation = uuid.uuid4().hex
        self._on, self._transient, self._image, self._keypair = on, transient, image, keypair
        self._input, self._nested, self._output = input_, nested, place
        self._data = JobData(session, self._invocation)
        self._configs, self._params = pairs("-c", configs), pairs("-p", params)
        self._args = list(args)
        self._main = read(file, main=True)
        self._libs = [read(lib) for lib in libs]
        self._kind = kind_of(
            str(file), self._main.data[:4096], self._main.main_class, type_ or "",
            main_class or "", self._configs,
        )  # fmt: skip
        if self._kind.main_class:
            self._configs.setdefault("edp.java.main_class", self._kind.main_class)
        files = [(lib.name, lib.data) for lib in (self._main, *self._libs)]
        given = JobConfigs(configs=self._configs, params=self._params, args=tuple(args))
        if wrong := list(faults(self._kind.type, files, given)):
            raise Unusable("; ".join(wrong))
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
            if self._made or self._data.made:
                created = listed([*self._made, *self._data.made])
                self._session.note(f"made and kept for the next svcd run of this file: {created}")
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
        data = self._data
        flat = "" if self._nested else local_input.flat(*self._reader())
        places = [data.place("--input", self._input, flat), data.place("--output", self._output)]
        data.check(*places)
        if self._unregistered:
            register(self._session, self._unregistered)
        if places[0].local is not None and places[0].local.nested:
            for name, value in local_input.recursive(*self._reader()).items():
                self._configs[name] = value
                self._session.note(f"the input has folders, so the job has -c {name}={value}")
        why = f" ({self._kind.why})" if self._kind.why else ""
        self._session.note(f"{self._main.name} is a {self._kind.type.value} job{why}")
        job_id = self._job()
        ids = {"input_id": data.source_id(places[0]), "output_id": data.source_id(places[1])}
        body = {
            **where,
            **{name: id_ for name, id_ in ids.items() if id_},
            "job_configs": {"configs": self._configs, "params": self._params, "args": self._args},
        }
        path = f"/jobs/{safe(job_id)}/execute"
        if places[0].local is not None:
            self._post(f"{path}?dry_run=true", body, "plan")  # a refused job needs no data
            data.upload(places[0])
        self._asked = True
        return self._post(path, body, "execute")["job_execution"]

    def _reader(self) -> tuple[JobType, str, Iterable[str]]:
        return self._kind.type, self._main.name, self._configs

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
        elif not template.get("default_image_id"):
            cluster["default_image_id"], self._unregistered = default_image(self._session, cluster)
        if self._keypair:
            cluster["user_keypair_id"] = self._keypair
        return {"cluster": cluster}

    # ---- jobs and binaries ----------------------------------------------------------------------

    def _post(self, path: str, body: object, step: str) -> Any:
        return self._session.api.post(path, body, key=f"{self._invocation}-{step}")

    def _listed(self, path: str, key: str, **filters: str) -> Sequence[Any]:
        query = "&".join(f"{name}={safe(value)}" for name, value in filters.items())
        rows: Sequence[Any] = self._session.api.listed(f"{path}?{query}")[key]
        return [row for row in rows if all(row.get(n) == v for n, v in filters.items())]

    def _job(self) -> str:
        files = [self._main, *self._libs]
        main = takes_mains(self._kind.type)
        ids = [self._binary(file, number) for number, file in enumerate(files)]
        mains, libs = (ids[:1], ids[1:]) if main else ([], ids)
        name = Path(self._main.name).stem

        def look() -> Reuse:
            path = f"/jobs?type={self._kind.type.value}"
            known = self._session.api.listed(path)["jobs"]
            # the job of that name may have another type
            known = [*known, *self._listed("/jobs", "jobs", name=slug(name))]
            return job(name, self._kind.type, mains, libs, known)

        body = {"type": self._kind.type.value, "mains": mains, "libs": libs}
        found = reused(look, lambda name: self._make("/jobs", "job", "job", name, body))
        note = ": made" if f"job {found.name}" in self._made else ""
        self._session.note(f"job {found.name}{note}")
        return found.id

    def _make(self, path: str, key: str, step: str, name: str, body: Mapping[str, Any]) -> Any:
        row = self._post(path, {"name": name, **body}, f"{step}-{name}")[key]
        self._made.append(f"{key.replace('_', ' ')} {name}")
        return row

    def _binary(self, file: Program, number: int) -> str:
        def look(data_id: str) -> Reuse:
            rows = self._session.api.listed("/job-binaries")["binaries"]
            return binary(file.name, file.digest, data_id, rows)

        look(kept(self._session, file).id)  # refuses before the upload
        url = stored(self._session, file)

        def make(name: str) -> Any:
            body = {"url": url} if name == file.name else {"url": url, "file_name": file.name}
            return self._make("/job-binaries", "job_binary", f"binary-{number}", name, body)

        return reused(lambda: look(url.removeprefix(INTERNAL_URL)), make).id
