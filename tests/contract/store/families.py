"""What every family of rows must do on every driver, family by family: a mixin beside contract."""

from __future__ import annotations

import hashlib
import json
from collections.abc import Awaitable, Callable, Coroutine, Mapping
from typing import Any, TypeVar, cast

from attrs import evolve

from svcd import errors
from svcd.model.cluster import ClusterStatus, InitScript
from svcd.model.ids import (
    ClusterId,
    ClusterTemplateId,
    DataSourceId,
    JobBinaryId,
    JobBinaryInternalId,
    JobId,
)
from svcd.model.job import ExecutionStatus
from svcd.ports.store import Page, Store, Tx
from svcd.runtime.tasks import gather
from svcd.store.sealer import MemorySealer
from svcd.store.store import NO_LIMITS, SqlStore
from tests.contract.store.job_credentials import noted
from tests.contract.store.rows import (
    OTHER,
    TENANT,
    at,
    binary,
    cluster,
    cluster_template,
    execution,
    group_template,
    internal,
    job,
    source,
)

T = TypeVar("T")

STRANGE = 'it\'s "100%" %s :name ?1 $1 \\ \u00fc \u6f22 \U0001f40d \u202e \u0301'
NUL = "a\0b"

MAKE: Mapping[str, Callable[[int], Any]] = {
    "node_group_templates": lambda n: group_template(n),
    "cluster_templates": lambda n: evolve(
        cluster_template(), id=ClusterTemplateId(f"ct-{n}"), name=f"n-{n}", created_at=at(n)
    ),
    "clusters": lambda n: cluster(n),
    "data_sources": lambda n: source(id=DataSourceId(f"ds-{n}"), name=f"n-{n}", created_at=at(n)),
    "internals": lambda n: evolve(
        internal(f"n-{n}"), id=JobBinaryInternalId(f"jbi-{n}"), created_at=at(n)
    ),
    "job_binaries": lambda n: evolve(
        binary(), id=JobBinaryId(f"jb-{n}"), name=f"n-{n}", created_at=at(n)
    ),
    "jobs": lambda n: evolve(job(), id=JobId(f"j-{n}"), name=f"n-{n}", created_at=at(n)),
    "executions": lambda n: execution(n),
}
TAKEN = {
    "node_group_templates": errors.NodeGroupTemplateNameTaken,
    "cluster_templates": errors.ClusterTemplateNameTaken,
    "clusters": errors.ClusterNameTaken,
    "data_sources": errors.DataSourceNameTaken,
    "internals": errors.JobBinaryInternalNameTaken,
    "job_binaries": errors.JobBinaryNameTaken,
    "jobs": errors.JobNameTaken,
}
RENDERED = ("node_group_templates", "cluster_templates", "clusters", "executions")
FILTERS = {
    "node_group_templates": {"name": "workers-2", "plugin_name": "vanilla",
                             "engine_version": "3.5.0", "flavor_id": "2"},
    "cluster_templates": {"name": "n-2", "plugin_name": "vanilla", "engine_version": "3.5.0"},
    "clusters": {"name": "cluster-2", "plugin_name": "vanilla", "engine_version": "3.5.0",
                 "status": "Waiting", "default_image_id": "image-1"},
    "data_sources": {"name": "n-2", "type": "objstore", "url": "objstore://box/in"},
    "internals": {"name": "n-2"},
    "job_binaries": {"name": "n-2", "url": "internaldb://jbi-1"},
    "jobs": {"name": "n-2", "type": "Pig"},
    "executions": {"job_id": "j-1", "cluster_id": "c-1", "input_id": "in", "output_id": "out",
                   "status": "Pending"},
}  # fmt: skip


class FamiliesContract:
    """Needs `self.store`, open and empty, and what raises NotImplementedError here."""

    store: Store

    def result(self, work: Coroutine[Any, Any, T]) -> T:
        """What `work` comes to."""
        raise NotImplementedError

    def tx(self, work: Callable[[Tx], Awaitable[T]]) -> T:
        return self.result(cast("Coroutine[Any, Any, T]", self.store.tx(work)))

    def put(self, family: str, record: Any) -> None:
        self.tx(lambda tx: getattr(tx, family).add(record))

    def ids(self, family: str, page: Page, tenant: str = TENANT) -> list[str]:
        return [r.id for r in self.tx(lambda tx: getattr(tx, family).page(tenant, page))]

    def refused(self, kind: type[Exception], work: Callable[[Tx], Awaitable[object]]) -> str:
        with self.assertRaises(kind) as raised:
            self.tx(work)
        return str(raised.exception)

    # ---- every family -------------------------------------------------------------------------

    def test_every_family_pages_by_key(self) -> None:
        """Creation counts, then the id's bytes; pages of two walk each row once; others' do not."""
        for family, make in MAKE.items():
            prefix = make(1).id[:-1]
            same = make(4)
            for record in (make(3), make(1), make(2), same):
                self.put(family, record)
            twin = evolve(same, id=f"{prefix}40", **self.named(family, "twin"))
            upper = evolve(same, id=prefix.upper() + "4", **self.named(family, "upper"))
            self.put(family, twin)
            self.put(family, upper)
            self.put(family, evolve(make(5), tenant_id=OTHER))
            wanted = [f"{prefix}{n}" for n in (1, 2, 3)] + [upper.id, same.id, twin.id]
            self.assertEqual(self.ids(family, Page()), wanted)
            seen: list[str] = []
            while page := self.ids(family, Page(limit=2, marker=seen[-1] if seen else None)):
                self.assertLessEqual(len(page), 2)
                seen += page
            self.assertEqual(seen, wanted)
            after = Page(marker="unknown", after=(at(3), make(3).id))
            self.assertEqual(self.ids(family, after), wanted[3:])
            self.assertEqual(self.ids(family, Page(), OTHER), [make(5).id])
            foreign = Page(marker=make(5).id)
            self.refused(
                errors.NotFound, lambda tx, f=family, p=foreign: getattr(tx, f).page(TENANT, p)
            )

    def test_every_name_is_taken_once(self) -> None:
        """The check says so in the words of the addition, and writes nothing; others may."""
        for family, kind in TAKEN.items():
            first, second = MAKE[family](1), MAKE[family](2)
            self.put(family, first)
            self.tx(lambda tx, f=family, r=second: getattr(tx, f).check_new(r))
            self.assertEqual(self.ids(family, Page()), [first.id])
            twin = evolve(second, name=first.name)
            texts = {
                self.refused(kind, lambda tx, f=family, n=n, r=twin: getattr(getattr(tx, f), n)(r))
                for n in ("check_new", "add")
            }
            (text,) = texts
            self.assertIn(f"named {first.name!r} exists already", text)
            elsewhere = evolve(twin, tenant_id=OTHER)
            self.tx(lambda tx, f=family, r=elsewhere: getattr(tx, f).check_new(r))
            self.put(family, elsewhere)

    def test_every_filter_selects(self) -> None:
        """Alone, together with the others and an unknown one, and with a value that nobody has."""
        for family, filters in FILTERS.items():
            for number in (1, 2):
                self.put(family, MAKE[family](number))
            found = self.ids(family, Page(filters={**filters, "record": "no such filter"}))
            self.assertEqual(found, [MAKE[family](2).id] if "name" in filters else
                             [MAKE[family](1).id, MAKE[family](2).id])  # fmt: skip
            for column in filters:
                self.assertEqual(self.ids(family, Page(filters={column: "nobody's"})), [])

    def test_of_writers_at_once_one_has_the_name(self) -> None:
        """All others get the family's error, and nothing of them is left."""
        for family, kind in TAKEN.items():

            def add(number: int, family: str = family) -> Callable[[], Any]:
                record = evolve(MAKE[family](number), name="wanted")
                return lambda: self.store.tx(lambda tx: getattr(tx, family).add(record))

            results = self.result(gather([add(n) for n in range(1, 7)], 6))
            kinds = [type(each) for each in results]
            self.assertEqual((kinds.count(type(None)), kinds.count(kind)), (1, 5), family)
            self.assertEqual(len(self.ids(family, Page())), 1)

    def test_figures_count_the_rows_of_all_tenants_by_status(self) -> None:
        """Unsettled clusters age from their newest request; settled ones and ends do not count."""
        for each in (cluster(1), cluster(2), cluster(3, tenant_id=OTHER)):
            self.put("clusters", each)
        figures = self.tx(lambda tx: tx.clusters.figures())
        self.assertEqual((figures.counts, figures.oldest), ({"Waiting": 3}, at(1)))
        active = evolve(cluster(1), status=ClusterStatus.ACTIVE, settled_generation=1)
        self.tx(lambda tx: tx.clusters.save(active))
        figures = self.tx(lambda tx: tx.clusters.figures())
        self.assertEqual((figures.counts, figures.oldest), ({"Active": 1, "Waiting": 2}, at(2)))
        self.tx(lambda tx: tx.clusters.drop(ClusterId("c-2")))
        self.tx(lambda tx: tx.clusters.drop(ClusterId("c-3")))
        scaled = evolve(active, version=2, generation=2, accepted_at=at(7))
        self.tx(lambda tx: tx.clusters.save(scaled))
        self.assertEqual(self.tx(lambda tx: tx.clusters.figures()).oldest, at(7))

    def test_figures_of_executions_are_those_that_have_not_ended(self) -> None:
        """The oldest is the oldest one that the engine has not taken."""
        over = {"status": ExecutionStatus.FAILED, "end_time": at(9)}
        running = {"status": ExecutionStatus.RUNNING}
        for each in (
            execution(1, **over), execution(2, **running), execution(3), execution(4, **running),
            execution(5, tenant_id=OTHER),
        ):  # fmt: skip
            self.put("executions", each)
        figures = self.tx(lambda tx: tx.executions.figures())
        self.assertEqual((figures.counts, figures.oldest), ({"RUNNING": 2, "Pending": 2}, at(3)))

    def test_of_clusters_whose_names_differ_in_case_one_is_taken(self) -> None:
        """Of writers at once too; other tenants may, and a dropped one frees the name."""

        def add(number: int, name: str) -> Callable[[], Any]:
            record = evolve(cluster(number), name=name)
            return lambda: self.store.tx(lambda tx: tx.clusters.add(record))

        writers = [add(n, name) for n, name in enumerate(("Mine", "mine", "MINE", "mInE"), 1)]
        results = self.result(gather(writers, 4))
        kinds = [type(each) for each in results]
        self.assertEqual((kinds.count(type(None)), kinds.count(errors.ClusterNameTaken)), (1, 3))
        (id_,) = self.ids("clusters", Page())
        again = evolve(cluster(5), name="minE")
        text = self.refused(errors.ClusterNameTaken, lambda tx: tx.clusters.add(again))
        self.assertIn("named 'minE' exists already in this tenant (upper and lower case", text)
        self.put("clusters", evolve(again, tenant_id=OTHER, id="c-other"))
        self.tx(lambda tx: tx.clusters.drop(ClusterId(id_)))
        self.put("clusters", again)

    def test_every_family_removes(self) -> None:
        """Once; what is gone is not found, and its name is free."""
        for family, make in MAKE.items():
            record = make(1)
            self.put(family, record)
            remove = lambda tx, f=family, i=record.id: getattr(tx, f).remove(TENANT, i)  # noqa: E731
            self.tx(remove)
            self.assertIn(record.id, self.refused(errors.NotFound, remove))
            get = lambda tx, f=family, i=record.id: getattr(tx, f).get(TENANT, i)  # noqa: E731
            self.refused(errors.NotFound, get)
            self.put(family, record)

    def test_script_of_a_cluster_is_not_removed(self) -> None:
        """Until the cluster is gone."""
        record = internal()
        self.put("internals", record)
        script = InitScript(name=record.name, internal_id=record.id, sha256=record.digest)
        row = cluster(1)
        group = evolve(row.node_groups[0], scripts=(script,))
        self.put("clusters", evolve(row, node_groups=(group,)))
        remove = lambda tx: tx.internals.remove(TENANT, record.id)  # noqa: E731
        text = self.refused(errors.DeletionFailed, remove)
        self.assertIn("is used by cluster 'cluster-1': delete these first", text)
        self.tx(lambda tx: tx.clusters.drop(row.id))
        self.tx(remove)

    def test_every_stored_wire_form_is_the_record(self) -> None:
        """Alone, in pages, and for many who ask at once."""
        for family in RENDERED:
            for number in (2, 1):
                self.put(family, MAKE[family](number))
            one, two = MAKE[family](1).id, MAKE[family](2).id
            for page, wanted in (
                (Page(), [one, two]),
                (Page(marker=one), [two]),
                (Page(after=(at(1), one)), [two]),
            ):
                found = self.tx(
                    lambda tx, f=family, p=page: getattr(tx, f).rendered_page(TENANT, p, 2)
                )
                listed = json.loads(b"[" + found.text + b"]")
                self.assertEqual(found.last, (at(2), two) if len(wanted) == 2 else None)
                self.assertEqual([each["id"] for each in listed], wanted)
            ask = [lambda f=family, i=i: self.store.rendered(f, TENANT, i) for i in (one, two)]
            alone = self.tx(lambda tx, f=family, i=one: getattr(tx, f).rendered(TENANT, i))
            self.assertEqual(self.result(gather(ask, 2))[0], alone)
            self.refused(
                errors.NotFound, lambda tx, f=family, i=one: getattr(tx, f).rendered(OTHER, i)
            )

    def test_a_part_of_large_rows_ends_with_the_one_that_fills_it(self) -> None:
        """After small ones, too."""
        large = "x" * 900_000
        for number in range(1, 13):
            text = "" if number < 3 else large
            self.put("clusters", cluster(number, description=text))
        page = Page()
        found = []
        while True:
            part = self.tx(lambda tx, p=page: tx.clusters.rendered_page(TENANT, p, 2048))
            if part is None:
                break
            listed = json.loads(b"[" + part.text + b"]")
            self.assertEqual(len(listed), part.rows)
            self.assertLess(len(part.text), 6_000_000)
            found += [each["id"] for each in listed]
            page = Page(after=part.last)
        self.assertEqual(found, [f"c-{number}" for number in range(1, 13)])

    def test_several_are_read_by_their_ids(self) -> None:
        """Those of the tenant that exist, of every family."""
        for family, make in MAKE.items():
            for record in (make(1), make(2), evolve(make(3), tenant_id=OTHER)):
                self.put(family, record)
            ids = [make(n).id for n in (1, 2, 3, 4)]
            found = self.tx(lambda tx, f=family, i=ids: getattr(tx, f).several(TENANT, i))
            self.assertEqual(sorted(r.id for r in found), ids[:2])
            self.assertEqual(self.tx(lambda tx, f=family: getattr(tx, f).several(TENANT, [])), [])

    def test_every_text_is_kept_as_it_is(self) -> None:
        """In the columns and in the record: quotes, signs of both drivers, scripts of the world."""
        for family in TAKEN:
            record = evolve(MAKE[family](1), name=STRANGE)
            self.put(family, record)
            found = self.tx(lambda tx, f=family, i=record.id: getattr(tx, f).get(TENANT, i))
            self.assertEqual(found, record)
            self.assertEqual(self.ids(family, Page(filters={"name": STRANGE})), [record.id])

    def test_nul_is_refused(self) -> None:
        """In a column, as a filter and as an id; and what follows is served."""
        for family in TAKEN:
            record = evolve(MAKE[family](1), name=NUL)
            text = self.refused(
                errors.InvalidData, lambda tx, f=family, r=record: getattr(tx, f).add(r)
            )
            self.assertIn("NUL", text)
            for page in (Page(filters={"name": NUL}), Page(marker=NUL)):
                self.refused(
                    errors.InvalidData, lambda tx, f=family, p=page: getattr(tx, f).page(TENANT, p)
                )
            self.put(family, MAKE[family](1))

    # ---- executions ---------------------------------------------------------------------------

    def test_of_writers_at_once_one_saves(self) -> None:
        """The row has the winner's word; one that is gone is not written."""
        self.put("clusters", cluster())
        self.put("executions", execution())
        for family, make in (("clusters", cluster), ("executions", execution)):

            def save(number: int, family: str = family, make: Any = make) -> Callable[[], Any]:
                changed = make(1, updated_at=at(10 + number))
                return lambda: self.store.tx(lambda tx: getattr(tx, family).save(changed))

            results = self.result(gather([save(n) for n in range(6)], 6))
            self.assertEqual(sorted(results), [False] * 5 + [True])
            id_ = make(1).id
            found = self.tx(lambda tx, f=family, i=id_: getattr(tx, f).find(i))
            self.assertEqual((found.version, found.updated_at), (2, at(10 + results.index(True))))
            self.tx(lambda tx, f=family, i=id_: getattr(tx, f).drop(i))
            self.assertFalse(self.tx(lambda tx, f=family, r=found: getattr(tx, f).save(r)))
            self.assertIsNone(self.tx(lambda tx, f=family, i=id_: getattr(tx, f).find(i)))

    def test_executions_of_a_cluster(self) -> None:
        """Oldest first, finished and hidden ones too."""
        self.put("executions", execution(2, end_time=at(9)))
        self.put("executions", execution(1, delete_requested=True))
        self.put("executions", execution(3, cluster_id=ClusterId("c-2")))
        found = self.tx(lambda tx: tx.executions.of_cluster(ClusterId("c-1")))
        self.assertEqual([e.id for e in found], ["e-1", "e-2"])

    def test_executions_whose_folder_is_left(self) -> None:
        """Ended, with a folder; they are unfinished, and a text that looks like one is none."""
        folder, told = "/user/u/svcd/e", {"text": '"workflow_dir":"/user/u"'}
        self.put("clusters", cluster())
        self.put("executions", execution(1, end_time=at(9), workflow_dir=folder))
        self.put("executions", execution(2, end_time=at(9), record=told))
        self.put("executions", execution(3, workflow_dir=folder))
        self.put("executions", execution(4, end_time=at(9), workflow_dir=folder, cluster_id="c-9"))
        left = self.tx(lambda tx: tx.executions.unfinished())
        self.assertEqual([row.id for row in left], ["e-3", "e-1", "e-4"])

    def test_ended_executions_in_parts(self) -> None:
        """Those of all tenants that were created before a time, oldest first."""
        for number in (3, 1, 2, 5):
            self.put("executions", execution(number, end_time=at(9)))
        self.put("executions", execution(4))
        self.put("executions", execution(6, end_time=at(9), delete_requested=True))
        self.put("executions", execution(7, end_time=at(9), tenant_id=OTHER))

        def ended(before: int, after: Any = None, limit: int = 2) -> list[str]:
            rows = self.tx(lambda tx: tx.executions.ended(at(before), after, limit))
            return [row.id for row in rows]

        self.assertEqual(ended(99), ["e-1", "e-2"])
        self.assertEqual(ended(99, execution(2)), ["e-3", "e-5"])
        self.assertEqual(ended(99, execution(5)), ["e-7"])
        self.assertEqual(ended(3, None, 9), ["e-1", "e-2"])

    def test_pruning_is_compare_and_set(self) -> None:
        """A row that another has written, or that has not ended, stays."""
        row = execution(1, end_time=at(9))
        self.put("executions", row)
        self.put("executions", execution(2))
        prune = lambda row: self.tx(lambda tx: tx.executions.prune(row))  # noqa: E731
        self.assertFalse(prune(evolve(row, version=2)))
        self.assertFalse(prune(execution(2)))
        self.assertTrue(prune(row))
        self.assertFalse(prune(row))
        self.assertIsNone(self.tx(lambda tx: tx.executions.find(row.id)))

    def test_pruning_waits_for_folder_and_credential(self) -> None:
        """The folder of a cluster that is gone does not count."""
        row = execution(1, end_time=at(9), workflow_dir="/user/u/svcd/e")
        self.put("clusters", cluster())
        self.put("executions", row)
        credential = evolve(noted(1), execution_id=row.id)
        self.tx(lambda tx: tx.job_credentials.add(credential))
        prune = lambda: self.tx(lambda tx: tx.executions.prune(row))  # noqa: E731
        self.assertFalse(prune())
        self.tx(lambda tx: tx.job_credentials.forget(credential.name))
        self.assertFalse(prune())
        self.tx(lambda tx: tx.clusters.drop(ClusterId("c-1")))
        self.assertTrue(prune())

    def test_a_rollback_makes_no_room(self) -> None:
        """What it had deleted is there again, and counts."""
        limits = evolve(NO_LIMITS, rows=3)
        store = SqlStore(cast("Any", self).database, MemorySealer(), limits=limits)
        templates = [group_template(number) for number in range(6)]
        for each in templates[:3]:
            self.result(store.tx(lambda tx, t=each: tx.node_group_templates.add(t)))

        async def undone(tx: Tx) -> None:
            for each in templates[:3]:
                await tx.node_group_templates.remove(TENANT, each.id)
            await tx.node_group_templates.add(templates[3])
            raise LookupError("undone")

        with self.assertRaises(LookupError):
            self.result(store.tx(undone))
        with self.assertRaises(errors.QuotaExceeded):
            self.result(store.tx(lambda tx: tx.node_group_templates.add(templates[4])))

    # ---- binaries -----------------------------------------------------------------------------

    def test_binary_of_every_byte_in_pieces_of_any_size(self) -> None:
        """1 byte, all 256 values, a full piece, and one more than it."""
        id_, every = JobBinaryInternalId("jbi-1"), bytes(range(256))
        pieces = [b"\0", every, every * 1024, every * 1024 + b"\xff"]
        self.tx(lambda tx: tx.internals.begin(id_, TENANT, 0))
        for number, piece in enumerate(pieces):
            self.tx(lambda tx, n=number, p=piece: tx.internals.append(id_, n, p))
        self.tx(lambda tx: tx.internals.finish(id_, internal()))
        found = [self.tx(lambda tx, n=n: tx.internals.piece(id_, n)) for n in range(5)]
        self.assertEqual(found[-1], None)
        digests = [hashlib.sha256(piece or b"").hexdigest() for piece in found]
        self.assertEqual(digests[:4], [hashlib.sha256(piece).hexdigest() for piece in pieces])

    def of_bytes(self, most: int) -> SqlStore:
        """A store on the same database with this limit of bytes."""
        limits = evolve(NO_LIMITS, binary_bytes=most)
        return SqlStore(cast("Any", self).database, MemorySealer(), limits=limits)

    def test_of_uploads_at_once_those_that_fit_begin(self) -> None:
        """Three of ten bytes where 35 are allowed, however many ask at the same moment."""
        store = self.of_bytes(35)

        def begin(number: int) -> Callable[[], Any]:
            return lambda: store.tx(lambda tx: tx.internals.begin(f"u-{number}", TENANT, 10))

        results = self.result(gather([begin(n) for n in range(8)], 8))
        kinds = [type(each) for each in results]
        self.assertEqual((kinds.count(type(None)), kinds.count(errors.QuotaExceeded)), (3, 5))

    def named(self, family: str, name: str) -> dict[str, str]:
        """The change of name that a second record of one time needs."""
        return {"name": name} if family in TAKEN else {}
