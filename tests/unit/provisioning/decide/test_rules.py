"""The rules with literal values: one wrong thing a test, and many at once."""

from __future__ import annotations

from itertools import count
from typing import Any

from attrs import evolve
from twisted.trial.unittest import SynchronousTestCase
from zope.interface import alsoProvides

from svcd.errors import (
    ClusterCannotBeScaled,
    InvalidComponentCount,
    InvalidData,
    InvalidReference,
    QuotaExceeded,
    SvcdError,
    ValidationError,
)
from svcd.model.cloud import Image, KeyPair, Network, Quota
from svcd.model.cluster import Cluster, ClusterStatus, Desired
from svcd.model.ids import ClusterTemplateId, InstanceId, NodeGroupTemplateId, timestamp
from svcd.model.requests import (
    NewCluster,
    NewClusterTemplate,
    NewNodeGroup,
    NewNodeGroupTemplate,
    ResizeGroup,
    ScaleRequest,
)
from svcd.model.template import ClusterTemplate, NodeGroupTemplate, TemplateNodeGroup
from svcd.provisioning.decide import lifecycle, rules
from svcd.provisioning.decide.facts import Bounds, Facts
from svcd.provisioning.decide.rules import Made
from svcd.provisioning.distributions.spi import IUnprivileged
from tests.unit.provisioning.support import FLAVORS, NOW, TENANT, Scripted, cluster, group, instance

S = ClusterStatus

IMAGE = Image(id="image", name="pic", status="active", properties={"_svc_username": "debian"})
BOUNDS = Bounds()
FACTS = Facts(
    distribution=Scripted(),
    plugins=("test",),
    image=IMAGE,
    flavors={f.id: f for f in FLAVORS},
    keypair=KeyPair(name="demo", public_key="k"),
    networks=(Network(id="n1", name="private"), Network(id="n2", name="public", external=True)),
)


def made() -> Made:
    numbers = count(1)
    return Made(id="c1", tenant_id=TENANT, now=NOW, new_id=lambda: f"i{next(numbers)}")


def worker(**fields: Any) -> NewNodeGroup:
    values = {"name": "worker", "count": 2, "flavor_id": "2", "node_processes": ("datanode",)}
    return NewNodeGroup(**{**values, **fields})


def new(*groups: NewNodeGroup, **fields: Any) -> NewCluster:
    values: dict[str, Any] = {
        "name": "demo",
        "plugin_name": "test",
        "engine_version": "1",
        "default_image_id": "image",
        "node_groups": groups or (worker(),),
    }
    return NewCluster(**{**values, **fields})


class RulesTestCase(SynchronousTestCase):
    def accept(self, request: NewCluster, facts: Facts = FACTS) -> Cluster:
        result = rules.check_cluster(request, facts, Bounds(), made())
        assert isinstance(result, Cluster), [e.message for e in result]
        return result

    def refuse(
        self, request: NewCluster, facts: Facts = FACTS, bounds: Bounds = BOUNDS
    ) -> list[SvcdError]:
        result = rules.check_cluster(request, facts, bounds, made())
        assert isinstance(result, list)
        self.assertNotEqual(result, [])
        return result

    def assertRefused(
        self,
        kind: type[SvcdError],
        text: str,
        request: NewCluster,
        facts: Facts = FACTS,
        bounds: Bounds = BOUNDS,
    ) -> None:
        (error,) = self.refuse(request, facts, bounds)
        self.assertIs(type(error), kind)
        self.assertIn(text, error.message)


class ClusterTests(RulesTestCase):
    def test_accepted_cluster_has_all_values(self) -> None:
        """Defaults are filled in, login data comes from the image."""
        image = evolve(IMAGE, properties={"_svc_username": "hadoop", "_svc_ssh_port": "2222"})
        row = self.accept(new(), evolve(FACTS, image=image))
        one = row.node_groups[0]
        self.assertEqual((row.status, row.generation, row.settled_generation), (S.WAITING, 1, 0))
        self.assertEqual((row.username, row.ssh_port), ("hadoop", 2222))
        self.assertEqual(
            (one.volumes_per_node, one.volumes_size, one.volume_mount_prefix),
            (0, 10, "/volumes/disk"),
        )
        self.assertEqual((one.flavor_ram_mib, one.flavor_vcpus), (2048, 1))
        self.assertEqual([i.index for i in one.instances], [1, 2])

    def test_unknown_plugin(self) -> None:
        """Those on offer are named."""
        facts = evolve(FACTS, distribution=None)
        self.assertRefused(InvalidReference, "available: test", new(), facts)

    def test_unknown_version(self) -> None:
        """The known ones are named."""
        self.assertRefused(InvalidReference, "available: 1, 2", new(engine_version="9"))

    def test_unknown_process(self) -> None:
        """With the path of the group."""
        self.assertRefused(
            InvalidReference,
            "$.node_groups[0].node_processes: unknown process spark",
            new(worker(node_processes=("datanode", "spark"))),
        )

    def test_repeated_process(self) -> None:
        """A group runs a process once."""
        self.assertRefused(
            InvalidData,
            "given more than once: datanode",
            new(worker(node_processes=("datanode", "datanode"))),
        )

    def test_repeated_group_name(self) -> None:
        """Case does not make a difference: host names have none."""
        self.assertRefused(
            InvalidData, "'worker' is given more than once", new(worker(), worker(name="Worker"))
        )

    def test_unknown_config_target_and_name(self) -> None:
        """Both levels are checked, for the cluster and for groups."""
        errors = self.refuse(
            new(
                worker(node_configs={"HDFS": {"nope": 1}}),
                cluster_configs={"Mars": {"x": 1}},
            )
        )
        self.assertEqual(
            [e.message for e in errors],
            [
                "$.node_groups[0].node_configs.HDFS.nope: unknown option",
                "$.cluster_configs.Mars: unknown target; available: HDFS, YARN, general",
            ],
        )

    def test_a_misspelled_config_gets_a_suggestion(self) -> None:
        """The first three of an object; one of another target is told with it."""
        wrong = ("dfs.replicaton", "DFS.Permission", "dfs.nam", "dfs.permision")
        errors = self.refuse(new(cluster_configs={"HDFS": dict.fromkeys(wrong, 1)}))
        self.assertEqual(
            [e.message for e in errors],
            [
                '$.cluster_configs.HDFS["dfs.replicaton"]: unknown option; '
                "did you mean dfs.replication?",
                '$.cluster_configs.HDFS["DFS.Permission"]: unknown option; '
                "did you mean dfs.permissions?",
                '$.cluster_configs.HDFS["dfs.nam"]: unknown option; did you mean dfs.name?',
                '$.cluster_configs.HDFS["dfs.permision"]: unknown option',
            ],
        )
        (error,) = self.refuse(new(cluster_configs={"YARN": {"dfs.name": "n"}}))
        self.assertEqual(
            error.message,
            '$.cluster_configs.YARN["dfs.name"]: unknown option of YARN; it is an option of HDFS',
        )

    def test_an_option_of_the_cluster_is_refused_for_a_group(self) -> None:
        """In the request and in a template; for the cluster it is taken."""
        configs = {"HDFS": {"dfs.blocksize": 1, "dfs.replication": 1}}
        text = (
            'node_configs.HDFS["dfs.blocksize"]: this option is for the whole cluster; '
            "give it in cluster_configs"
        )
        self.assertRefused(
            InvalidReference, f"$.node_groups[0].{text}", new(worker(node_configs=configs))
        )
        template = NewNodeGroupTemplate(
            name="t",
            plugin_name="test",
            engine_version="1",
            node_processes=("datanode",),
            flavor_id="2",
            node_configs=configs,
        )
        refused = rules.check_node_group_template(template, FACTS, made())
        assert isinstance(refused, list)
        self.assertEqual([e.message for e in refused], [f"$.{text}"])
        self.assertEqual(self.accept(new(cluster_configs=configs)).cluster_configs, configs)

    def test_choices_are_told(self) -> None:
        """At most ten, and how many more there are."""
        flavors = {str(n): evolve(FLAVORS[0], id=str(n), name=f"f{n}") for n in range(10, 22)}
        facts = evolve(
            FACTS,
            flavors=flavors,
            image=None,
            images=(IMAGE, evolve(IMAGE, id="plain", properties={})),
            keypair=None,
            keypairs=tuple(f"k{n}" for n in range(11)),
        )
        errors = self.refuse(new(worker(flavor_id="7"), user_keypair_id="no"), facts)
        self.assertEqual(
            [e.message for e in errors],
            [
                "$.node_groups[0].flavor_id: flavor '7' not found in the cloud; available: "
                + ", ".join(f"{n} (f{n})" for n in range(10, 20))
                + " and 2 more",
                "$.default_image_id: image 'image' not found; registered images: image (pic)",
                "$.user_keypair_id: key pair 'no' not found; available: "
                "k0, k1, k2, k3, k4, k5, k6, k7, k8, k9 and 1 more",
            ],
        )

    def test_config_of_a_wrong_type(self) -> None:
        """A number where truth is wanted, truth where a number is wanted."""
        errors = self.refuse(
            new(
                cluster_configs={"HDFS": {"dfs.replication": True, "dfs.permissions": 7}},
            )
        )
        self.assertEqual([type(e) for e in errors], [ValidationError, ValidationError])

    def test_faults_of_configs_are_counted(self) -> None:
        """A megabyte of unknown names is not worth an answer of six."""
        for configs in (
            {"HDFS": dict.fromkeys(map(str, range(500)), 1)},
            {str(n): {"x": 1} for n in range(500)},
        ):
            self.assertEqual(len(self.refuse(new(cluster_configs=configs))), 100)

    def test_a_config_of_a_wrong_type_is_not_quoted(self) -> None:
        """It may be a password in the wrong place."""
        (error,) = self.refuse(new(cluster_configs={"HDFS": {"dfs.replication": "hunter2"}}))
        self.assertEqual(
            error.message, '$.cluster_configs.HDFS["dfs.replication"]: expected int, got str'
        )

    def test_config_given_as_text_is_taken(self) -> None:
        """Older clients send everything as text."""
        row = self.accept(
            new(cluster_configs={"HDFS": {"dfs.replication": "2", "dfs.permissions": "true"}})
        )
        self.assertEqual(row.cluster_configs["HDFS"]["dfs.replication"], "2")

    def test_unknown_flavor(self) -> None:
        """Of the cloud."""
        self.assertRefused(InvalidReference, "flavor '7' not found", new(worker(flavor_id="7")))

    def test_flavor_too_small_for_the_image(self) -> None:
        """The cloud would refuse it minutes later."""
        facts = evolve(FACTS, image=evolve(IMAGE, min_ram_mib=4096))
        self.assertRefused(InvalidReference, "needs 4096", new(), facts)

    def test_unknown_pool(self) -> None:
        """Only external networks are pools; by id or name."""
        self.assertRefused(
            InvalidReference,
            "external network 'private' not found; available: public (n2)",
            new(worker(floating_ip_pool="private")),
        )
        for pool in ("public", "n2"):
            self.accept(new(worker(floating_ip_pool=pool)))

    def test_unknown_network(self) -> None:
        """By id."""
        self.assertRefused(
            InvalidReference, "network 'x' not found", new(neutron_management_network="x")
        )

    def test_unknown_key_pair(self) -> None:
        """Named, but not there."""
        facts = evolve(FACTS, keypair=None)
        self.assertRefused(
            InvalidReference, "key pair 'k' not found", new(user_keypair_id="k"), facts
        )
        self.accept(new(), facts)

    def test_image_that_cannot_be_used(self) -> None:
        """Absent, not active (with the remedy), not registered, without tags."""
        sick = evolve(
            IMAGE, status="queued", properties={"_svc_username": "u", "_svc_problem": "run make"}
        )
        tagged = Scripted()
        tagged.tags = ("vanilla", "3")
        cases = [
            (evolve(FACTS, image=None), "image 'image' not found"),
            (evolve(FACTS, image=sick), "is queued, not active: run make"),
            (evolve(FACTS, image=evolve(IMAGE, properties={})), "is not registered"),
            (evolve(FACTS, distribution=tagged), "lacks the tags vanilla, 3"),
        ]
        for facts, text in cases:
            self.assertRefused(InvalidReference, text, new(), facts)

    def test_anti_affinity(self) -> None:
        """Unknown and repeated processes."""
        errors = self.refuse(new(anti_affinity=("datanode", "datanode", "moon")))
        self.assertEqual([type(e) for e in errors], [InvalidData, InvalidReference])

    def test_host_name_too_long(self) -> None:
        """Cluster and group names together make host names."""
        self.assertRefused(
            ValidationError,
            "at most 64",
            new(worker(name="w" * 40), name="c" * 40),
        )

    def test_too_many_nodes(self) -> None:
        """The operator's bound."""
        self.assertRefused(
            ValidationError, "at most 3 instances", new(worker(count=4)), bounds=Bounds(nodes=3)
        )

    def test_quota_names_everything_that_is_short(self) -> None:
        """What is needed, what is left."""
        facts = evolve(
            FACTS,
            quota=Quota(
                instances=1, cores=100, ram_mib=4095, volumes=3, volume_gib=39, floating_ips=0
            ),
        )
        request = new(worker(volumes_per_node=2, floating_ip_pool="public"))
        self.assertRefused(
            QuotaExceeded,
            "instances: needed 2, left 1; MiB of memory: needed 4096, left 4095; "
            "volumes: needed 4, left 3; GiB of volumes: needed 40, left 39; "
            "floating IPs: needed 2, left 0",
            request,
            facts,
        )

    def test_topology_comes_last(self) -> None:
        """The distribution sees only clusters whose references are right."""
        strict = Scripted()
        strict.faults = [InvalidComponentCount("namenode: expected 1, got 0")]
        facts = evolve(FACTS, distribution=strict)
        self.assertRefused(InvalidComponentCount, "expected 1", new(), facts)
        self.assertRefused(InvalidReference, "flavor", new(worker(flavor_id="7")), facts)


class DaemonUserTests(RulesTestCase):
    """The system user of the daemons of a new cluster."""

    def test_distribution_that_never_needs_root_gets_a_user_without_sudo(self) -> None:
        """The cluster keeps this user."""
        marked = Scripted()
        alsoProvides(marked, IUnprivileged)
        row = self.accept(new(), evolve(FACTS, distribution=marked))
        self.assertEqual(row.daemon_user, "svcd")

    def test_other_distribution_keeps_the_login_user(self) -> None:
        """Its commands may need root."""
        self.assertEqual(self.accept(new()).daemon_user, "")


class TemplateTests(RulesTestCase):
    SMALL = NodeGroupTemplate(
        id=NodeGroupTemplateId("ng1"),
        tenant_id=TENANT,
        name="small",
        plugin_name="test",
        engine_version="1",
        node_processes=("datanode",),
        flavor_id="1",
        volumes_per_node=3,
        created_at=timestamp(NOW),
    )
    WHOLE = ClusterTemplate(
        id=ClusterTemplateId("ct1"),
        tenant_id=TENANT,
        name="whole",
        plugin_name="test",
        engine_version="1",
        anti_affinity=("datanode",),
        neutron_management_network="n1",
        default_image_id="image",
        node_groups=(
            TemplateNodeGroup(name="a", count=1, flavor_id="2", node_processes=("namenode",)),
        ),
        created_at=timestamp(NOW),
    )

    def test_cluster_takes_what_it_lacks_from_its_template(self) -> None:
        """Groups, image, network and anti-affinity."""
        request = new(node_groups=None, cluster_template_id="ct1", default_image_id=None)
        row = self.accept(request, evolve(FACTS, cluster_template=self.WHOLE))
        self.assertEqual([g.name for g in row.node_groups], ["a"])
        self.assertEqual(
            (row.default_image_id, row.neutron_management_network, row.anti_affinity),
            ("image", "n1", ("datanode",)),
        )

    def test_groups_given_replace_the_templates(self) -> None:
        """An empty anti-affinity also replaces."""
        request = new(cluster_template_id="ct1", anti_affinity=())
        row = self.accept(request, evolve(FACTS, cluster_template=self.WHOLE))
        self.assertEqual([g.name for g in row.node_groups], ["worker"])
        self.assertEqual(row.anti_affinity, ())

    def test_template_of_another_version(self) -> None:
        """Plugin and version must be the template's (behaviour 13)."""
        facts = evolve(FACTS, cluster_template=evolve(self.WHOLE, engine_version="2"))
        self.assertRefused(
            InvalidReference,
            "is for plugin test 2, but the request names test 1",
            new(cluster_template_id="ct1"),
            facts,
        )
        facts = evolve(FACTS, node_group_templates={"ng1": evolve(self.SMALL, plugin_name="other")})
        group_of = NewNodeGroup(name="g", count=1, node_group_template_id="ng1")
        self.assertRefused(InvalidReference, "is for plugin other 1", new(group_of), facts)

    def test_topology_of_a_cluster_template_is_checked(self) -> None:
        """As of the cluster that is made of it."""
        scripted = Scripted()
        template = NewClusterTemplate(
            name="t", plugin_name="test", engine_version="1", node_groups=(worker(),)
        )
        facts = evolve(FACTS, distribution=scripted, image=None)
        taken = rules.check_cluster_template(template, facts, BOUNDS, made())
        assert isinstance(taken, ClusterTemplate)
        scripted.faults = [InvalidComponentCount("no master")]
        self.assertEqual(
            rules.check_cluster_template(template, facts, BOUNDS, made()), scripted.faults
        )

    def test_unknown_cluster_template(self) -> None:
        """With its id."""
        self.assertRefused(InvalidReference, "'nope' not found", new(cluster_template_id="nope"))

    def test_inline_values_win_over_the_groups_template(self) -> None:
        """The others are the template's."""
        facts = evolve(FACTS, node_group_templates={"ng1": self.SMALL})
        given = NewNodeGroup(
            name="g", count=1, node_group_template_id="ng1", flavor_id="2", volumes_size=99
        )
        one = self.accept(new(given), facts).node_groups[0]
        self.assertEqual(
            (one.flavor_id, one.volumes_size, one.volumes_per_node, one.node_group_template_id),
            ("2", 99, 3, "ng1"),
        )


def running(*counts: int) -> Cluster:
    groups = [
        group(f"g{n}", c, [instance(i, f"g{n}", step="started") for i in range(1, c + 1)])
        for n, c in enumerate(counts)
    ]
    return cluster(*groups, status=S.ACTIVE, settled_generation=1)


class ScaleTests(SynchronousTestCase):
    def scale(
        self, row: Cluster, facts: Facts = FACTS, add: tuple[NewNodeGroup, ...] = (), **sizes: int
    ) -> Cluster | list[SvcdError]:
        change = ScaleRequest(
            resize_node_groups=tuple(ResizeGroup(name=n, count=c) for n, c in sizes.items()),
            add_node_groups=add,
        )
        return rules.check_scale(row, change, facts, Bounds(nodes=10), made())

    def accept(self, *args: Any, **sizes: Any) -> Cluster:
        result = self.scale(*args, **sizes)
        assert isinstance(result, Cluster), [e.message for e in result]
        return result

    def refuse(self, *args: Any, **sizes: Any) -> list[tuple[type[SvcdError], str]]:
        result = self.scale(*args, **sizes)
        assert isinstance(result, list)
        return [(type(e), e.message) for e in result]

    def test_growth_goes_on_from_the_highest_number(self) -> None:
        """Also when a lower one is missing."""
        row = running(3)
        holed = evolve(
            row.node_groups[0], count=2, instances=(row.instances()[0], row.instances()[2])
        )
        after = self.accept(evolve(row, node_groups=(holed,)), g0=3)
        self.assertEqual([i.index for i in after.instances()], [1, 3, 4])
        self.assertEqual(after.node_groups[0].count, 3)

    def test_shrink_takes_the_highest_numbers(self) -> None:
        """They are marked, not removed."""
        after = self.accept(running(3), g0=1)
        self.assertEqual([i.leaving for i in after.instances()], [False, True, True])
        self.assertEqual((after.node_groups[0].count, after.generation), (1, 2))

    def test_same_size_changes_nothing(self) -> None:
        """But passes once."""
        row = running(2)
        after = self.accept(row, g0=2)
        self.assertEqual(after.node_groups, row.node_groups)
        self.assertEqual(after.status, S.VALIDATING)

    def test_group_to_none(self) -> None:
        """All of it leaves; the last group must stay."""
        after = self.accept(running(1, 2), g1=0)
        self.assertEqual([i.leaving for i in after.instances()], [False, True, True])
        self.assertEqual(
            self.refuse(running(2), g0=0),
            [(InvalidData, "$.resize_node_groups: a cluster needs at least one node group")],
        )

    def test_unknown_repeated_and_existing_names(self) -> None:
        """All at once."""
        change = ScaleRequest(
            resize_node_groups=(
                ResizeGroup(name="g0", count=1),
                ResizeGroup(name="g0", count=2),
                ResizeGroup(name="no", count=2),
            ),
            add_node_groups=(worker(name="g0"), worker(name="x"), worker(name="x")),
        )
        result = rules.check_scale(running(1), change, FACTS, Bounds(), made())
        assert isinstance(result, list)
        self.assertEqual(
            [e.message for e in result],
            [
                "$.resize_node_groups: node group name 'g0' is given more than once",
                "$.resize_node_groups[2].name: the cluster has no node group 'no'; it has g0",
                "$.add_node_groups: node group name 'x' is given more than once",
                "$.add_node_groups[0].name: the cluster has a node group 'g0' already; "
                "use resize_node_groups",
            ],
        )

    def test_a_group_whose_name_differs_in_case_alone_is_refused(self) -> None:
        """Its machines would have the names of the other's."""
        self.assertEqual(
            self.refuse(running(1), FACTS, (worker(name="G0"),)),
            [
                (
                    InvalidReference,
                    "$.add_node_groups[0].name: the cluster has a node group 'g0' already; names "
                    "that differ only in case are the same; use resize_node_groups",
                )
            ],
        )

    def test_a_change_that_cannot_be_made_is_told_alone(self) -> None:
        """What the distribution says of the cluster after it would follow from it."""
        scripted = Scripted()
        scripted.faults = [InvalidComponentCount("two masters")]
        facts = evolve(FACTS, distribution=scripted)
        self.assertEqual(
            self.refuse(running(1), facts, g0=2), [(InvalidComponentCount, "two masters")]
        )
        scripted.scaling = [ClusterCannotBeScaled("no")]
        self.assertEqual(self.refuse(running(1), facts, g0=2), [(ClusterCannotBeScaled, "no")])

    def test_only_active_clusters_scale(self) -> None:
        """In every other status the request is refused, and says in which it is."""
        for status in S:
            if status is S.ACTIVE:
                continue
            ((kind, text),) = self.refuse(evolve(running(1), status=status), g0=2)
            self.assertIs(kind, InvalidReference)
            self.assertIn(f"in status {status}", text)

    def test_error_with_an_empty_request_is_a_retry(self) -> None:
        """Behaviour 20."""
        after = self.accept(evolve(running(1), status=S.ERROR, status_description="x"))
        self.assertEqual((after.status, after.generation), (S.VALIDATING, 2))

    def test_failed_deletion_with_an_empty_request_deletes_on(self) -> None:
        """The last wish stands."""
        row = evolve(running(1), status=S.ERROR, desired=Desired.DELETED)
        self.assertEqual(self.accept(row).status, S.DELETING)

    def test_quota_counts_only_what_is_added(self) -> None:
        """A shrink needs nothing."""
        tight = evolve(FACTS, quota=Quota(instances=1))
        self.accept(running(3, 1), tight, g0=2, g1=2)
        self.assertEqual([k for k, _ in self.refuse(running(3), tight, g0=5)], [QuotaExceeded])
        empty = evolve(FACTS, quota=Quota(instances=0))
        self.accept(running(3), empty, g0=2)

    def test_bound_of_nodes_is_for_the_whole(self) -> None:
        """Old and new together."""
        self.assertEqual([k for k, _ in self.refuse(running(6), g0=11)], [ValidationError])

    def test_image_that_has_gone_refuses_growth(self) -> None:
        """But not a shrink."""
        facts = evolve(FACTS, image=None)
        self.assertEqual([k for k, _ in self.refuse(running(1), facts, g0=2)], [InvalidReference])
        self.accept(running(2), facts, g0=1)

    def lost(self, row: Cluster, *ids: str) -> Cluster:
        """With machines that were found gone."""
        return lifecycle.with_instances(
            row, {InstanceId(id_): {"status": lifecycle.GONE} for id_ in ids}
        )

    def test_empty_request_puts_new_machines_in_the_place_of_lost_ones(self) -> None:
        """Under new numbers; the size stays."""
        after = self.accept(self.lost(running(1, 3), "g12"))
        self.assertEqual(
            [(i.index, i.leaving, i.step) for i in after.node_groups[1].instances],
            [(1, False, "started"), (2, True, "started"), (3, False, "started"), (4, False, "")],
        )
        self.assertEqual((after.node_groups[1].count, after.status), (3, S.VALIDATING))
        self.assertEqual(after.node_groups[0].instances, running(1).node_groups[0].instances)

    def test_lost_machines_count_for_quota_and_topology(self) -> None:
        """What is added to what is left must be allowed."""
        seen: list[tuple[int, int]] = []

        class Picky(Scripted):
            def check_scaling(self, before: Cluster, after: Cluster) -> list[SvcdError]:
                seen.append((before.node_groups[0].count, after.node_groups[0].count))
                return [ClusterCannotBeScaled("it runs namenode")]

        row = self.lost(running(3), "g02", "g03")
        facts = evolve(FACTS, distribution=Picky())
        self.assertEqual(self.refuse(row, facts), [(ClusterCannotBeScaled, "it runs namenode")])
        self.assertEqual(seen, [(1, 3)])
        tight = evolve(FACTS, quota=Quota(instances=1))
        self.assertEqual([k for k, _ in self.refuse(row, tight)], [QuotaExceeded])

    def test_shrink_takes_lost_machines_first(self) -> None:
        """Then the highest numbers."""
        after = self.accept(self.lost(running(4), "g02"), g0=2)
        self.assertEqual([i.index for i in after.instances() if i.leaving], [4, 2])

    def test_distribution_has_the_last_word(self) -> None:
        """It sees the cluster as it will be, without what is leaving."""
        seen: list[tuple[Cluster, Cluster]] = []

        class Picky(Scripted):
            def check_scaling(self, before: Cluster, after: Cluster) -> list[SvcdError]:
                seen.append((before, after))
                return [ClusterCannotBeScaled("too few data nodes")]

        refused = self.refuse(running(1, 3), evolve(FACTS, distribution=Picky()), g1=1)
        self.assertEqual(refused, [(ClusterCannotBeScaled, "too few data nodes")])
        before, after = seen[0]
        self.assertEqual((len(before.instances()), len(after.instances())), (4, 2))


class JoinedTests(SynchronousTestCase):
    def test_first_error_gives_the_class_all_give_a_line(self) -> None:
        """Equal lines once."""
        error = rules.joined([InvalidData("a"), InvalidReference("b"), InvalidData("a")])
        self.assertIs(type(error), InvalidData)
        self.assertEqual(error.message, "a\nb")
