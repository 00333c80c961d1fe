"""Create, scale, delete and templates, what is answered and what is stored."""

from __future__ import annotations

from itertools import count
from typing import Any

from attrs import evolve
from twisted.trial.unittest import SynchronousTestCase

from svcd.errors import (
    ClusterNameTaken,
    InvalidReference,
    NotFound,
    QuotaExceeded,
)
from svcd.model.cloud import Caller
from svcd.model.cluster import Cluster, ClusterStatus, Desired
from svcd.model.ids import ClusterId, TenantId
from svcd.model.requests import (
    NewCluster,
    NewClusterTemplate,
    NewNodeGroup,
    NewNodeGroupTemplate,
    ResizeGroup,
    ScaleRequest,
)
from svcd.ports.cloud import CloudError
from svcd.ports.faults import Fault
from svcd.provisioning.commands import Clusters, Templates
from svcd.provisioning.decide.failures import Code
from tests.unit.provisioning.stored import SEALER
from tests.unit.provisioning.support import TENANT, Site, run

S = ClusterStatus
CALLER = Caller(tenant_id=TENANT, user_id="u1")


def new(**fields: object) -> NewCluster:
    values: dict[str, object] = {
        "name": "Demo",
        "plugin_name": "test",
        "engine_version": "1",
        "default_image_id": "image",
        "user_keypair_id": "demo",
        "node_groups": (
            NewNodeGroup(name="master", count=1, flavor_id="2", node_processes=("namenode",)),
            NewNodeGroup(name="worker", count=2, flavor_id="2", node_processes=("datanode",)),
        ),
    }
    return NewCluster(**{**values, **fields})  # type: ignore[arg-type]


class CommandTestCase(SynchronousTestCase):
    def setUp(self) -> None:
        self.site = Site()
        self.member = self.site.cloud.caller()
        numbers = count(1)
        ids = lambda: f"id{next(numbers)}"  # noqa: E731
        registry = self.site.distributions
        self.clusters = Clusters(
            self.site.store,  # type: ignore[arg-type]
            self.site.cloud.client,
            registry,
            self.site.controller,
            SEALER,
            self.site.clock,
            ids,
            self.site.settings,
        )
        self.templates = Templates(
            self.site.store,  # type: ignore[arg-type]
            self.site.cloud.client,
            registry,
            self.site.clock,
            ids,
        )

    def create(self, **fields: object) -> Cluster:
        row: Cluster = run(self.clusters.create(CALLER, new(**fields)))
        return row

    def row(self) -> Cluster:
        return next(iter(self.site.store.clusters.rows.values()))

    def active(self) -> Cluster:
        self.create()
        self.site.advance(5)
        self.assertEqual(self.row().status, S.ACTIVE)
        return self.row()


class CreateTests(CommandTestCase):
    def test_accepted_cluster_lists_its_instances_at_once(self) -> None:
        """The answer is Waiting and names every instance, in lower case."""
        made = self.create()
        self.assertEqual(made.status, S.WAITING)
        self.assertEqual(
            [i.instance_name for i in made.instances()],
            ["demo-master-001", "demo-worker-001", "demo-worker-002"],
        )
        self.assertEqual([i.instance_id for i in made.instances()], ["id2", "id3", "id4"])
        self.assertEqual((made.username, made.ssh_port, made.generation), ("debian", 22, 1))
        self.assertEqual(self.site.cloud.calls["create_server"], 0)

    def test_accepted_cluster_becomes_active(self) -> None:
        """The accepted row is what the controller works on."""
        self.assertEqual(self.active().status, S.ACTIVE)

    def test_keys_are_new_and_the_private_one_sealed(self) -> None:
        """The public key is an ed25519 line, the private key only its sealed form."""
        made = self.create()
        self.assertTrue(made.management_public_key.startswith("ssh-ed25519 "))
        private_key = SEALER.open(made.management_private_key).reveal()
        self.assertIn("OPENSSH PRIVATE KEY", private_key)
        self.assertNotIn("PRIVATE KEY", made.management_private_key)

    def test_without_tokens_there_is_no_trust(self) -> None:
        """With auth.mode none the cloud makes no trust and none is stored."""
        self.assertIsNone(self.create().trust_id)

    def test_token_makes_a_trust(self) -> None:
        """The trust is stored with its trustor, the token is not."""
        made = run(self.clusters.create(self.member, new()))
        (trust,) = self.site.cloud.state.trusts.values()
        self.assertEqual((made.trust_id, made.trustor_id), (trust.id, self.member.user_id))
        self.assertEqual((trust.trustor_id, trust.roles), (self.member.user_id, ("member",)))
        assert self.member.token is not None
        self.assertNotIn(self.member.token.reveal(), repr(made))

    def test_taken_name_gives_the_trust_back(self) -> None:
        """The insert decides about the name; the trust made for it goes again."""
        self.create()
        with self.assertRaises(ClusterNameTaken):
            run(self.clusters.create(self.member, new()))
        self.assertEqual(self.site.cloud.trusts, set())

    def test_refused_trust_stores_nothing(self) -> None:
        """A caller who may not delegate cannot start long work."""
        self.site.cloud.fail("create_trust", Fault.FORBIDDEN)
        with self.assertRaises(CloudError):
            run(self.clusters.create(self.member, new()))
        self.assertEqual(list(self.site.store.clusters.rows), [])

    def test_many_faults_are_answered_at_once(self) -> None:
        """Image, key pair, flavor and process are all named, the first gives the class."""
        group = NewNodeGroup(name="w", count=1, flavor_id="9", node_processes=("nope",))
        with self.assertRaises(InvalidReference) as caught:
            self.create(default_image_id="gone", user_keypair_id="gone", node_groups=(group,))
        self.assertEqual(
            caught.exception.message.split("\n"),
            [
                "$.node_groups[0].node_processes: unknown process nope; "
                "available: namenode, datanode, nodemanager",
                "$.node_groups[0].flavor_id: flavor '9' not found in the cloud; "
                "available: 1 (m1.tiny), 2 (m1.small), 3 (m1.medium), 4 (m1.large)",
                "$.default_image_id: image 'gone' not found; registered images: image (i)",
                "$.user_keypair_id: key pair 'gone' not found; available: demo",
            ],
        )

    def test_choices_that_cannot_be_read_are_not_told(self) -> None:
        """The refusal is the same."""
        self.site.cloud.fail("images", Fault.FORBIDDEN)
        self.site.cloud.fail("keypairs", Fault.UNREACHABLE)
        with self.assertRaises(InvalidReference) as caught:
            self.create(default_image_id="gone", user_keypair_id="gone")
        self.assertEqual(
            caught.exception.message.split("\n"),
            [
                "$.default_image_id: image 'gone' not found; registered images: none",
                "$.user_keypair_id: key pair 'gone' not found; available: none",
            ],
        )

    def test_quota_is_checked_before_anything_is_stored(self) -> None:
        """What is needed and what is left is said, and no row remains."""
        self.site.cloud.set(quota_instances=2, quota_ram_mib=10_000)
        with self.assertRaises(QuotaExceeded) as caught:
            self.create()
        self.assertIn("instances: needed 3, left 2", caught.exception.message)
        self.assertEqual(list(self.site.store.clusters.rows), [])

    def test_failing_cloud_is_not_the_callers_fault(self) -> None:
        """A cloud that cannot be read is reported as such."""
        self.site.cloud.fail("flavors", Fault.UNREACHABLE)
        with self.assertRaises(CloudError):
            self.create()

    def test_networks_are_read_only_when_named(self) -> None:
        """No pool and no network: the network service is not asked."""
        self.create()
        self.assertEqual(self.site.cloud.calls["networks"], 0)


class ScaleTests(CommandTestCase):
    def test_scale_answers_validating(self) -> None:
        """The new size is wanted; new instances have names that go on."""
        row = self.active()
        change = ScaleRequest(resize_node_groups=(ResizeGroup(name="worker", count=3),))
        after = run(self.clusters.scale(CALLER, row.id, change))
        self.assertEqual((after.status, after.generation), (S.VALIDATING, 2))
        self.assertEqual(
            [i.instance_name for i in after.node_groups[1].instances],
            ["demo-worker-001", "demo-worker-002", "demo-worker-003"],
        )
        self.site.advance(5)
        self.assertEqual(self.row().status, S.ACTIVE)
        self.assertEqual(len(self.site.cloud.made), 4)

    def test_lost_race_is_checked_again(self) -> None:
        """Another writer was faster: the check runs on what it wrote."""
        row = self.active()
        self.site.store.clusters.conflict_next.append(lambda r: evolve(r, status=S.ERROR))
        change = ScaleRequest(resize_node_groups=(ResizeGroup(name="worker", count=3),))
        with self.assertRaises(InvalidReference):
            run(self.clusters.scale(CALLER, row.id, change))

    def test_limit_counts_sizes_that_others_save_meanwhile(self) -> None:
        """The other cluster grows before the transaction; the cluster and the cloud stay as is."""
        row = self.active()
        other = run(self.clusters.create(CALLER, new(name="other")))
        self.site.advance(5)
        self.patch(self.clusters, "_most_instances", 7)
        clusters, tx = self.clusters, self.site.store.tx
        change = ScaleRequest(resize_node_groups=(ResizeGroup(name="worker", count=3),))

        async def overtaken(work: Any) -> Any:
            undo.restore()
            await clusters.scale(CALLER, other.id, change)
            return await tx(work)

        undo = self.patch(self.site.store, "tx", overtaken)
        with self.assertRaises(QuotaExceeded) as raised:
            run(clusters.scale(CALLER, row.id, change))
        self.assertIn("other clusters have 4; all together may have 7", str(raised.exception))
        stored = self.site.store.clusters.rows
        self.assertEqual([stored[each].node_groups[1].count for each in (row.id, other.id)], [2, 3])

    def test_refused_growth_gives_the_new_trust_back(self) -> None:
        """The one that was made because the old credentials had expired."""
        row = self.active()
        self.patch(self.clusters, "_most_instances", 3)
        lost = evolve(row, status_description=f"{Code.CREDENTIALS_EXPIRED}: gone")
        self.site.store.clusters.rows[row.id] = evolve(lost, version=row.version + 1)
        change = ScaleRequest(resize_node_groups=(ResizeGroup(name="worker", count=3),))
        with self.assertRaises(QuotaExceeded):
            run(self.clusters.scale(self.member, row.id, change))
        self.assertEqual(self.site.cloud.calls["create_trust"], 1)
        self.assertEqual(self.site.cloud.trusts, set())

    def test_other_tenants_cluster_is_not_found(self) -> None:
        """Another tenant's id is no different from an unknown one."""
        row = self.active()
        stranger = evolve(CALLER, tenant_id=TenantId("t2"))
        with self.assertRaises(NotFound):
            run(self.clusters.scale(stranger, row.id, ScaleRequest()))
        with self.assertRaises(NotFound):
            run(self.clusters.delete(stranger, row.id, False))

    def test_empty_request_on_an_active_cluster_passes_once(self) -> None:
        """A resize of nothing is accepted and settles again."""
        row = self.active()
        after = run(self.clusters.scale(CALLER, row.id, ScaleRequest()))
        self.assertEqual(after.status, S.VALIDATING)
        self.site.advance(1)
        self.assertEqual(self.row().status, S.ACTIVE)
        self.assertEqual(self.row().settled_generation, 2)


class DeleteTests(CommandTestCase):
    def test_delete_is_accepted_at_once(self) -> None:
        """The row says Deleting; the work goes on behind."""
        row = self.active()
        run(self.clusters.delete(CALLER, row.id, False))
        self.assertEqual(self.row().status, S.DELETING)
        self.assertIs(self.row().desired, Desired.DELETED)
        self.site.advance(20)
        self.assertEqual(list(self.site.store.clusters.rows), [])

    def test_second_delete_changes_nothing(self) -> None:
        """Deleting twice is one deletion."""
        row = self.active()
        run(self.clusters.delete(CALLER, row.id, False))
        version = self.row().version
        run(self.clusters.delete(CALLER, row.id, False))
        self.assertEqual((self.row().version, self.row().generation), (version, 2))

    def expired(self) -> Cluster:
        """A cluster whose deletion failed for lack of credentials, `trust-0` being its trust."""
        row = evolve(
            self.active(),
            status=S.ERROR,
            status_description="CREDENTIALS_EXPIRED: the token is refused",
            trust_id="trust-0",
            trustor_id="u0",
        )
        self.site.store.clusters.rows[row.id] = row
        return row

    def test_credentials_that_have_expired_are_renewed_by_the_caller(self) -> None:
        """The deletion goes on with a trust of whoever asks for it."""
        row = self.expired()
        run(self.clusters.delete(self.member, row.id, False))
        self.assertEqual(self.site.cloud.trusts, {self.row().trust_id})
        self.assertEqual(self.row().trustor_id, self.member.user_id)

    def test_lost_race_leaves_no_trust(self) -> None:
        """The one that was made for the row as it was is given back."""
        row = self.expired()
        self.site.store.clusters.conflict_next = [lambda r: r] * 3
        run(self.clusters.delete(self.member, row.id, False))
        self.assertEqual(self.site.cloud.trusts, {self.row().trust_id})

    def test_unknown_cluster_is_not_found(self) -> None:
        """404 by the id in the path."""
        with self.assertRaises(NotFound):
            run(self.clusters.delete(CALLER, ClusterId("nope"), False))


class TemplateTests(CommandTestCase):
    def test_templates_are_expanded_by_value(self) -> None:
        """Values go from group template to cluster template to cluster; inline ones win."""
        small = run(
            self.templates.create_node_group_template(
                CALLER,
                NewNodeGroupTemplate(
                    name="small",
                    plugin_name="test",
                    engine_version="1",
                    node_processes=("datanode",),
                    flavor_id="2",
                    node_configs={"HDFS": {"dfs.replication": 1, "dfs.name": "a"}},
                    volumes_per_node=2,
                ),
            )
        )
        whole = run(
            self.templates.create_cluster_template(
                CALLER,
                NewClusterTemplate(
                    name="whole",
                    plugin_name="test",
                    engine_version="1",
                    cluster_configs={"HDFS": {"dfs.permissions": True, "dfs.name": "b"}},
                    node_groups=(
                        NewNodeGroup(
                            name="worker",
                            count=2,
                            node_group_template_id=small.id,
                            volumes_size=20,
                            node_configs={"HDFS": {"dfs.name": "c"}},
                        ),
                    ),
                ),
            )
        )
        made = self.create(
            node_groups=None,
            cluster_template_id=whole.id,
            cluster_configs={"HDFS": {"dfs.name": "d"}},
        )
        group = made.node_groups[0]
        self.assertEqual(
            (group.volumes_per_node, group.volumes_size, group.count, group.node_group_template_id),
            (2, 20, 2, small.id),
        )
        self.assertEqual(group.node_configs, {"HDFS": {"dfs.replication": 1, "dfs.name": "c"}})
        self.assertEqual(made.cluster_configs, {"HDFS": {"dfs.permissions": True, "dfs.name": "d"}})

    def test_unknown_templates_are_all_named(self) -> None:
        """Every group's missing template is reported."""
        groups = tuple(
            NewNodeGroup(name=f"g{n}", count=1, node_group_template_id=f"no{n}") for n in (1, 2)
        )
        with self.assertRaises(InvalidReference) as caught:
            run(
                self.templates.create_cluster_template(
                    CALLER,
                    NewClusterTemplate(
                        name="x", plugin_name="test", engine_version="1", node_groups=groups
                    ),
                )
            )
        self.assertIn("'no1' not found", caught.exception.message)
        self.assertIn("'no2' not found", caught.exception.message)
