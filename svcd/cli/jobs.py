"""`svcd job …`: lists, shows, follows, cancels, repeats and deletes job executions.

J is the id of an execution or its unique beginning. The name or id of a job, its unique beginning,
or the name of the file that it runs means its latest execution. The jobs that `svcd run` makes of a
file and of its later contents have one name (`job_contents.versions`).
"""

from __future__ import annotations

import uuid
from collections import deque
from collections.abc import Callable, Iterable, Iterator, Mapping, Sequence
from typing import Any, Final

import click

from svcd.cli import names
from svcd.cli.client import Api, safe
from svcd.cli.command import CommandWithOutput, Group
from svcd.cli.data import SOURCE, named_or_unused
from svcd.cli.exits import FAILED, NOT_FOUND, REFUSED, CommandError
from svcd.cli.names import Kind
from svcd.cli.output import write
from svcd.cli.question import delete, yes_option
from svcd.cli.session import Session
from svcd.cli.show import Column, Row, Table, ago, field, get, table_lines
from svcd.cli.times import duration, seconds
from svcd.cli.words import status_of

JOB: Final = Kind(path="/jobs", one="job", many="jobs", noun="job")
EXECUTION: Final = Kind(
    path="/job-executions",
    one="job_execution",
    many="job_executions",
    noun="job execution",
    by="",
)
_MASK: Final = "***"
_STATUSES: Final = ("Pending", "PREP", "RUNNING", "SUSPENDED", "SUCCEEDED", "KILLED", "FAILED")
"""Those of `model.job.ExecutionStatus`, whose import would make each command start later."""
_WORDS: Final = {"FAILED": "", "cancelled": "KILLED"}
"""Words of people (`job_status`) -> the only status that they stand for, or "" for several."""


def _spent(row: Row, now: float) -> str:
    began = seconds(get(row, "created_at"))
    ended = seconds(get(row, "end_time"))
    return "" if began is None else duration((now if ended is None else ended) - began)


def _progress(row: Row, _now: float) -> str:
    share = row.get("progress")
    return f"{share:.0%}" if isinstance(share, (int, float)) else ""


def table(
    jobs: Mapping[str, str],
    clusters: Mapping[str, str],
    others: Callable[[], Iterable[str]] = tuple,
) -> Table:
    """The table of executions. jobs, clusters: names by their ids.

    others: ids of executions that the table may lack.
    """
    return Table(
        many="job_executions",
        one="job_execution",
        columns=(
            field("ID", "id", id=True),
            Column(title="JOB", text=lambda row, _: _named(row, "job_id", jobs), key=True),
            Column(title="STATUS", text=lambda row, _: status_of(row), status=True),
            Column(title="PROGRESS", text=_progress, cut=False, spare=3),
            Column(title="CLUSTER", text=lambda row, _: _place(row, clusters), key=True),
            ago("CREATED", "created_at", spare=1),
            Column(title="TIME", text=_spent, cut=False, spare=2),
            field("EXIT", "return_code", wide=True, spare=4),
            field("WORKFLOW", "workflow_job_id", wide=True, spare=5),
            field("FAILURE", "info.failure.code"),
        ),
        known=lambda: (*others(), *jobs.values(), *clusters, *clusters.values()),
        name=lambda row: get(row, "id"),
        empty="there is no job execution: svcd run FILE --on CLUSTER makes one",
    )


def _named(row: Row, key: str, known: Mapping[str, str]) -> str:
    id_ = get(row, key)
    return known.get(id_, id_)


def _place(row: Row, clusters: Mapping[str, str]) -> str:
    id_ = get(row, "cluster_id")
    return clusters.get(id_, "(deleted)" if id_ else "")


EXECUTIONS: Final = table({}, {})
_GIVEN: Final = (field("GIVEN", "what", cut=False), field("VALUE", "value"))


def execution_of(api: Api, what: str) -> Any:
    """The execution that `what` names. Raises CommandError."""
    found = _exact_execution(api, what)
    if found is not None:
        return found
    rows = api.rows("/job-executions", "job_executions")
    begins = [row for row in rows if what and get(row, "id").startswith(what)]
    if begins:
        return names.chosen(begins, EXECUTION, what, api.door.tenant)
    return _latest(api, jobs_of(api, what))


def jobs_of(api: Api, what: str) -> Sequence[Row]:
    """The jobs that `what` names: one, or those of a file's contents. Raises CommandError."""
    if names.is_id(what) and (job := names.exactly(api, JOB, what)) is not None:
        return [job]
    return named(api.listed(JOB.path)[JOB.many], what, api.door.tenant)


def named(known: Sequence[Row], what: str, tenant: str) -> Sequence[Row]:
    """The jobs among `known` that `what` names: exactly, by the file, or by a beginning. Pure."""
    from svcd.cli.job_contents import program_of, versions

    exact = versions(what, known) or [row for row in known if program_of(row) == what]
    if exact:
        return exact
    begins = [row for row in known if what and get(row, "name").startswith(what)]
    shortest = min((get(row, "name") for row in begins), key=len, default="")
    same = versions(shortest, known)
    if begins and all(row in same for row in begins):
        return same
    return [names.chosen(known, JOB, what, tenant)]


def cluster_or_execution(api: Api, what: str) -> tuple[Any, Any]:
    """The cluster or else the execution that `what` names; the other one is None.

    Exact ids and names come before beginnings, and clusters before executions. Raises CommandError.
    """
    cluster = names.exactly(api, names.CLUSTER, what)
    if cluster is not None:
        return cluster, None
    execution = _exact_execution(api, what)
    if execution is not None:
        return None, execution
    try:
        return names.find(api, names.CLUSTER, what), None
    except CommandError as error:
        if error.code != NOT_FOUND:
            raise
        refusal = error
    try:
        return None, execution_of(api, what)
    except CommandError as error:
        raise refusal if error.code == NOT_FOUND else error from None


def _exact_execution(api: Api, what: str) -> Any:
    """The execution of this id, or the latest of the job of this name; None without one."""
    if names.is_id(what) and (row := api.get(f"{EXECUTION.path}/{safe(what)}")) is not None:
        return row
    job = names.exactly(api, JOB, what)
    return None if job is None else _latest(api, jobs_of(api, what))


def _latest(api: Api, of: Sequence[Row]) -> Any:
    """The latest execution of these jobs. Raises CommandError."""
    paths = [f"{EXECUTION.path}?job_id={safe(get(row, 'id'))}" for row in of]
    latest = [row for path in paths for row in deque(api.rows(path, EXECUTION.many), 1)]
    if latest:
        return max(latest, key=lambda row: get(row, "created_at"))
    text = (
        f"job {get(of[0], 'name')} has no execution: it has not run, or its executions are deleted;"
        " svcd run FILE --on CLUSTER runs a job"
    )
    raise CommandError(text, NOT_FOUND)


job: Final = Group(
    "job", help="List, show, follow, cancel, repeat and delete job executions; delete jobs."
)


@job.command("ls")
@click.option(
    "--status",
    type=click.Choice([*_STATUSES, "cancelled"], case_sensitive=False),
    metavar="STATUS",
    help="only those in this status, such as RUNNING, failed or cancelled",
)
@click.option("--job", "of", metavar="JOB", help="only those of this job")
@click.pass_obj
def ls(session: Session, status: str | None, of: str | None) -> None:
    """List the job executions of the project.

    `svcd job rm` deletes executions. `svcd job forget --unused` then deletes the jobs that svcd run
    made of edited files, and `svcd binary rm --unused` their programs.
    """
    api = session.api
    word = status if status in _WORDS else None
    asked = _WORDS.get(status, status) if status else ""
    filters = {"status": asked} if asked else {}
    ids = [get(row, "id") for row in jobs_of(api, of)] if of else []
    if len(ids) == 1:
        filters["job_id"] = ids[0]
    query = "&".join(f"{name}={safe(value)}" for name, value in filters.items())
    path = "/job-executions" + (f"?{query}" if query else "")

    def others() -> Iterator[str]:
        for row in api.rows("/job-executions", "job_executions") if status or ids else ():
            yield get(row, "id")

    shown = table_of(session, others)
    if status or ids:
        shown = shown._replace(empty="there is no such job execution; svcd job ls shows all")
    rows = api.listed(path)[EXECUTION.many]
    wanted = [
        row
        for row in rows
        if (not ids or row["job_id"] in ids) and (not word or status_of(row) == word.lower())
    ]
    session.show({EXECUTION.many: wanted}, shown)


def table_of(session: Session, others: Callable[[], Iterable[str]] = tuple) -> Table:
    """The table with the names of jobs and clusters, which only tables show. others: see table."""
    if session.output not in ("table", "wide"):
        return EXECUTIONS
    api = session.api
    jobs = {str(row["id"]): str(row["name"]) for row in api.listed("/jobs")["jobs"]}
    clusters = api.listed("/clusters")["clusters"]
    return table(jobs, {str(row["id"]): str(row["name"]) for row in clusters}, others)


@job.command("show")
@click.argument("what", metavar="J")
@click.pass_obj
def show(session: Session, what: str) -> None:
    """Show a job execution: its state, and the data and values that it was given."""
    row = execution_of(session.api, what)
    session.show(row, table_of(session))
    given = list(_given(session.api, row)) if session.output in ("table", "wide") else []
    if given:
        lines = table_lines(_GIVEN, given, session.width(), session.now(), session.style)
        write("".join(f"{line}\n" for line in ("", *lines)))


def _given(api: Api, execution: Row) -> Iterator[Row]:
    """What a user gave to an execution, by the options of `svcd run`."""
    for what in ("input", "output"):
        id_ = get(execution, f"{what}_id")
        if id_:
            source = api.get(f"{SOURCE.path}/{safe(id_)}")
            url = get(source, f"{SOURCE.one}.url") if source else "(deleted)"
            yield {"what": f"--{what}", "value": url}
    configs = execution.get("job_configs") or {}
    for option, key in (("-c", "configs"), ("-p", "params")):
        for name, value in (configs.get(key) or {}).items():
            yield {"what": option, "value": f"{name}={value}"}
    for value in configs.get("args") or []:
        yield {"what": "argument", "value": value}


@job.command("logs")
@click.argument("what", metavar="J")
@click.option(
    "-f",
    "--follow",
    is_flag=True,
    help="follow the output of its programs, and end with its result",
)
@click.option(
    "--all",
    "shows_all",
    is_flag=True,
    help="show each line, also those of Oozie, Hadoop, Pig, Spark and Java",
)
@click.pass_obj
def logs(session: Session, what: str, follow: bool, shows_all: bool) -> int:
    """Print the output of a job execution's programs."""
    from svcd.cli.followed_execution import Followed

    followed = Followed(session, str(execution_of(session.api, what)["id"]), shows_all)
    if follow:
        return followed.to_its_end()
    followed.once()
    return 0


@job.command("cancel")
@click.argument("what", metavar="J")
@click.pass_obj
def cancel(session: Session, what: str) -> int:
    """Cancel a job execution."""
    id_ = str(execution_of(session.api, what)["id"])
    after = session.api.post(f"/job-executions/{safe(id_)}/cancel", None)
    session.note(f"job execution {id_} is {status_of(after)}")
    session.show(after, table_of(session))
    return 0 if after["info"]["status"] == "KILLED" else FAILED


@job.command("rm")
@click.argument("what", metavar="J…", nargs=-1, required=True)
@yes_option
@click.pass_obj
def rm(session: Session, what: Sequence[str], yes: bool) -> None:
    """Delete job executions; a running one is killed. The job itself stays."""
    found = [(EXECUTION, execution_of(session.api, word)) for word in what]
    delete(session, EXECUTION.noun, found, yes)


@job.command("forget")
@click.argument("what", metavar="JOB…", nargs=-1)
@click.option(
    "--unused",
    is_flag=True,
    help="those that svcd run made of the later contents of files, if they have no execution left",
)
@yes_option
@click.pass_obj
def forget(session: Session, what: Sequence[str], unused: bool, yes: bool) -> None:
    """Delete jobs that have no execution left. Their programs stay: svcd binary rm."""
    from svcd.cli.job_contents import later_jobs

    api = session.api
    found = named_or_unused(session, JOB, what, unused)
    if unused:
        used = {get(row, "job_id") for row in api.rows(EXECUTION.path, EXECUTION.many)}
        known = later_jobs(api.listed(JOB.path)[JOB.many])
        found = [row for row in known if get(row, "id") not in used]
    delete(session, JOB.noun, [(JOB, row) for row in found], yes)


@job.command("rerun", cls=CommandWithOutput)
@click.argument("what", metavar="J")
@click.option("--on", metavar="CLUSTER", help="another cluster")
@click.option(
    "--output",
    "--output-source",
    "place",
    metavar="URL",
    help="another output: hdfs:///… or objstore://…, which must not exist, or a data source",
)
@click.option("--detach", is_flag=True, help="print the execution and do not follow it")
@click.pass_obj
def rerun(session: Session, what: str, on: str | None, place: str | None, detach: bool) -> int:
    """Run the job of an execution again, with the same data and configuration."""
    from svcd.cli.followed_execution import Followed
    from svcd.cli.job_data import JobData, Place

    api = session.api
    before = execution_of(api, what)
    body = {
        name: before[name]
        for name in ("cluster_id", "input_id", "output_id", "job_configs")
        if before.get(name)
    }
    if _MASK in str(body.get("job_configs", "")):
        text = f"job execution {before['id']} shows its secrets as {_MASK} to this login"
        raise CommandError(f"{text}: run the job anew with svcd run", REFUSED)
    if on:
        body["cluster_id"] = names.find(api, names.CLUSTER, on)["id"]
    key = uuid.uuid4().hex
    if place:
        data = JobData(session, key)
        output = data.place("--output", place)
        data.check(Place(), output)
        body["output_id"] = data.source_id(output)
    row = api.post(f"/jobs/{safe(before['job_id'])}/execute", body, key)["job_execution"]
    if detach:
        session.show(row, table_of(session))
        return 0
    session.note(f"job execution {row['id']}")
    return Followed(session, str(row["id"])).to_its_end()


@job.command("why")
@click.argument("what", metavar="J")
@click.option("--all", "whole", is_flag=True, help="show every line")
@click.pass_obj
def why(session: Session, what: str, whole: bool) -> None:
    """Show the history of a job execution, its failure, and what to do."""
    from svcd.cli.why import history, refuse_data

    refuse_data(session)
    for line in history(session.api, str(execution_of(session.api, what)["id"]), whole):
        print(line)
