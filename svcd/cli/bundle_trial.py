"""Asks the API by dry runs, before any work, whether it accepts the objects of a bundle.

Each new object and each new size of a cluster is a dry run of its request. Objects that the bundle
itself makes have no ids yet. So a new template stands in a request with its fields. In place of a
new binary, or of content that is not uploaded yet, stands an id that the API does not know. The
refusal INVALID_REFERENCE then means this id; every other refusal is one of the real request.
"""

from __future__ import annotations

from collections.abc import Iterator, Mapping, Sequence
from typing import Final

from attrs import evolve

from svcd.cli import bundle
from svcd.cli.bundle import BY_NAME, MADE_OF, Item, There
from svcd.cli.bundle_plan import Change, Step
from svcd.cli.client import name_taken, safe
from svcd.cli.exits import REFUSED, CommandError
from svcd.cli.session import Session
from svcd.cli.words import in_commands
from svcd.errors import InvalidReference
from svcd.model.job import INTERNAL_URL, JobType
from svcd.workflow.decide import rules, spark_job

_NO_ID: Final = "not-made-yet"


def tried(
    session: Session, steps: Sequence[Step], there: There, ids: Mapping[tuple[str, str], str]
) -> Sequence[Step]:
    """The steps; those that the API refuses become refusals. ids: see `bundle.request`."""
    if not any(step.change in (Change.CREATE, Change.SCALE) for step in steps):
        return steps
    trial = _Trial(session, steps, there, ids)
    return [trial.of(step) for step in steps]


class _Trial:
    def __init__(
        self,
        session: Session,
        steps: Sequence[Step],
        there: There,
        ids: Mapping[tuple[str, str], str],
    ) -> None:
        self._api = session.api
        self._there = there
        creates = [step.item for step in steps if step.change is Change.CREATE]
        self._new = {(item.kind.name, item.name): item for item in creates}
        self._ids = dict.fromkeys(self._new, _NO_ID) | dict(ids)

    def of(self, step: Step) -> Step:
        """The step itself, or its refusal."""
        if step.change not in (Change.CREATE, Change.SCALE):
            return step
        faults = list(other_plugins(step.item, self._new)) or list(self._faults(step))
        return evolve(step, change=Change.REFUSED, texts=faults) if faults else step

    def _faults(self, step: Step) -> Iterator[str]:
        item = step.item
        try:
            if step.change is Change.SCALE:
                groups = [bundle.whole_group(group, self._new) for group in step.groups]
                body = bundle.scale_request(step.sizes, groups, self._ids)
                self._api.put(f"/clusters/{safe(step.id)}?dry_run=true", body | step.life)
            else:
                self._create(item)
        except CommandError as error:
            if error.code != REFUSED:
                raise
            expected = error.name == InvalidReference.name and self._lacks_an_id(item)
            made_meanwhile = name_taken(error) and not self._was_there(item)
            if not expected and not made_meanwhile:
                yield str(error)
                return
        if item.kind.name == "jobs":
            yield from map(in_commands, _job_faults(item))

    def _create(self, item: Item) -> None:
        body = bundle.whole(item.body, self._new)
        query = "?dry_run=true"
        image = self._there.image(str(body.get("image") or ""))
        if image is not None and image in self._there.local:
            if item.kind.name == "clusters":
                query += f"&image_user={safe(str(image['username']))}"
            else:  # a template need not name one
                del body["image"]
        url = INTERNAL_URL + _NO_ID if bundle.has_content(item) else ""
        request = bundle.request(evolve(item, body=body), self._ids, url)
        self._api.post(f"{item.kind.path}{query}", request)

    def _was_there(self, item: Item) -> bool:
        """Whether the name was taken before. The API compares names of clusters without case."""
        rows = self._there.rows.get(item.kind.name, ())
        return any(str(row["name"]).lower() == item.name.lower() for row in rows)

    def _lacks_an_id(self, item: Item) -> bool:
        named = set(bundle.references(item)) & set(self._new)
        return bundle.has_content(item) or any(kind == "job_binaries" for kind, _ in named)


def other_plugins(item: Item, new: bundle.New) -> Iterator[str]:
    """New templates that `item` names and that are for another plugin. Pure."""
    wanted = [item.body.get(key) for key in MADE_OF]
    for reference in bundle.references(item):
        template = new.get(reference)
        if template is None or reference[0] == "job_binaries" or None in wanted:
            continue
        given = [template.body.get(key) for key in MADE_OF]
        if given != wanted:
            word = BY_NAME[reference[0]].word
            yield f"{word} {reference[1]} is for plugin {given[0]} {given[1]}"


def _job_faults(item: Item) -> Iterator[str]:
    """The faults of a job that the API finds only when it knows its binaries. Pure."""
    mains, libs = list(item.body.get("mains") or ()), list(item.body.get("libs") or ())
    kind = JobType(item.body["type"])
    yield from rules.job_faults(kind, mains, libs)
    if kind is JobType.SPARK:
        yield from spark_job.main_faults(mains)
