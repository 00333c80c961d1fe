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

    def assertRefused(
        self,
        request: NewCluster,
        *told: str,
        kind: type[SvcdError] = InvalidReference,
        facts: Facts = FACTS,
        bounds: Bounds = BOUNDS,
    ) -> None:
        """Exactly these faults, in this order, all of one kind."""
        result = rules.check_cluster(request, facts, bounds, made())
        assert isinstance(result, list)
        self.assertEqual([(type(e), e.message) for e in result], [(kind, text) for text in told])


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

    def test_unknown_references_are_refused_with_those_on_offer(self) -> None:
        group, processes = "$.node_groups[0]", "namenode, datanode, nodemanager"
        for request, told in (
            (new(engine_version="9"),
             "$.engine_version: plugin 'test' has no version '9'; available: 1, 2"),
            (new(worker(node_processes=("datanode", "spark"))),
             f"{group}.node_processes: unknown process spark; available: {processes}"),
            (new(anti_affinity=("moon",)),
             f"$.anti_affinity: unknown process moon; available: {processes}"),
            (new(worker(flavor_id="7")),
             f"{group}.flavor_id: flavor '7' not found in the cloud; available: 1 (m1.tiny), "
             "2 (m1.small)"),
            (new(worker(floating_ip_pool="private")),
             f"{group}.floating_ip_pool: external network 'private' not found; available: "
             "public (n2)"),
            (new(neutron_management_network="x"),
             "$.neutron_management_network: network 'x' not found; available: n1 (private), "
             "n2 (public)"),
            (new(cluster_template_id="nope"),
             "$.cluster_template_id: cluster template 'nope' not found"),
            (new(NewNodeGroup(name="g", count=1, node_group_template_id="no")),
             f"{group}.node_group_template_id: node group template 'no' not found"),
        ):  # fmt: skip
            self.assertRefused(request, told)
        self.assertRefused(
            new(),
            "$.plugin_name: plugin 'test' not found; available: test",
            facts=evolve(FACTS, distribution=None),
        )
        for pool in ("public", "n2"):
            self.accept(new(worker(floating_ip_pool=pool)))
        self.accept(new(), evolve(FACTS, keypair=None))

    def test_at_most_ten_choices_are_told(self) -> None:
        """And how many more there are."""
        flavors = {str(n): evolve(FLAVORS[0], id=str(n), name=f"f{n}") for n in range(10, 22)}
        facts = evolve(
            FACTS,
            flavors=flavors,
            image=None,
            images=(IMAGE, evolve(IMAGE, id="plain", properties={})),
            keypair=None,
            keypairs=tuple(f"k{n}" for n in range(11)),
        )
        self.assertRefused(
            new(worker(flavor_id="7"), user_keypair_id="no"),
            "$.node_groups[0].flavor_id: flavor '7' not found in the cloud; available: "
            + ", ".join(f"{n} (f{n})" for n in range(10, 20))
            + " and 2 more",
            "$.default_image_id: image 'image' not found; registered images: image (pic)",
            "$.user_keypair_id: key pair 'no' not found; available: "
            "k0, k1, k2, k3, k4, k5, k6, k7, k8, k9 and 1 more",
            facts=facts,
        )

    def test_names_are_given_once(self) -> None:
        """Host names have no case, so the case of a group's name makes no difference."""
        for request, told in (
            (new(worker(node_processes=("datanode", "datanode"))),
             "$.node_groups[0].node_processes: given more than once: datanode"),
            (new(anti_affinity=("datanode", "datanode")),
             "$.anti_affinity: given more than once: datanode"),
            (new(worker(), worker(name="Worker")),
             "$.node_groups: node group name 'worker' is given more than once"),
        ):  # fmt: skip
            self.assertRefused(request, told, kind=InvalidData)

    def test_cluster_beyond_the_bounds_is_refused(self) -> None:
        """Names of cluster and group together make host names."""
        host = f"{'c' * 40}-{'w' * 40}-002"
        self.assertRefused(
            new(worker(name="w" * 40), name="c" * 40),
            f"$.node_groups[0].name: host name {host!r} would have 85 characters, at most 64 are "
            "allowed; shorten the name of the cluster or of the group",
            kind=ValidationError,
        )
        self.assertRefused(
            new(worker(count=4), worker(name="more")),
            "$.node_groups: at most 3 instances in total, got 6",
            "$.node_groups: at most 1 node groups, got 2",
            kind=ValidationError,
            bounds=Bounds(nodes=3, groups=1),
        )

    def test_image_that_cannot_be_used_is_refused(self) -> None:
        """Absent, not active (with the remedy), not registered, without tags, too large."""
        sick = evolve(
            IMAGE, status="queued", properties={"_svc_username": "u", "_svc_problem": "run make"}
        )
        tagged = Scripted()
        tagged.tags = ("vanilla", "3")
        at = "$.default_image_id: image"
        for facts, told in (
            (evolve(FACTS, image=None), f"{at} 'image' not found; registered images: none"),
            (evolve(FACTS, image=sick), f"{at} 'pic' (image) is queued, not active: run make"),
            (evolve(FACTS, image=evolve(IMAGE, properties={})),
             f"{at} 'pic' (image) is not registered; register it with its login username; "
             "registered images: none"),
            (evolve(FACTS, distribution=tagged),
             f"{at} 'pic' (image) lacks the tags vanilla, 3; tag it for the plugin, or use another "
             "image"),
            (evolve(FACTS, image=evolve(IMAGE, min_ram_mib=4096)),
             "$.node_groups[0].flavor_id: flavor 'm1.small' has 2 GiB of memory, but image "
             "'pic' needs 4; use a larger flavor"),
        ):  # fmt: skip
            self.assertRefused(new(), told, facts=facts)

    def test_quota_names_everything_that_is_short(self) -> None:
        """What is needed, what is left."""
        left = Quota(instances=1, cores=100, ram_mib=4095, volumes=3, volume_gib=39, floating_ips=0)
        self.assertRefused(
            new(worker(volumes_per_node=2, floating_ip_pool="public")),
            "the quota of the project is too small: instances: needed 2, left 1; "
            "MiB of memory: needed 4096, left 4095; volumes: needed 4, left 3; "
            "GiB of volumes: needed 40, left 39; floating IPs: needed 2, left 0",
            kind=QuotaExceeded,
            facts=evolve(FACTS, quota=left),
        )

    def test_topology_comes_last(self) -> None:
        """The distribution sees only clusters whose references are right."""
        strict = Scripted()
        strict.faults = [InvalidComponentCount("namenode: expected 1, got 0")]
        facts = evolve(FACTS, distribution=strict)
        told = "namenode: expected 1, got 0"
        self.assertRefused(new(), told, kind=InvalidComponentCount, facts=facts)
        told = "$.engine_version: plugin 'test' has no version '9'; available: 1, 2"
        self.assertRefused(new(engine_version="9"), told, facts=facts)

    def test_daemons_have_a_user_of_their_own_if_none_of_them_needs_root(self) -> None:
        """The distribution is marked so. The commands of another one may need root."""
        marked = Scripted()
        alsoProvides(marked, IUnprivileged)
        self.assertEqual(self.accept(new(), evolve(FACTS, distribution=marked)).daemon_user, "svcd")
        self.assertEqual(self.accept(new()).daemon_user, "")


class OptionTests(RulesTestCase):
    """cluster_configs and node_configs."""

    def test_unknown_target_and_name_are_refused(self) -> None:
        """For the cluster and for groups. An option of another target is told with that target."""
        self.assertRefused(
            new(
                worker(node_configs={"HDFS": {"nope": 1}}),
                cluster_configs={"Mars": {"x": 1}, "YARN": {"dfs.name": "n"}},
            ),
            "$.node_groups[0].node_configs.HDFS.nope: unknown option",
            "$.cluster_configs.Mars: unknown target; available: HDFS, YARN, general",
            '$.cluster_configs.YARN["dfs.name"]: unknown option of YARN; it is an option of HDFS',
        )

    def test_three_misspelt_names_get_a_suggestion(self) -> None:
        wrong = ("dfs.replicaton", "DFS.Permission", "dfs.nam", "dfs.permision")
        at = '$.cluster_configs.HDFS["{}"]: unknown option'
        self.assertRefused(
            new(cluster_configs={"HDFS": dict.fromkeys(wrong, 1)}),
            at.format("dfs.replicaton") + "; did you mean dfs.replication?",
            at.format("DFS.Permission") + "; did you mean dfs.permissions?",
            at.format("dfs.nam") + "; did you mean dfs.name?",
            at.format("dfs.permision"),
        )

    def test_an_option_of_the_cluster_is_refused_for_a_group(self) -> None:
        """In the request and in a template; for the cluster it is taken."""
        configs = {"HDFS": {"dfs.blocksize": 1, "dfs.replication": 1}}
        text = (
            'node_configs.HDFS["dfs.blocksize"]: this option is for the whole cluster; '
            "give it in cluster_configs"
        )
        self.assertRefused(new(worker(node_configs=configs)), f"$.node_groups[0].{text}")
        template = NewNodeGroupTemplate(
            name="t", plugin_name="test", engine_version="1", node_processes=("datanode",),
            flavor_id="2", node_configs=configs,
        )  # fmt: skip
        refused = rules.check_node_group_template(template, FACTS, made())
        assert isinstance(refused, list)
        self.assertEqual([e.message for e in refused], [f"$.{text}"])
        self.assertEqual(self.accept(new(cluster_configs=configs)).cluster_configs, configs)

    def test_value_of_a_wrong_type_is_refused_and_not_quoted(self) -> None:
        """It may be a password in the wrong place. Older clients send everything as text."""
        at = '$.cluster_configs.HDFS["{}"]: expected {}'
        self.assertRefused(
            new(cluster_configs={"HDFS": {"dfs.replication": True, "dfs.permissions": 7}}),
            at.format("dfs.replication", "int, got bool"),
            at.format("dfs.permissions", "bool, got int"),
            kind=ValidationError,
        )
        self.assertRefused(
            new(cluster_configs={"HDFS": {"dfs.replication": "hunter2"}}),
            at.format("dfs.replication", "int, got str"),
            kind=ValidationError,
        )
        texts = {"HDFS": {"dfs.replication": "2", "dfs.permissions": "true"}}
        self.assertEqual(self.accept(new(cluster_configs=texts)).cluster_configs, texts)

    def test_a_hundred_faults_are_enough(self) -> None:
        """A megabyte of unknown names is not worth an answer of six."""
        for configs in (
            {"HDFS": dict.fromkeys(map(str, range(500)), 1)},
            {str(n): {"x": 1} for n in range(500)},
        ):
            result = rules.check_cluster(new(cluster_configs=configs), FACTS, BOUNDS, made())
            assert isinstance(result, list)
            self.assertEqual(len(result), 100)


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
        cluster_configs={"HDFS": {"dfs.permissions": True, "dfs.name": "b"}},
        node_groups=(
            TemplateNodeGroup(name="a", count=1, flavor_id="2", node_processes=("namenode",)),
        ),
        created_at=timestamp(NOW),
    )

    def test_cluster_takes_missing_values_from_its_template(self) -> None:
        """Groups, image, network and anti-affinity; options are merged name by name."""
        configs = {"HDFS": {"dfs.name": "c", "dfs.replication": 1}}
        request = new(
            node_groups=None, cluster_template_id="ct1", default_image_id=None,
            cluster_configs=configs,
        )  # fmt: skip
        row = self.accept(request, evolve(FACTS, cluster_template=self.WHOLE))
        self.assertEqual([g.name for g in row.node_groups], ["a"])
        self.assertEqual(
            (row.default_image_id, row.neutron_management_network, row.anti_affinity),
            ("image", "n1", ("datanode",)),
        )
        options = {"dfs.permissions": True, "dfs.name": "c", "dfs.replication": 1}
        self.assertEqual(row.cluster_configs, {"HDFS": options})

    def test_groups_given_replace_the_templates(self) -> None:
        """An empty anti-affinity also replaces."""
        request = new(cluster_template_id="ct1", anti_affinity=())
        row = self.accept(request, evolve(FACTS, cluster_template=self.WHOLE))
        self.assertEqual([g.name for g in row.node_groups], ["worker"])
        self.assertEqual(row.anti_affinity, ())

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

    def test_template_of_another_plugin_or_version_is_refused(self) -> None:
        self.assertRefused(
            new(cluster_template_id="ct1"),
            "$.cluster_template_id: cluster template 'whole' is for plugin test 2, but the request "
            "names test 1",
            facts=evolve(FACTS, cluster_template=evolve(self.WHOLE, engine_version="2")),
        )
        other = evolve(self.SMALL, plugin_name="other")
        self.assertRefused(
            new(NewNodeGroup(name="g", count=1, node_group_template_id="ng1")),
            "$.node_groups[0].node_group_template_id: node group template 'small' is for plugin "
            "other 1, but the request names test 1",
            facts=evolve(FACTS, node_group_templates={"ng1": other}),
        )

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
        """They are marked, not removed. The same size changes nothing, but passes once."""
        after = self.accept(running(3), g0=1)
        self.assertEqual([i.leaving for i in after.instances()], [False, True, True])
        self.assertEqual((after.node_groups[0].count, after.generation), (1, 2))
        same = self.accept(running(3), g0=3)
        self.assertEqual(same.node_groups, running(3).node_groups)
        self.assertEqual(same.status, S.VALIDATING)

    def test_group_to_none(self) -> None:
        """All of it leaves; the last group must stay."""
        after = self.accept(running(1, 2), g1=0)
        self.assertEqual([i.leaving for i in after.instances()], [False, True, True])
        self.assertEqual(
            self.refuse(running(2), g0=0),
            [(InvalidData, "$.resize_node_groups: a cluster needs at least one node group")],
        )

    def test_unknown_repeated_and_existing_names(self) -> None:
        """All at once. Machines of groups that differ only in case would have the same names."""
        change = ScaleRequest(
            resize_node_groups=(
                ResizeGroup(name="g0", count=1),
                ResizeGroup(name="g0", count=2),
                ResizeGroup(name="no", count=2),
            ),
            add_node_groups=(
                worker(name="g0"), worker(name="G0"), worker(name="x"), worker(name="x")
            ),
        )  # fmt: skip
        result = rules.check_scale(running(1), change, FACTS, Bounds(), made())
        assert isinstance(result, list)
        self.assertEqual(
            [e.message for e in result],
            [
                "$.resize_node_groups: node group name 'g0' is given more than once",
                "$.resize_node_groups[2].name: the cluster has no node group 'no'; it has g0",
                "$.add_node_groups: node group name 'g0' is given more than once",
                "$.add_node_groups: node group name 'x' is given more than once",
                "$.add_node_groups[0].name: the cluster has a node group 'g0' already; "
                "use resize_node_groups",
                "$.add_node_groups[1].name: the cluster has a node group 'g0' already; names "
                "that differ only in case are the same; use resize_node_groups",
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
        """Of the last wish: a failed deletion deletes on."""
        row = evolve(running(1), status=S.ERROR, status_description="x")
        after = self.accept(row)
        self.assertEqual((after.status, after.generation), (S.VALIDATING, 2))
        self.assertEqual(self.accept(evolve(row, desired=Desired.DELETED)).status, S.DELETING)

    def test_quota_counts_only_what_is_added(self) -> None:
        """A shrink needs nothing."""
        tight = evolve(FACTS, quota=Quota(instances=1))
        self.accept(running(3, 1), tight, g0=2, g1=2)
        self.assertEqual([k for k, _ in self.refuse(running(3), tight, g0=5)], [QuotaExceeded])
        empty = evolve(FACTS, quota=Quota(instances=0))
        self.accept(running(3), empty, g0=2)

    def test_bound_of_instances_is_for_the_whole(self) -> None:
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
