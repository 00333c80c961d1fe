"""What every driver of the store must do: a mixin that runs on each of them."""

from __future__ import annotations

import json
from collections.abc import Awaitable, Callable, Coroutine, Mapping, Sequence
from functools import partial
from typing import Any, TypeVar

from attrs import evolve
from twisted.internet.defer import Deferred
from twisted.python.failure import Failure

from svcd.errors import (
    ClusterNameTaken,
    DeletionFailed,
    InvalidReference,
    NotFound,
    ServiceUnavailable,
)
from svcd.model.cluster import (
    Cluster,
    ClusterEvent,
    ClusterStatus,
    Desired,
    Instance,
    NodeGroup,
)
from svcd.model.ids import (
    ClusterId,
    ClusterTemplateId,
    DataSourceId,
    ExecutionId,
    InstanceId,
    JobBinaryId,
    JobBinaryInternalId,
    JobId,
    NodeGroupTemplateId,
    TenantId,
    timestamp,
)
from svcd.model.job import (
    Credentials,
    DataSource,
    Execution,
    ExecutionStatus,
    Job,
    JobBinary,
    JobBinaryInternal,
    JobConfigs,
    JobType,
)
from svcd.model.template import ClusterTemplate, NodeGroupTemplate, TemplateNodeGroup
from svcd.ports.store import Page, Store, Tx

T = TypeVar("T")


def now_of(done: Deferred[T]) -> T:
    """What a Deferred has fired with."""
    results: list[T] = []
    failures: list[Failure] = []
    done.addCallbacks(results.append, failures.append)
    if failures:
        failures[0].raiseException()
    return results[0]


TENANT = TenantId("acme")
OTHER = TenantId("other")


def at(second: int) -> str:
    return timestamp(1_767_225_600 + second)


def group_template(number: int, name: str | None = None) -> NodeGroupTemplate:
    return NodeGroupTemplate(
        id=NodeGroupTemplateId(f"ngt-{number}"),
        tenant_id=TENANT,
        name=name or f"workers-{number}",
        plugin_name="vanilla",
        engine_version="3.5.0",
        node_processes=("datanode", "nodemanager"),
        flavor_id="2",
        node_configs={"HDFS": {"dfs.replication": 2, "flag": True, "text": "x"}},
        created_at=at(number),
    )


def cluster_template() -> ClusterTemplate:
    return ClusterTemplate(
        id=ClusterTemplateId("ct-1"),
        tenant_id=TENANT,
        name="small",
        plugin_name="vanilla",
        engine_version="3.5.0",
        node_groups=(
            TemplateNodeGroup(
                name="workers",
                count=2,
                node_group_template_id=NodeGroupTemplateId("ngt-1"),
                flavor_id="2",
                node_processes=("datanode",),
            ),
        ),
        created_at=at(1),
    )


def cluster(number: int = 1, **changes: object) -> Cluster:
    made = Cluster(
        id=ClusterId(f"c-{number}"),
        tenant_id=TENANT,
        name=f"cluster-{number}",
        plugin_name="vanilla",
        engine_version="3.5.0",
        default_image_id="image-1",
        status_since=at(number),
        node_groups=(
            NodeGroup(
                name="master",
                count=1,
                flavor_id="2",
                node_processes=("namenode",),
                instances=(
                    Instance(
                        instance_id=InstanceId("i-1"),
                        instance_name="cluster-1-master-001",
                        index=1,
                        created_at=at(number),
                    ),
                ),
                created_at=at(number),
            ),
        ),
        created_at=at(number),
    )
    return evolve(made, **changes)


def execution(number: int = 1, **changes: object) -> Execution:
    made = Execution(
        id=ExecutionId(f"e-{number}"),
        tenant_id=TENANT,
        job_id=JobId("j-1"),
        cluster_id=ClusterId("c-1"),
        input_id=DataSourceId("in"),
        output_id=DataSourceId("out"),
        job_configs=JobConfigs(configs={"a": "1"}, args=("x", "y")),
        created_at=at(number),
    )
    return evolve(made, **changes)


def source(**changes: object) -> DataSource:
    made = DataSource(
        id=DataSourceId("in"),
        tenant_id=TENANT,
        name="input",
        type="objstore",
        url="objstore://box/in",
        credentials=Credentials(user="ann", password="s3cret"),
        created_at=at(1),
    )
    return evolve(made, **changes)


def internal(name: str = "script.pig") -> JobBinaryInternal:
    return JobBinaryInternal(
        id=JobBinaryInternalId("jbi-1"),
        tenant_id=TENANT,
        name=name,
        datasize=6,
        digest="00",
        created_at=at(1),
    )


def binary(url: str = "internaldb://jbi-1") -> JobBinary:
    return JobBinary(
        id=JobBinaryId("jb-1"), tenant_id=TENANT, name="script", url=url, created_at=at(1)
    )


def job() -> Job:
    return Job(
        id=JobId("j-1"),
        tenant_id=TENANT,
        name="count",
        type=JobType.PIG,
        mains=(JobBinaryId("jb-1"),),
        created_at=at(1),
    )


class StoreContract:
    """Needs `self.store`, open and empty, and `self.dump(table)`: all its rows as one text."""

    store: Store

    def now(self, work: Callable[[Tx], Awaitable[T]]) -> T:
        """The result of one transaction."""
        return self.successResultOf(Deferred.fromCoroutine(self.store.tx(work)))

    def wait(self, work: Coroutine[Any, Any, T]) -> T:
        """The result of `work`, or its error."""
        return now_of(Deferred.fromCoroutine(work))

    def fails(self, work: Callable[[Tx], Awaitable[object]], kind: type[Exception]) -> str:
        """The text of the error that the transaction raises."""
        failure = self.failureResultOf(Deferred.fromCoroutine(self.store.tx(work)), kind)
        return str(failure.value)

    # ---- all families -------------------------------------------------------------------------

    def test_record_comes_back_as_it_went_in(self) -> None:
        """Every field of a record survives the store."""
        for family, record in (
            ("node_group_templates", group_template(1)),
            ("cluster_templates", cluster_template()),
            ("clusters", cluster()),
            ("data_sources", source()),
            ("job_binaries", binary()),
            ("jobs", job()),
            ("executions", execution()),
        ):
            self.now(lambda tx, f=family, r=record: getattr(tx, f).add(r))
            found = self.now(lambda tx, f=family, r=record: getattr(tx, f).get(TENANT, r.id))
            self.assertEqual(found, record)

    def test_other_tenants_record_is_not_found(self) -> None:
        """An id of another tenant is as unknown as one that does not exist."""
        self.now(lambda tx: tx.clusters.add(cluster()))
        text = self.fails(lambda tx: tx.clusters.get(OTHER, ClusterId("c-1")), NotFound)
        self.assertEqual(text, "cluster 'c-1' not found")
        self.fails(lambda tx: tx.clusters.remove(OTHER, ClusterId("c-1")), NotFound)
        self.assertEqual(self.now(lambda tx: tx.clusters.page(OTHER, Page())), [])

    def test_name_is_compared_by_its_bytes(self) -> None:
        """Upper case is another name, of all but clusters."""
        upper = source(id=DataSourceId("x"), name=source().name.upper())
        self.now(lambda tx: tx.data_sources.add(source()))
        self.now(lambda tx: tx.data_sources.add(upper))

    def test_failed_transaction_changes_nothing(self) -> None:
        """An exception takes back what was written before it."""

        async def work(tx: Tx) -> None:
            await tx.clusters.add(cluster())
            raise ValueError("no")

        self.fails(work, ValueError)
        self.assertEqual(self.now(lambda tx: tx.clusters.page(TENANT, Page())), [])

    def test_transaction_sees_what_it_wrote(self) -> None:
        """Also what a driver keeps until something follows."""

        async def work(tx: Tx) -> tuple[Cluster, int]:
            await tx.clusters.add(cluster())
            found = await tx.clusters.get(TENANT, ClusterId("c-1"))
            await tx.clusters.remove(TENANT, ClusterId("c-1"))
            return found, len(await tx.clusters.page(TENANT, Page()))

        self.assertEqual(self.now(work), (cluster(), 0))

    def test_refused_write_takes_its_transaction_back(self) -> None:
        """Whether it is the last one or something follows; the error is the family's."""

        async def last(tx: Tx) -> None:
            await tx.clusters.add(cluster())
            await tx.clusters.add(cluster(2, name="cluster-1"))

        async def followed(tx: Tx) -> None:
            await last(tx)
            await tx.clusters.page(TENANT, Page())

        for work in (last, followed):
            self.fails(work, ClusterNameTaken)
            self.assertEqual(self.now(lambda tx: tx.clusters.page(TENANT, Page())), [])

    def test_a_read_leaves_no_write(self) -> None:
        """It raises, and nothing is written."""
        reading = self.store.read(lambda tx: tx.clusters.add(cluster()))
        with self.assertRaises(RuntimeError):
            self.wait(reading)
        self.assertEqual(self.now(lambda tx: tx.clusters.page(TENANT, Page())), [])

    def test_rendered_row_is_the_wire_form(self) -> None:
        """The stored wire JSON follows every write of the record."""
        self.now(lambda tx: tx.clusters.add(cluster()))
        rendered = self.now(lambda tx: tx.clusters.rendered(TENANT, ClusterId("c-1")))
        self.assertEqual(json.loads(rendered.splitlines()[0])["status"], "Waiting")
        self.now(lambda tx: tx.clusters.save(cluster(status=ClusterStatus.ACTIVE)))
        pages = self.now(lambda tx: tx.clusters.rendered_page(TENANT, Page(), 1))
        assert pages is not None
        self.assertEqual(pages.last, (at(1), "c-1"))
        self.assertEqual(json.loads(pages.text)["status"], "Active")
        self.now(lambda tx: tx.clusters.add(cluster(2, description="a,b \u6f22")))
        both = self.now(lambda tx: tx.clusters.rendered_page(TENANT, Page(), 3))
        assert both is not None
        self.assertIsNone(both.last)
        listed = json.loads(b"[" + both.text + b"]")
        self.assertEqual(
            [(c["id"], c["description"]) for c in listed], [("c-1", ""), ("c-2", "a,b \u6f22")]
        )
        last = self.now(lambda tx: tx.clusters.rendered_page(TENANT, Page(marker="c-1"), 1))
        assert last is not None
        self.assertEqual(json.loads(last.text)["id"], "c-2")
        self.assertIsNone(self.now(lambda tx: tx.clusters.rendered_page(OTHER, Page(), 9)))
        keys = [(TENANT, "c-1"), (OTHER, "c-2")]
        many = self.now(lambda tx: tx.clusters.rendered_many(keys))
        self.assertEqual(many, {(TENANT, "c-1"): pages.text + b"\n[]"})

    # ---- references ---------------------------------------------------------------------------

    def test_template_in_use_is_not_removed(self) -> None:
        """The message names what uses the template; without users it goes."""
        self.now(lambda tx: tx.node_group_templates.add(group_template(1)))
        self.now(lambda tx: tx.cluster_templates.add(cluster_template()))
        used = cluster(cluster_template_id=ClusterTemplateId("ct-1"))
        self.now(lambda tx: tx.clusters.add(used))
        text = self.fails(
            lambda tx: tx.node_group_templates.remove(TENANT, NodeGroupTemplateId("ngt-1")),
            InvalidReference,
        )
        self.assertIn("cluster template 'small'", text)
        text = self.fails(
            lambda tx: tx.cluster_templates.remove(TENANT, ClusterTemplateId("ct-1")),
            InvalidReference,
        )
        self.assertIn("cluster 'cluster-1'", text)
        self.now(lambda tx: tx.clusters.drop(ClusterId("c-1")))
        self.now(lambda tx: tx.cluster_templates.remove(TENANT, ClusterTemplateId("ct-1")))
        self.now(lambda tx: tx.node_group_templates.remove(TENANT, NodeGroupTemplateId("ngt-1")))

    def test_data_objects_in_use_are_not_removed(self) -> None:
        """Internal, binary, job and source each name their users."""
        self.now(lambda tx: tx.internals.begin("jbi-1", TENANT, 0))
        self.now(lambda tx: tx.internals.finish("jbi-1", internal()))
        self.now(lambda tx: tx.job_binaries.add(binary()))
        self.now(lambda tx: tx.jobs.add(job()))
        self.now(lambda tx: tx.data_sources.add(source()))
        self.now(lambda tx: tx.executions.add(execution()))
        for family, id_, user in (
            ("internals", "jbi-1", "job binary 'script'"),
            ("job_binaries", "jb-1", "job 'count'"),
            ("jobs", "j-1", "job execution 'e-1'"),
            ("data_sources", "in", "job execution 'e-1'"),
        ):
            text = self.fails(
                lambda tx, f=family, i=id_: getattr(tx, f).remove(TENANT, i), DeletionFailed
            )
            self.assertIn(user, text)

    # ---- secrets ------------------------------------------------------------------------------

    def test_credentials_are_sealed_at_rest(self) -> None:
        """No column of the row holds the password."""
        self.now(lambda tx: tx.data_sources.add(source()))
        self.assertNotIn("s3cret", self.dump("data_sources"))

    # ---- clusters -----------------------------------------------------------------------------

    def test_unsettled_are_those_with_a_newer_generation(self) -> None:
        """Oldest first, any tenant."""
        self.now(lambda tx: tx.clusters.add(cluster(2)))
        self.now(lambda tx: tx.clusters.add(cluster(1, tenant_id=OTHER)))
        self.now(lambda tx: tx.clusters.add(cluster(3, settled_generation=1)))
        found = self.now(lambda tx: tx.clusters.unsettled())
        self.assertEqual(list(found.items()), [("c-1", 1), ("c-2", 1)])

    def test_dropped_cluster_leaves_its_executions(self) -> None:
        """They keep its id, on the wire too; events go."""
        self.now(lambda tx: tx.clusters.add(cluster()))
        self.now(lambda tx: tx.executions.add(execution()))
        self.now(lambda tx: tx.clusters.drop(ClusterId("c-1")))
        found = self.now(lambda tx: tx.executions.get(TENANT, ExecutionId("e-1")))
        self.assertEqual(found.cluster_id, "c-1")
        rendered = self.now(lambda tx: tx.executions.rendered(TENANT, ExecutionId("e-1")))
        self.assertEqual(json.loads(rendered)["cluster_id"], "c-1")

    def test_active_are_those_at_rest(self) -> None:
        """Not one that is being scaled, nor one in Error."""
        for number, status in ((1, "Active"), (2, "Validating"), (3, "Error"), (4, "Active")):
            row = evolve(cluster(number), status=ClusterStatus(status), settled_generation=1)
            if number == 4:
                row = evolve(row, generation=2)
            self.now(lambda tx, r=row: tx.clusters.add(r))
        self.assertEqual(self.now(lambda tx: tx.clusters.active()), ["c-1"])

    def test_idle_transient_had_an_execution_and_has_none_now(self) -> None:
        """Active, or failed and cleaned up: not without any execution, nor with a running one."""
        active, failed = ClusterStatus.ACTIVE, ClusterStatus.ERROR
        for number, status, settled, end in (
            (1, active, 0, at(9)),
            (2, active, 0, None),
            (3, active, 0, ""),
            (4, failed, 1, at(9)),
            (5, failed, 0, at(9)),
        ):
            row = cluster(
                number, status=status, is_transient=True, generation=1, settled_generation=settled
            )
            self.now(lambda tx, r=row: tx.clusters.add(r))
            if end != "":
                ran = execution(number, cluster_id=row.id, end_time=end)
                self.now(lambda tx, e=ran: tx.executions.add(e))
        self.assertEqual(sorted(self.now(lambda tx: tx.clusters.idle_transient())), ["c-1", "c-4"])

    def test_idle_transient_may_have_lost_its_executions(self) -> None:
        """They were deleted as they ended: it has no work, and had some."""
        self.now(
            lambda tx: tx.clusters.add(cluster(status=ClusterStatus.ACTIVE, is_transient=True))
        )
        self.now(lambda tx: tx.executions.add(execution()))
        row = self.now(lambda tx: tx.clusters.find(ClusterId("c-1")))
        self.assertTrue(self.now(lambda tx: tx.clusters.save(row)))
        self.now(lambda tx: tx.executions.drop(ExecutionId("e-1")))
        self.assertEqual(self.now(lambda tx: tx.clusters.idle_transient()), ["c-1"])

    def test_endings_have_a_limit_and_no_deletion(self) -> None:
        for number, fields in enumerate(
            (
                {"idle_delete_s": 60},
                {"max_age_s": 60, "status": ClusterStatus.ERROR},
                {},
                {"max_age_s": 60, "desired": Desired.DELETED},
            ),
            1,
        ):
            row = cluster(number, **fields)
            self.now(lambda tx, r=row: tx.clusters.add(r))
        versions = {"c-1": 1, "c-2": 1}
        self.assertEqual(self.now(lambda tx: tx.clusters.endings()), versions)
        row = self.now(lambda tx: tx.clusters.find(ClusterId("c-3")))
        self.now(lambda tx: tx.clusters.save(evolve(row, idle_delete_s=60), row))
        self.assertEqual(self.now(lambda tx: tx.clusters.endings()), {**versions, "c-3": 2})

    def test_use_is_an_open_execution_or_the_newest_one(self) -> None:
        self.now(lambda tx: tx.clusters.add(cluster()))
        use = partial(self.now, lambda tx: tx.executions.use_of(ClusterId("c-1")))
        self.assertEqual(use(), (False, None))
        for number, end in ((1, at(9)), (2, None), (3, at(9))):
            ran = execution(number, end_time=end)
            self.now(lambda tx, e=ran: tx.executions.add(e))
        self.assertEqual(use(), (True, at(3)))
        self.now(lambda tx: tx.executions.drop(ExecutionId("e-2")))
        self.assertEqual(use(), (False, at(3)))

    def test_a_tenant_keeps_the_seconds_of_its_machines(self) -> None:
        """Also of dropped clusters. The text of a cluster follows its JSON, and is in no list."""
        time = [100.0]
        self.store._now = lambda: time[0]

        def servers(number: int, *ids: str | None) -> Cluster:
            made = cluster(number, version=versions[number])
            (group,) = made.node_groups
            rows = tuple(evolve(group.instances[0], server_id=id_) for id_ in ids)
            versions[number] += 1
            return evolve(made, node_groups=(evolve(group, instances=rows),))

        versions = {1: 1, 2: 1}
        seconds = partial(self.now, lambda tx: tx.clusters.seconds_by_tenant())
        self.now(lambda tx: tx.clusters.add(cluster()))
        self.now(lambda tx: tx.clusters.add(cluster(2, tenant_id=OTHER)))
        for at_s, number, ids in (
            (100.0, 1, ("a", "b")), (100.0, 2, ("c",)), (110.0, 1, ("b",)), (130.0, 2, (None,)),
        ):  # fmt: skip
            time[0] = at_s
            row = evolve(servers(number, *ids), tenant_id=(TENANT, OTHER)[number - 1])
            self.assertTrue(self.now(lambda tx, r=row: tx.clusters.save(r)))
        self.assertFalse(self.now(lambda tx: tx.clusters.save(cluster())))
        self.assertEqual(seconds(), {TENANT: 40.0, OTHER: 30.0})
        text = self.now(lambda tx: tx.clusters.rendered(TENANT, ClusterId("c-1")))
        answer, usage = text.split(b"\n")
        self.assertEqual(json.loads(usage), [110.0, {"2": [20.0, 1]}])
        listed = self.now(lambda tx: tx.clusters.rendered_page(TENANT, Page(), 9))
        assert listed is not None
        self.assertEqual(listed.text, answer)
        time[0] = 140.0
        self.now(lambda tx: tx.clusters.drop(ClusterId("c-1")))
        time[0] = 90.0
        self.assertEqual(seconds(), {TENANT: 50.0, OTHER: 30.0})

    def test_events_are_kept_in_order_and_bounded(self) -> None:
        """The oldest go when there are more than 2,000."""
        self.now(lambda tx: tx.clusters.add(cluster()))

        def event(number: int) -> ClusterEvent:
            return ClusterEvent(at=at(number), generation=1, step=f"s{number}", outcome="done")

        for start in (0, 1500):
            events = [event(n) for n in range(start, start + 1500)]
            self.now(lambda tx, e=events: tx.clusters.add_events(ClusterId("c-1"), e))
        kept = self.now(lambda tx: tx.clusters.events(TENANT, ClusterId("c-1")))
        self.assertEqual((len(kept), kept[0].step, kept[-1].step), (2000, "s1000", "s2999"))
        self.assertEqual([e.number for e in kept], list(range(1001, 3001)))
        newer = self.now(lambda tx: tx.clusters.events(TENANT, ClusterId("c-1"), 2998))
        self.assertEqual([(e.number, e.step) for e in newer], [(2999, "s2998"), (3000, "s2999")])
        self.assertEqual(
            self.now(lambda tx: tx.clusters.events(TENANT, ClusterId("c-1"), 3000)), []
        )
        self.fails(lambda tx: tx.clusters.events(OTHER, ClusterId("c-1")), NotFound)

    def test_cluster_that_has_not_changed_is_not_decoded_again(self) -> None:
        """A change of a cluster changes its version."""
        self.now(lambda tx: tx.clusters.add(cluster()))
        first = self.now(lambda tx: tx.clusters.find(ClusterId("c-1")))
        again = self.now(lambda tx: tx.clusters.find(ClusterId("c-1"), first))
        self.assertIs(again, first)
        changed = evolve(again, description="new")
        self.assertTrue(self.now(lambda tx: tx.clusters.save(changed)))
        again = self.now(lambda tx: tx.clusters.find(ClusterId("c-1"), first))
        self.assertEqual((again.version, again.description), (2, "new"))
        self.now(lambda tx: tx.clusters.drop(ClusterId("c-1")))
        self.assertIsNone(self.now(lambda tx: tx.clusters.find(ClusterId("c-1"), again)))

    # ---- executions ---------------------------------------------------------------------------

    def test_execution_with_accepted_deletion_is_hidden(self) -> None:
        """Callers do not see it any more; the controller does until it is dropped."""
        self.now(lambda tx: tx.executions.add(execution()))
        self.now(lambda tx: tx.executions.save(execution(delete_requested=True)))
        self.fails(lambda tx: tx.executions.get(TENANT, ExecutionId("e-1")), NotFound)
        self.assertEqual(self.now(lambda tx: tx.executions.page(TENANT, Page())), [])
        left = self.now(lambda tx: tx.executions.unfinished())
        self.assertEqual([e.id for e in left], ["e-1"])
        self.now(lambda tx: tx.executions.drop(ExecutionId("e-1")))
        self.assertEqual(self.now(lambda tx: tx.executions.unfinished()), [])

    def test_what_differs_from_the_state_before_is_written(self) -> None:
        """Each column that a list is filtered by, and the version in any case."""
        self.now(lambda tx: tx.executions.add(evolve(execution(), cluster_id=None)))
        found = self.now(lambda tx: tx.executions.find(ExecutionId("e-1")))
        failed = {"status": ExecutionStatus.FAILED, "end_time": at(9), "submitting": True}
        changes: Sequence[Mapping[str, Any]] = (
            {"attempts": 3},
            {"cluster_id": ClusterId("c-2")},
            {"status": ExecutionStatus.RUNNING},
            failed,
            {"submitting": False},
        )
        for change in changes:
            found = self.saved(found, evolve(found, **change))
            filters = {"status": found.status.value}
            if found.cluster_id is not None:
                filters["cluster_id"] = found.cluster_id
            page = Page(filters=filters)
            self.assertEqual(self.now(lambda tx, p=page: tx.executions.page(TENANT, p)), [found])
            left = [] if change is changes[-1] else [found]
            self.assertEqual(self.now(lambda tx: tx.executions.unfinished()), left)
        self.saved(found, evolve(found, delete_requested=True))
        self.assertEqual(self.now(lambda tx: tx.executions.page(TENANT, Page())), [])

    def saved(self, before: Execution, after: Execution) -> Execution:
        """The row as it is found after its save, of which a second one would be too late."""
        save = partial(_save, after=after, before=before)
        self.assertTrue(self.now(save))
        self.assertFalse(self.now(save))
        found = self.now(lambda tx: tx.executions.find(after.id))
        self.assertEqual(found, evolve(after, version=before.version + 1))
        return found

    def test_unfinished_that_have_not_changed_are_not_decoded_again(self) -> None:
        """A change of an execution changes its version."""
        for number in (1, 2):
            self.now(lambda tx, n=number: tx.executions.add(execution(n)))
        first = self.now(lambda tx: tx.executions.unfinished())
        after = evolve(first[1], waiting=None, attempts=7)
        self.assertTrue(self.now(lambda tx: tx.executions.save(after)))
        self.now(lambda tx: tx.executions.add(execution(3)))
        again = self.now(lambda tx: tx.executions.unfinished(first))
        self.assertIs(again[0], first[0])
        self.assertEqual([(e.id, e.attempts) for e in again[1:]], [("e-2", 7), ("e-3", 0)])

    def test_unfinished_of_before_that_have_gone_are_not_returned(self) -> None:
        """One that is deleted comes last, oldest first, and is read again."""
        for number in range(1, 5):
            self.now(lambda tx, n=number: tx.executions.add(execution(n)))
        first = self.now(lambda tx: tx.executions.unfinished())
        over = {"end_time": at(9), "status": ExecutionStatus.KILLED}
        self.assertTrue(self.now(lambda tx: tx.executions.save(evolve(first[1], **over))))
        hidden = evolve(first[0], **over, delete_requested=True)
        self.assertTrue(self.now(lambda tx: tx.executions.save(hidden)))
        self.now(lambda tx: tx.executions.drop(ExecutionId("e-3")))
        again = self.now(lambda tx: tx.executions.unfinished(first))
        self.assertEqual(
            [(e.id, e.delete_requested) for e in again], [("e-4", False), ("e-1", True)]
        )
        self.assertIs(again[0], first[3])

    def test_very_many_changed_executions_are_all_read(self) -> None:
        """In the same order."""

        async def add(tx: Tx) -> None:
            for number in range(250):
                await tx.executions.add(execution(number))

        self.now(add)
        known = self.now(lambda tx: tx.executions.unfinished())[7:8]
        again = self.now(lambda tx: tx.executions.unfinished(known))
        self.assertEqual([e.id for e in again], [f"e-{number}" for number in range(250)])

    # ---- internal binaries --------------------------------------------------------------------

    def test_pieces_of_an_upload_that_was_thrown_away(self) -> None:
        """Its holder was taken for dead: neither they nor its record are kept."""
        self.now(lambda tx: tx.internals.begin("jbi-1", TENANT, 0))
        self.now(lambda tx: tx.internals.append("jbi-1", 0, b"first"))
        self.now(lambda tx: tx.internals.abandon("jbi-1"))
        self.fails(lambda tx: tx.internals.append("jbi-1", 1, b"second"), ServiceUnavailable)
        self.fails(lambda tx: tx.internals.finish("jbi-1", internal()), ServiceUnavailable)
        self.wait(self.store.drop_pieces("jbi-1"))
        self.assertEqual((self.dump("pieces"), self.dump("internals")), ("[]", "[]"))

    def test_pieces_of_a_finished_upload_are_read_back(self) -> None:
        """Piece by piece, None after the last; gone with the record."""
        id_ = JobBinaryInternalId("jbi-1")
        self.now(lambda tx: tx.internals.begin("jbi-1", TENANT, 0))
        self.now(lambda tx: tx.internals.append("jbi-1", 0, b"\x00\xff"))
        self.now(lambda tx: tx.internals.append("jbi-1", 1, b"tail"))
        self.now(lambda tx: tx.internals.finish("jbi-1", internal()))
        pieces = [self.now(lambda tx, n=n: tx.internals.piece(id_, n)) for n in range(3)]
        self.assertEqual(pieces, [b"\x00\xff", b"tail", None])
        self.now(lambda tx: tx.internals.remove(TENANT, id_))
        self.wait(self.store.drop_pieces("jbi-1"))
        self.assertEqual(self.dump("pieces"), "[]")

    def test_only_the_pieces_of_one_upload_without_owner_are_deleted(self) -> None:
        """Not those of other uploads, of an upload under way or of a binary."""
        for upload, count in (("jbi-1", 1), ("jbi-2", 1), ("jbi-3", 40), ("jbi-4", 1)):
            self.now(lambda tx, u=upload: tx.internals.begin(u, TENANT, 0))
            for number in range(count):
                self.now(lambda tx, u=upload, n=number: tx.internals.append(u, n, u.encode()))
        self.now(lambda tx: tx.internals.finish("jbi-1", internal()))
        self.now(lambda tx: tx.internals.abandon("jbi-3"))
        self.now(lambda tx: tx.internals.abandon("jbi-4"))
        self.assertEqual(self.now(lambda tx: tx.internals.upload_id(internal().id)), "jbi-1")
        for upload in ("jbi-1", "jbi-2", "jbi-3"):
            self.wait(self.store.drop_pieces(upload))
        pieces = self.dump("pieces")
        left = [u for u in ("jbi-1", "jbi-2", "jbi-3", "jbi-4") if u in pieces]
        self.assertEqual(left, ["jbi-1", "jbi-2", "jbi-4"])

    def test_finished_upload_cannot_be_abandoned(self) -> None:
        """Who did not get the answer to its finish takes it back; it may have been done."""
        id_ = JobBinaryInternalId("jbi-1")
        self.now(lambda tx: tx.internals.begin("jbi-1", TENANT, 0))
        self.now(lambda tx: tx.internals.append("jbi-1", 0, b"one"))
        self.now(lambda tx: tx.internals.finish("jbi-1", internal()))
        self.now(lambda tx: tx.internals.abandon("jbi-1"))
        self.assertEqual(self.now(lambda tx: tx.internals.piece(id_, 0)), b"one")


async def _save(tx: Tx, after: Execution, before: Execution) -> bool:
    return await tx.executions.save(after, before)
