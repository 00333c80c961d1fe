"""Records as the interface shows them: exact fields, nulls and what is left out."""

from __future__ import annotations

from collections.abc import Callable
from typing import Any

import msgspec
from attrs import evolve
from twisted.trial.unittest import SynchronousTestCase

from svcd.model import wire, wire_jobs
from svcd.model.cloud import Image
from svcd.model.cluster import (
    Cluster,
    ClusterEvent,
    ClusterStatus,
    Instance,
    NodeGroup,
    StepName,
    Volume,
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
    Timestamp,
)
from svcd.model.job import (
    Credentials,
    DataSource,
    Execution,
    ExecutionStatus,
    Failure,
    Job,
    JobBinary,
    JobBinaryInternal,
    JobConfigs,
    JobType,
)
from svcd.model.template import ClusterTemplate, NodeGroupTemplate, TemplateNodeGroup

AT = Timestamp("2013-10-09 12:37:15.000000")
LATER = Timestamp("2013-10-09 12:38:01.500000")
TENANT = TenantId("t")
GROUP = {
    "node_processes": ["datanode"],
    "flavor_id": "2",
    "node_configs": {},
    "volumes_per_node": 0,
    "volumes_size": 10,
    "volume_mount_prefix": "/volumes/disk",
}


def rendered(render: Callable[..., wire.View], *given: Any, **more: Any) -> Any:
    """The JSON value of the answer."""
    return msgspec.json.decode(render(*given, **more).encoded())


class TemplateTests(SynchronousTestCase):
    def test_a_node_group_template(self) -> None:
        """The pool is left out unless given; a missing description is empty."""
        record = NodeGroupTemplate(
            id=NodeGroupTemplateId("n"),
            tenant_id=TENANT,
            name="w",
            plugin_name="vanilla",
            engine_version="3.5.0",
            node_processes=("datanode",),
            flavor_id="2",
            created_at=AT,
        )
        head = {
            "id": "n",
            "name": "w",
            "description": "",
            "plugin_name": "vanilla",
            "engine_version": "3.5.0",
        }
        self.assertEqual(rendered(wire.NodeGroupTemplate.of, record), {**head, **GROUP})
        pooled = evolve(record, floating_ip_pool="public", description="d")
        self.assertEqual(
            rendered(wire.NodeGroupTemplate.of, pooled),
            {**head, **GROUP, "floating_ip_pool": "public", "description": "d"},
        )

    def test_a_cluster_template(self) -> None:
        """A group names its template only when it was built from one."""
        group = TemplateNodeGroup(name="w", count=2, flavor_id="2", node_processes=("datanode",))
        record = ClusterTemplate(
            id=ClusterTemplateId("c"),
            tenant_id=TENANT,
            name="ct",
            plugin_name="vanilla",
            engine_version="3.5.0",
            node_groups=(
                group,
                evolve(group, name="v", node_group_template_id=NodeGroupTemplateId("n")),
            ),
            created_at=AT,
        )
        self.assertEqual(
            rendered(wire.ClusterTemplate.of, record),
            {
                "id": "c",
                "name": "ct",
                "description": "",
                "plugin_name": "vanilla",
                "engine_version": "3.5.0",
                "cluster_configs": {},
                "anti_affinity": [],
                "node_groups": [
                    {"name": "w", "count": 2, **GROUP},
                    {"name": "v", "count": 2, "node_group_template_id": "n", **GROUP},
                ],
            },
        )
        networked = evolve(record, neutron_management_network="net")
        self.assertEqual(
            rendered(wire.ClusterTemplate.of, networked)["neutron_management_network"], "net"
        )


class ClusterTests(SynchronousTestCase):
    record = Cluster(
        id=ClusterId("c"),
        tenant_id=TENANT,
        name="cl",
        plugin_name="vanilla",
        engine_version="3.5.0",
        default_image_id="i",
        management_private_key="SEALED",
        management_public_key="ssh-ed25519 A",
        trust_id="TRUST",
        node_groups=(
            NodeGroup(
                name="w",
                count=1,
                flavor_id="2",
                node_processes=("datanode",),
                created_at=AT,
                instances=(
                    Instance(
                        instance_id=InstanceId("x"),
                        instance_name="cl-w-001",
                        index=1,
                        created_at=AT,
                    ),
                ),
            ),
        ),
        status_since=AT,
        created_at=AT,
    )

    def test_a_waiting_cluster(self) -> None:
        """Instances have a name and an id; nothing else is known yet. No key, no trust."""
        self.assertEqual(
            rendered(wire.Cluster.of, self.record),
            {
                "id": "c",
                "name": "cl",
                "description": "",
                "status": "Waiting",
                "status_description": "",
                "info": {},
                "plugin_name": "vanilla",
                "engine_version": "3.5.0",
                "default_image_id": "i",
                "cluster_configs": {},
                "anti_affinity": [],
                "is_transient": False,
                "node_groups": [
                    {
                        "name": "w",
                        "count": 1,
                        **GROUP,
                        "created": "2013-10-09T12:37:15",
                        "updated": "2013-10-09T12:37:15",
                        "instances": [
                            {"instance_name": "cl-w-001", "instance_id": "x", "volumes": []}
                        ],
                    }
                ],
                "created_at": "2013-10-09 12:37:15.000000",
                "updated_at": None,
            },
        )

    def test_an_active_cluster(self) -> None:
        """Addresses, volumes, server and references show once they are there."""
        instance = evolve(
            self.record.node_groups[0].instances[0],
            internal_ip="10.0.0.5",
            management_ip="172.16.0.5",
            server_id="s",
            status="ACTIVE",
            volumes=(Volume(volume_id="v", device="/dev/vdb"),),
        )
        group = evolve(self.record.node_groups[0], instances=(instance,), updated_at=LATER)
        record = evolve(
            self.record,
            status=ClusterStatus.ACTIVE,
            node_groups=(group,),
            cluster_template_id=ClusterTemplateId("ct"),
            user_keypair_id="kp",
            neutron_management_network="net",
            updated_at=LATER,
        )
        shown = rendered(wire.Cluster.of, record)
        self.assertEqual(
            shown["node_groups"][0]["instances"],
            [
                {
                    "instance_name": "cl-w-001",
                    "instance_id": "x",
                    "volumes": ["v"],
                    "internal_ip": "10.0.0.5",
                    "management_ip": "172.16.0.5",
                    "server_id": "s",
                    "status": "ACTIVE",
                }
            ],
        )
        self.assertEqual(shown["node_groups"][0]["updated"], "2013-10-09T12:38:01")
        self.assertEqual(
            (
                shown["status"],
                shown["cluster_template_id"],
                shown["user_keypair_id"],
                shown["neutron_management_network"],
                shown["updated_at"],
            ),
            ("Active", "ct", "kp", "net", "2013-10-09 12:38:01.500000"),
        )

    def test_an_event(self) -> None:
        """All fields, as kept."""
        event = ClusterEvent(at=AT, generation=1, step="spawn", outcome="done")
        self.assertEqual(
            rendered(wire.Event.of, event),
            {
                "number": 0,
                "at": "2013-10-09 12:37:15.000000",
                "generation": 1,
                "step": "spawn",
                "kind": "files",
                "machine": "",
                "outcome": "done",
                "code": "",
                "text": "",
                "attempt": 0,
                "until": None,
                "began": None,
                "ended": None,
                "waited_for": None,
            },
        )

    def test_an_event_of_a_step(self) -> None:
        """With its time and the step before it."""
        before = StepName(step="wait for server", machine="m-1")
        event = ClusterEvent(
            at=AT,
            generation=1,
            step="log in",
            outcome="done",
            began=AT,
            ended=AT,
            waited_for=before,
        )
        shown = rendered(wire.Event.of, event)
        self.assertEqual(
            (shown["began"], shown["ended"], shown["waited_for"]),
            (
                "2013-10-09 12:37:15.000000",
                "2013-10-09 12:37:15.000000",
                {"step": "wait for server", "machine": "m-1"},
            ),
        )


class DataTests(SynchronousTestCase):
    source = DataSource(
        id=DataSourceId("d"),
        tenant_id=TENANT,
        name="in",
        type="objstore",
        url="objstore://a/b",
        credentials=Credentials(user="u", password="p"),
        created_at=AT,
    )
    binary = JobBinary(
        id=JobBinaryId("b"), tenant_id=TENANT, name="x", url="internaldb://i", created_at=AT
    )

    def test_a_data_source(self) -> None:
        """Credentials are returned; the create answer omits updated_at."""
        created = {
            "id": "d",
            "name": "in",
            "description": "",
            "type": "objstore",
            "url": "objstore://a/b",
            "credentials": {"user": "u", "password": "p"},
            "tenant_id": "t",
            "created_at": "2013-10-09 12:37:15.000000",
        }
        self.assertEqual(rendered(wire_jobs.DataSource.of, self.source, created=True), created)
        self.assertEqual(
            rendered(wire_jobs.DataSource.of, self.source), {**created, "updated_at": None}
        )

    def test_hidden_credentials(self) -> None:
        """Both parts are masked; none stay none."""
        shown = rendered(wire_jobs.DataSource.of, self.source, hide=True)
        self.assertEqual(shown["credentials"], {"user": "***", "password": "***"})
        bare = evolve(self.source, credentials=None)
        self.assertEqual(rendered(wire_jobs.DataSource.of, bare, hide=True)["credentials"], {})

    def test_hidden_credentials_of_urls(self) -> None:
        """User and password of a URL are masked with the others, and shown otherwise."""
        url = "objstore://u:p@c/x"
        for view, record in (
            (wire_jobs.DataSource, evolve(self.source, url=url)),
            (wire_jobs.JobBinary, evolve(self.binary, url=url)),
        ):
            self.assertEqual(rendered(view.of, record, hide=True)["url"], "objstore://***@c/x")
            self.assertEqual(rendered(view.of, record)["url"], url)

    def test_an_internal_binary(self) -> None:
        """Without digest and data."""
        record = JobBinaryInternal(
            id=JobBinaryInternalId("i"),
            tenant_id=TENANT,
            name="x",
            datasize=3,
            digest="ab",
            created_at=AT,
        )
        self.assertEqual(
            rendered(wire_jobs.JobBinaryInternal.of, record),
            {
                "id": "i",
                "name": "x",
                "tenant_id": "t",
                "datasize": 3,
                "created_at": "2013-10-09 12:37:15.000000",
                "updated_at": None,
            },
        )

    def test_a_job_expands_its_binaries(self) -> None:
        """As full objects, with updated_at."""
        job = Job(
            id=JobId("j"),
            tenant_id=TENANT,
            name="n",
            type=JobType.JAR,
            libs=(JobBinaryId("b"),),
            created_at=AT,
        )
        binary = {
            "id": "b",
            "name": "x",
            "description": "",
            "url": "internaldb://i",
            "extra": {},
            "tenant_id": "t",
            "created_at": "2013-10-09 12:37:15.000000",
            "updated_at": None,
        }
        self.assertEqual(
            rendered(wire_jobs.Job.of, job, {self.binary.id: self.binary}),
            {
                "id": "j",
                "name": "n",
                "description": "",
                "type": "Jar",
                "mains": [],
                "libs": [binary],
                "tenant_id": "t",
                "created_at": "2013-10-09 12:37:15.000000",
                "updated_at": None,
            },
        )
        created = rendered(wire_jobs.JobBinary.of, self.binary, created=True)
        self.assertEqual(created, {k: v for k, v in binary.items() if k != "updated_at"})

    def test_a_pending_execution(self) -> None:
        """Nulls stay; info holds the status alone."""
        record = Execution(
            id=ExecutionId("e"),
            tenant_id=TENANT,
            job_id=JobId("j"),
            cluster_id=ClusterId("c"),
            input_id=DataSourceId("i"),
            output_id=DataSourceId("o"),
            created_at=AT,
        )
        self.assertEqual(
            rendered(wire_jobs.JobExecution.of, record),
            {
                "id": "e",
                "job_id": "j",
                "cluster_id": "c",
                "input_id": "i",
                "output_id": "o",
                "job_configs": {},
                "info": {"status": "Pending"},
                "workflow_job_id": None,
                "return_code": None,
                "progress": None,
                "tenant_id": "t",
                "start_time": None,
                "end_time": None,
                "created_at": "2013-10-09 12:37:15.000000",
                "updated_at": None,
            },
        )

    def test_a_failed_execution(self) -> None:
        """Our status wins over the record's; times have no fraction; the failure is told."""
        record = Execution(
            id=ExecutionId("e"),
            tenant_id=TENANT,
            job_id=JobId("j"),
            cluster_id=None,
            job_configs=JobConfigs(configs={"a": "b"}, args=("x",)),
            status=ExecutionStatus.KILLED,
            record={"id": "0-W", "status": "RUNNING", "actions": []},
            failure=Failure(code="E1", step="run", text="why"),
            start_time=AT,
            end_time=LATER,
            created_at=AT,
        )
        shown = rendered(wire_jobs.JobExecution.of, record)
        self.assertEqual(
            shown["info"],
            {
                "id": "0-W",
                "status": "KILLED",
                "actions": [],
                "failure": {"code": "E1", "step": "run", "text": "why"},
            },
        )
        self.assertEqual(
            (shown["start_time"], shown["end_time"], shown["job_configs"]),
            (
                "2013-10-09T12:37:15",
                "2013-10-09T12:38:01",
                {"configs": {"a": "b"}, "args": ["x"], "params": {}},
            ),
        )

    def ended(self, record: dict[str, object], **fields: Any) -> Any:
        execution = Execution(
            id=ExecutionId("e"),
            tenant_id=TENANT,
            job_id=JobId("j"),
            cluster_id=ClusterId("c"),
            status=ExecutionStatus.KILLED,
            record=record,
            end_time=LATER,
            created_at=AT,
        )
        return rendered(wire_jobs.JobExecution.of, evolve(execution, **fields))["info"]

    def test_an_ended_execution_has_no_null_time(self) -> None:
        """Its cluster went before the engine wrote the end; what the engine wrote stays."""
        known = "Wed, 09 Oct 2013 12:00:00 GMT"
        action = {"name": "job-node", "startTime": known, "endTime": None}
        waited = {"name": "later", "startTime": None, "endTime": None}
        record = {"startTime": None, "lastModTime": known, "endTime": None}
        self.assertEqual(
            self.ended({**record, "actions": [action, waited]}, start_time=AT),
            {
                "status": "KILLED",
                "startTime": "Wed, 09 Oct 2013 12:37:15 GMT",
                "lastModTime": known,
                "endTime": "Wed, 09 Oct 2013 12:38:01 GMT",
                "actions": [
                    {
                        "name": "job-node",
                        "startTime": known,
                        "endTime": "Wed, 09 Oct 2013 12:38:01 GMT",
                    },
                    {
                        "name": "later",
                        "startTime": "Wed, 09 Oct 2013 12:38:01 GMT",
                        "endTime": "Wed, 09 Oct 2013 12:38:01 GMT",
                    },
                ],
            },
        )
        running = self.ended({"endTime": None}, end_time=None)
        self.assertEqual(running, {"status": "KILLED", "endTime": None})
        self.assertEqual(self.ended({}), {"status": "KILLED"})

    def test_empty_job_configs(self) -> None:
        """Nothing given is answered as the empty object of the interface."""
        execution = Execution(
            id=ExecutionId("e"),
            tenant_id=TENANT,
            job_id=JobId("j"),
            cluster_id=ClusterId("c"),
            job_configs=JobConfigs(),
            created_at=AT,
        )
        self.assertEqual(rendered(wire_jobs.JobExecution.of, execution)["job_configs"], {})


class ImageTests(SynchronousTestCase):
    def test_an_image(self) -> None:
        """Metadata shows what the registry keeps; tags agree with it."""
        image = Image(
            id="i",
            name="n",
            status="active",
            min_disk_gib=5,
            min_ram_mib=512,
            properties={
                "_svc_username": "ubuntu",
                "_svc_tag_b": "True",
                "_svc_tag_a.1": "True",
                "_svc_ssh_port": "2222",
                "os_distro": "x",
            },
        )
        self.assertEqual(
            rendered(wire.Image.of, image),
            {
                "id": "i",
                "name": "n",
                "description": "",
                "status": "ACTIVE",
                "username": "ubuntu",
                "tags": ["a.1", "b"],
                "minDisk": 5,
                "minRam": 512,
                "progress": 100,
                "metadata": {
                    "_svc_username": "ubuntu",
                    "_svc_tag_b": "True",
                    "_svc_tag_a.1": "True",
                },
            },
        )
