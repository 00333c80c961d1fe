"""Records as the interface shows them: what is left out, what is null, what is never shown.

The fields themselves are asserted by `tests.conformance`.
"""

from __future__ import annotations

from collections.abc import Callable
from typing import Any

import msgspec
from attrs import evolve
from twisted.trial.unittest import SynchronousTestCase

from svcd.model import wire, wire_jobs
from svcd.model.cloud import Image
from svcd.model.cluster import Cluster, ClusterEvent, Instance, NodeGroup, StepName, Volume
from svcd.model.ids import (
    ClusterId,
    ClusterTemplateId,
    DataSourceId,
    ExecutionId,
    InstanceId,
    JobBinaryId,
    JobId,
    TenantId,
    Timestamp,
)
from svcd.model.job import (
    Credentials,
    DataSource,
    Execution,
    ExecutionStatus,
    Failure,
    JobBinary,
    JobConfigs,
)

AT = Timestamp("2013-10-09 12:37:15.000000")
LATER = Timestamp("2013-10-09 12:38:01.500000")
TENANT = TenantId("t")


def rendered(render: Callable[..., wire.View], *given: Any, **more: Any) -> Any:
    """The JSON value of the answer."""
    return msgspec.json.decode(render(*given, **more).encoded())


class ClusterTests(SynchronousTestCase):
    waiting = Instance(
        instance_id=InstanceId("x"), instance_name="cl-w-001", index=1, created_at=AT
    )
    built = evolve(
        waiting,
        internal_ip="10.0.0.5",
        management_ip="172.16.0.5",
        server_id="s",
        status="ACTIVE",
        volumes=(Volume(volume_id="v", device="/dev/vdb"),),
    )

    def cluster(self, instance: Instance, **fields: Any) -> Cluster:
        group = NodeGroup(
            name="w",
            count=1,
            flavor_id="2",
            node_processes=("datanode",),
            created_at=AT,
            updated_at=fields.get("updated_at"),
            instances=(instance,),
        )
        return Cluster(
            id=ClusterId("c"),
            tenant_id=TENANT,
            name="cl",
            plugin_name="vanilla",
            engine_version="3.5.0",
            default_image_id="i",
            management_private_key="SEALED",
            management_public_key="ssh-ed25519 A",
            trust_id="TRUST",
            node_groups=(group,),
            status_since=AT,
            created_at=AT,
            **fields,
        )

    def test_a_waiting_cluster_shows_names_and_ids(self) -> None:
        """Nothing else is known yet. No key, no trust."""
        shown = rendered(wire.Cluster.of, self.cluster(self.waiting))
        (group,) = shown["node_groups"]
        self.assertEqual(
            group["instances"],
            [{"instance_name": "cl-w-001", "instance_id": "x", "volumes": []}],
        )
        self.assertEqual(
            (group["created"], group["updated"]), ("2013-10-09T12:37:15", "2013-10-09T12:37:15")
        )
        self.assertEqual((shown["created_at"], shown["updated_at"]), (AT, None))
        self.assertFalse({"cluster_template_id", "user_keypair_id"} & set(shown))
        for hidden in ("SEALED", "ssh-ed25519", "TRUST"):
            self.assertNotIn(hidden, str(shown))

    def test_a_built_cluster_shows_addresses_volumes_and_servers(self) -> None:
        """And the references that were given."""
        references = {
            "cluster_template_id": ClusterTemplateId("ct"),
            "user_keypair_id": "kp",
            "neutron_management_network": "net",
            "updated_at": LATER,
        }
        shown = rendered(wire.Cluster.of, self.cluster(self.built, **references))
        self.assertEqual({key: shown[key] for key in references}, references)
        (group,) = shown["node_groups"]
        self.assertEqual(group["updated"], "2013-10-09T12:38:01")
        self.assertEqual(
            group["instances"],
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

    def test_an_event_has_the_times_of_its_step_and_the_step_before_it(self) -> None:
        """Nulls stay, where there are none."""
        before = StepName(step="wait for server", machine="m-1")
        event = ClusterEvent(at=AT, generation=1, step="log in", outcome="done")
        known = {
            "number": 0,
            "at": AT,
            "generation": 1,
            "step": "log in",
            "kind": "machine",
            "machine": "",
            "outcome": "done",
            "code": "",
            "text": "",
            "attempt": 0,
            "until": None,
        }
        self.assertEqual(
            rendered(wire.Event.of, event),
            {**known, "began": None, "ended": None, "waited_for": None},
        )
        timed = evolve(event, began=AT, ended=LATER, waited_for=before)
        waited = {"step": "wait for server", "machine": "m-1"}
        self.assertEqual(
            rendered(wire.Event.of, timed),
            {**known, "began": AT, "ended": LATER, "waited_for": waited},
        )


class DataTests(SynchronousTestCase):
    def test_hidden_credentials_are_masked(self) -> None:
        """Both parts, and those of a URL; none stay none."""
        url = "objstore://u:p@c/x"
        common: dict[str, Any] = {"tenant_id": TENANT, "name": "in", "url": url, "created_at": AT}
        account = Credentials(user="u", password="p")
        masked, open_ = ({"user": u, "password": p} for u, p in (("***", "***"), ("u", "p")))
        for view, key, record in (
            (
                wire_jobs.DataSource,
                "credentials",
                DataSource(id=DataSourceId("d"), type="objstore", credentials=account, **common),
            ),
            (
                wire_jobs.JobBinary,
                "extra",
                JobBinary(id=JobBinaryId("b"), extra=account, **common),
            ),
        ):
            hidden = rendered(view.of, record, hide=True)
            self.assertEqual((hidden["url"], hidden[key]), ("objstore://***@c/x", masked))
            shown = rendered(view.of, record)
            self.assertEqual((shown["url"], shown[key]), (url, open_))
            bare = evolve(record, **{key: None})
            self.assertEqual(rendered(view.of, bare, hide=True)[key], {})


class ExecutionTests(SynchronousTestCase):
    def shown(self, **fields: Any) -> Any:
        record = Execution(
            id=ExecutionId("e"),
            tenant_id=TENANT,
            job_id=JobId("j"),
            cluster_id=ClusterId("c"),
            created_at=AT,
        )
        return rendered(wire_jobs.JobExecution.of, evolve(record, **fields))

    def killed(self, record: dict[str, object], **fields: Any) -> Any:
        given = {"status": ExecutionStatus.KILLED, "end_time": LATER, **fields}
        return self.shown(record=record, **given)["info"]

    def test_our_status_wins_over_that_of_the_engine(self) -> None:
        """Times have no fraction; the failure is told; the configuration is as it was given."""
        shown = self.shown(
            job_configs=JobConfigs(configs={"a": "b"}, args=("x",)),
            status=ExecutionStatus.KILLED,
            record={"id": "0-W", "status": "RUNNING", "actions": []},
            failure=Failure(code="E1", step="run", text="why"),
            start_time=AT,
            end_time=LATER,
        )
        failure = {"code": "E1", "step": "run", "text": "why"}
        self.assertEqual(
            shown["info"], {"id": "0-W", "status": "KILLED", "actions": [], "failure": failure}
        )
        self.assertEqual(
            (shown["start_time"], shown["end_time"]), ("2013-10-09T12:37:15", "2013-10-09T12:38:01")
        )
        given = {"configs": {"a": "b"}, "args": ["x"], "params": {}}
        self.assertEqual(shown["job_configs"], given)
        self.assertEqual(self.shown(job_configs=JobConfigs())["job_configs"], {})

    def test_an_ended_execution_has_no_null_time(self) -> None:
        """Its cluster went before the engine wrote the end; what the engine wrote stays."""
        known, end = "Wed, 09 Oct 2013 12:00:00 GMT", "Wed, 09 Oct 2013 12:38:01 GMT"
        action = {"name": "job-node", "startTime": known, "endTime": None}
        waited = {"name": "later", "startTime": None, "endTime": None}
        record = {"startTime": None, "lastModTime": known, "endTime": None}
        self.assertEqual(
            self.killed({**record, "actions": [action, waited]}, start_time=AT),
            {
                "status": "KILLED",
                "startTime": "Wed, 09 Oct 2013 12:37:15 GMT",
                "lastModTime": known,
                "endTime": end,
                "actions": [
                    {"name": "job-node", "startTime": known, "endTime": end},
                    {"name": "later", "startTime": end, "endTime": end},
                ],
            },
        )
        running = self.killed({"endTime": None}, end_time=None)
        self.assertEqual(running, {"status": "KILLED", "endTime": None})
        self.assertEqual(self.killed({}), {"status": "KILLED"})


class ImageTests(SynchronousTestCase):
    def test_metadata_shows_what_the_registry_keeps(self) -> None:
        """Tags agree with it."""
        kept = {"_svc_username": "ubuntu", "_svc_tag_b": "True", "_svc_tag_a.1": "True"}
        image = Image(
            id="i",
            name="n",
            status="active",
            min_disk_gib=5,
            min_ram_mib=512,
            properties={**kept, "_svc_ssh_port": "2222", "os_distro": "x"},
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
                "metadata": kept,
            },
        )
