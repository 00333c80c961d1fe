"""The search of `svcd orphans` on the embedded cloud, beside what others have there."""

from __future__ import annotations

from collections.abc import Callable, Sequence
from typing import Any

from attrs import evolve
from twisted.internet.defer import Deferred
from twisted.trial.unittest import SynchronousTestCase

from svcd.cli.exits import REFUSED, CommandError
from svcd.cli.orphan_search import Orphan, Outcome, Rows, Rules, Search, judged, rows_of
from svcd.clients.ownership_tags import Kind, TaggedCloud, Thing
from svcd.embedded.cloud.core import PRIVATE_NETWORK_ID
from svcd.model.ownership_tags import Tag
from svcd.model.secret import Secret
from svcd.ports.cloud import CloudError
from svcd.settings import CloudSettings
from svcd.testing import CLOUD_URL
from tests.support.cloud_watch import WatchedCloudTestCase
from tests.unit.cli.test_why import reader

MINE, THEIRS = "0123456789abcdef", "fedcba9876543210"
ONE, TWO = "00000001-23a7-411a-8133-287637ebdcd9", "00000002-23a7-411a-8133-287637ebdcd9"
NOW = 1_800_000_000.0
ROWS = Rows(installation=MINE, clusters=frozenset({ONE}), trusts=frozenset({"t-1"}))


def thing(tag: Tag | None, kind: Kind = Kind.SERVER, id_: str = "x", **more: Any) -> Thing:
    return Thing(**{"kind": kind, "id": id_, "name": "n", "tag": tag, "made_at": 0.0, **more})


class JudgementTests(SynchronousTestCase):
    """What belongs to no row, and what of it may go."""

    def why(self, each: Thing, *beside: Thing, **rules: Any) -> str | None:
        """None: it belongs to a row."""
        found = judged([each, *beside], ROWS, Rules(**rules), NOW)
        return next((o.why for o in found if o.thing == each), None)

    def test_cluster_with_a_row(self) -> None:
        """Is no orphan, whoever marked the thing."""
        for installation in (MINE, THEIRS, ""):
            self.assertIsNone(self.why(thing(Tag(ONE, installation))))
        self.assertIsNone(self.why(thing(None, Kind.TRUST, "t-1")))

    def test_application_credential_of_a_job(self) -> None:
        """The row of its cluster says nothing of it; only its own row does."""
        rows = evolve(ROWS, job_credentials=frozenset({"known"}))
        things = [
            thing(Tag(ONE, MINE), Kind.APPLICATION_CREDENTIAL, name, name=name)
            for name in ("known", "lost")
        ]
        things.append(thing(Tag(ONE, THEIRS), Kind.APPLICATION_CREDENTIAL, "other", name="other"))
        found = {o.thing.id: o.why for o in judged(things[:2], rows, Rules(), NOW)}
        self.assertEqual(found, {"lost": ""})
        found = {o.thing.id: o.why for o in judged(things[2:], rows, Rules(), NOW)}
        self.assertIn("another installation", found["other"])

    def test_own_mark(self) -> None:
        self.assertEqual(self.why(thing(Tag(TWO, MINE))), "")

    def test_other_installation(self) -> None:
        """Only by its id; what vouches for it too is left alone."""
        theirs = thing(Tag(TWO, THEIRS))
        self.assertIn("another installation", self.why(theirs) or "")
        self.assertIn("another installation", self.why(theirs, unmarked=True) or "")
        self.assertEqual(self.why(theirs, ids=frozenset({"x"})), "")
        beside = thing(Tag(TWO), Kind.SERVER_GROUP, "g")
        self.assertIn("another installation", self.why(beside, theirs, unmarked=True) or "")

    def test_mark_without_an_installation(self) -> None:
        """Another thing of the same cluster vouches for it, or --unmarked, or --id."""
        group = thing(Tag(TWO), Kind.SERVER_GROUP, "g")
        self.assertIn("does not name an installation", self.why(group) or "")
        self.assertEqual(self.why(group, thing(Tag(TWO, MINE))), "")
        self.assertEqual(self.why(group, unmarked=True), "")
        self.assertEqual(self.why(group, ids=frozenset({"g"})), "")

    def test_young_things(self) -> None:
        """Even when they are named; with all else of their cluster."""
        young = thing(Tag(TWO, MINE), made_at=NOW - 599)
        reason = "an object of its cluster is younger than 10 min 00 s"
        self.assertEqual(self.why(young), reason)
        self.assertEqual(self.why(young, ids=frozenset({"x"})), reason)
        self.assertEqual(self.why(young, young_s=10.0), "")
        group = thing(Tag(TWO), Kind.SERVER_GROUP, "g", made_at=None)
        self.assertEqual(self.why(group, young), reason)

    def test_trust_without_a_row(self) -> None:
        """Only by its id: it may have been made a moment ago, or by another installation."""
        trust = thing(None, Kind.TRUST, "t-2", made_at=None)
        self.assertIn("--id", self.why(trust, unmarked=True) or "")
        self.assertEqual(self.why(trust, ids=frozenset({"t-2"})), "")


class SearchTests(WatchedCloudTestCase):
    """Whole searches."""

    settings = {"embedded.delete_s": "3", "embedded.volume_s": "2"}

    def search(
        self,
        rows: Rows | None = None,
        tenant: str = "",
        confirm: Callable[[Sequence[str]], None] = lambda names: None,
        **rules: Any,
    ) -> Search:
        token = self.svcd.token()
        cloud = TaggedCloud(
            self.svcd._memory,
            self.svcd.clock,
            CloudSettings(auth_url=f"{CLOUD_URL}/identity/v3"),
            Secret(token),
            tenant or "demo",
        )
        api = reader(self.svcd)

        def read() -> Rows:
            return rows or rows_of(api)

        self.said: list[str] = []
        return Search(cloud, read, self.svcd.clock, Rules(**rules), self.said.append, confirm)

    def ran(self, search: Search, delete: bool = False, wait_s: float = 180.0) -> bool:
        self.outcome: Outcome = self.svcd.result_of(
            Deferred.fromCoroutine(search.run(delete, wait_s))
        )
        return not self.outcome.troubles

    def found(self, search: Search) -> list[tuple[str, str]]:
        """Kind and reason of each."""
        orphans: list[Orphan] = list(self.svcd.result_of(Deferred.fromCoroutine(search.found())))
        return [(o.thing.kind.value, o.why) for o in orphans]

    def foreign(self) -> None:
        """What somebody else of the tenant has, named as nearly like ours as can be."""
        server = {"name": "mine-worker-001", "imageRef": self.svcd.image_id, "flavorRef": "1"}
        marked = {"svcd_cluster_id": "mine", "svcd_instance_id": "x"}
        for metadata in ({}, marked):
            body = {
                "server": {
                    **server,
                    "metadata": metadata,
                    "networks": [{"uuid": PRIVATE_NETWORK_ID}],
                }
            }
            self.ask_cloud("POST", "/compute/v2.1/servers", body)
        volume = {"volume": {"name": "volume_mine-worker-001_1", "size": 1}}
        self.ask_cloud("POST", f"/volume/v3/{self.project()}/volumes", volume)
        group = {"name": f"svcd-{ONE}", "description": "my own"}
        self.ask_cloud("POST", "/network/v2.0/security-groups", {"security_group": group})

    def project(self) -> str:
        return str(self.svcd.tenant)

    def held(self) -> set[str]:
        """Ids of everything in the cloud."""
        state = self.state
        families: tuple[Any, ...] = (
            state.servers, state.volumes, state.floating_ips, state.ports,
            state.security_groups, state.server_groups, state.trusts,
        )  # fmt: skip
        return {each.id for family in families for each in family.values()}

    def lose(self, cluster_id: str) -> None:
        """The row goes by force while the cloud refuses every removal."""
        faults = [
            self.fault(where, method="DELETE", status=500)
            for where in ("compute", "network", "volume")
        ]
        self.api.delete(f"/clusters/{cluster_id}?force=true")
        self.svcd.advance(120)
        self.api.get(f"/clusters/{cluster_id}", 404)
        for each in faults:
            each.remove()

    def test_removes_what_a_lost_cluster_left_and_nothing_else(self) -> None:
        """Beside foreign things and a cluster that lives."""
        self.foreign()
        kept = self.create(workers=1, volumes=1, pool="public", name="kept")
        self.api.until_status(kept, "Active")
        before = self.held()
        lost = self.create(
            workers=2, volumes=1, pool="public", anti_affinity=["datanode"], name="lost"
        )
        self.api.until_status(lost, "Active")
        of_lost = self.held() - before
        self.lose(lost)
        self.assertEqual(self.held() - before, of_lost)
        self.svcd.advance(600)

        self.assertTrue(self.ran(self.search()))
        self.assertEqual(self.said[-2], "9 found, 9 to be removed, 0 left alone")
        self.assertEqual(self.said[-1], "nothing was removed: run the command again with --delete")
        self.assertEqual(self.held() - before, of_lost)

        self.assertTrue(self.ran(self.search(), delete=True))
        removed = [line for line in self.said if line.startswith("removed ")]
        self.assertEqual(len(removed), 9)
        self.assertEqual(self.held(), before)
        self.assertTrue(self.ran(self.search()))
        self.assertEqual(self.said, ["0 found, 0 to be removed, 0 left alone"])
        self.assertEqual(self.api.cluster(kept)["status"], "Active")

    def test_a_question_that_is_not_answered_with_yes(self) -> None:
        """It names the objects that would go; nothing goes."""
        cluster_id = self.create(workers=1)
        self.api.until_status(cluster_id, "Active")
        self.lose(cluster_id)
        self.svcd.advance(600)
        before = self.held()
        asked: list[str] = []

        def no(names: Sequence[str]) -> None:
            asked.extend(names)
            raise CommandError("nothing was changed", REFUSED)

        with self.assertRaises(CommandError):
            self.ran(self.search(confirm=no), delete=True)
        self.assertIn("server mine-worker-001", asked)
        self.assertEqual(self.held(), before)

    def test_outcome_for_scripts(self) -> None:
        """Each orphan with the reason to leave it alone, and whether it was removed."""
        cluster_id = self.create(workers=1)
        self.api.until_status(cluster_id, "Active")
        self.lose(cluster_id)
        self.svcd.advance(600)
        (victim, *_) = self.servers()
        self.fault("compute", method="DELETE", path=victim.id, status=403)
        self.assertTrue(self.ran(self.search()))
        (row,) = [each for each in self.outcome.body["orphans"] if each["id"] == victim.id]
        self.assertEqual(set(row), {
            "kind", "id", "name", "status", "cluster_id", "created_at", "left_alone", "removed",
            "not_removed",
        })  # fmt: skip
        self.assertEqual(
            (row["kind"], row["cluster_id"], row["left_alone"], row["removed"]),
            ("server", cluster_id, None, False),
        )
        self.assertFalse(self.ran(self.search(), delete=True, wait_s=20.0))
        ended = {each["id"]: each for each in self.outcome.body["orphans"]}
        self.assertIn("was answered 403", ended.pop(victim.id)["not_removed"])
        self.assertEqual({each["kind"] for each in ended.values() if each["removed"]}, {"server"})
        self.assertEqual(self.outcome.body["not_searched"], [])

    def test_clusters_that_are_being_made_or_removed(self) -> None:
        """At no moment are they taken for leftovers."""
        self.begin(embedded__boot_s="3", embedded__delete_s="3")
        for moment in (0.0, 0.1, 1.0, 3.0, 3.2):
            cluster_id = self.create(workers=2, volumes=1, pool="public")
            self.svcd.advance(moment)
            self.assertEqual(self.found(self.search(young_s=0.0)), [])
            self.api.delete(f"/clusters/{cluster_id}")
            self.svcd.advance(moment)
            self.assertTrue(self.ran(self.search(young_s=0.0), delete=True))
            self.assertEqual([line for line in self.said if "removed " in line[:12]], [])
            self.gone(cluster_id)

    def test_another_installation_has_its_things(self) -> None:
        """This daemon's rows know nothing of them: they are listed and left alone."""
        cluster_id = self.create(workers=1)
        self.api.until_status(cluster_id, "Active")
        self.svcd.advance(700)
        other = Rows(installation=THEIRS, clusters=frozenset(), trusts=frozenset())
        before = self.held()
        self.assertTrue(self.ran(self.search(other, unmarked=True), delete=True))
        self.assertEqual(self.held(), before)
        self.assertEqual(self.said[-1], "3 found, 0 to be removed, 3 left alone")
        self.assertIn("    left alone: another installation created it", self.said[0])

    def test_living_server_in_a_group_of_ours_keeps_its_port(self) -> None:
        """Somebody has put a server of his own into a lost cluster's security group."""
        cluster_id = self.create(workers=1)
        self.api.until_status(cluster_id, "Active")
        self.lose(cluster_id)
        (group,) = [g for g in self.state.security_groups.values() if g.name.startswith("svcd-")]
        before = self.held()
        self.foreign()
        his = self.held() - before
        for port in self.state.ports.values():
            if port.id in his:
                self.state.ports.put(evolve(port, security_groups=(group.id,)))
        self.svcd.advance(700)
        self.ran(self.search(), delete=True, wait_s=10.0)
        self.assertEqual(his - self.held(), set())

    def test_refusals_are_told(self) -> None:
        """What refused, and why; the rest is removed."""
        cluster_id = self.create(workers=1)
        self.api.until_status(cluster_id, "Active")
        self.lose(cluster_id)
        self.svcd.advance(600)
        text = '{"forbidden": {"code": 403, "message": "Policy does not allow it."}}'
        (victim, *_) = self.servers()
        self.fault("compute", method="DELETE", path=victim.id, status=403, body=text)
        self.assertFalse(self.ran(self.search(), delete=True, wait_s=20.0))
        told = [line for line in self.said if line.startswith("NOT removed")]
        self.assertTrue(told[0].startswith(f"NOT removed server {victim.id} "), told)
        self.assertIn("Policy does not allow it.", told[0])
        self.assertEqual([s.id for s in self.servers()], [victim.id])

    def test_token_of_another_project(self) -> None:
        """Its things would all look like leftovers: nothing is judged."""
        self.create(workers=1)
        with self.assertRaises(CloudError) as raised:
            self.ran(self.search(tenant="other"), delete=True)
        self.assertIn("the token is for project demo, not for other", str(raised.exception))

    def test_daemon_that_does_not_answer(self) -> None:
        """Nothing is judged."""
        cluster_id = self.create(workers=1)
        self.api.until_status(cluster_id, "Active")
        before = self.held()
        search = self.search(young_s=0.0)
        self.fault("store", status=500)
        with self.assertRaises(CommandError):
            self.ran(search, delete=True)
        self.assertEqual(self.held(), before)

    def test_application_credentials(self) -> None:
        """The one of a job that runs is none; another of ours goes, and one of others stays."""
        cluster_id = self.create(workers=1)
        self.api.until_status(cluster_id, "Active")
        sources = self.api.new_sources(password="demo")
        job = self.api.new_job()
        hang = {"svcd.fake.outcome": "hang"}
        execution = self.api.execute(job, cluster_id, sources, hang)
        self.svcd.advance(20)
        (used,) = self.state.credentials.values()
        self.assertTrue(used.name.endswith(f":{execution}:1"))
        gone = used.name.replace(execution, TWO)
        for id_, name in (("lost", gone), ("foreign", "svcd:mine")):
            self.state.credentials.put(evolve(used, id=id_, name=name))
        self.assertTrue(self.ran(self.search(), delete=True))
        self.assertIn(f"removed application credential lost {gone}", self.said)
        left = {each.id for each in self.state.credentials.values()}
        self.assertEqual(left, {used.id, "foreign"})

    def test_lists_that_the_cloud_forbids_are_said(self) -> None:
        """The rest is searched."""
        self.fault("identity", path="/application_credentials|/OS-TRUST/trusts", status=403)
        self.assertTrue(self.ran(self.search()))
        trusts, credentials, end = self.said
        self.assertTrue(trusts.startswith("NOT searched: trusts. The cloud forbids"), trusts)
        self.assertTrue(credentials.startswith("NOT searched: application credentials."))
        self.assertIn("was answered 403", credentials)
        self.assertEqual(end, "0 found, 0 to be removed, 0 left alone")

    def test_trusts(self) -> None:
        """The one in use is none; another is listed and goes only by its id."""
        self.settings = {"auth.mode": "keystone"}
        self.begin()
        cluster_id = self.create(workers=1)
        self.api.until_status(cluster_id, "Active")
        (used,) = self.state.trusts.values()
        self.state.trusts.put(evolve(used, id="forgotten"))
        self.svcd.advance(700)
        token = self.svcd.token("alice", project="alpha")
        api = reader(self.svcd, "alpha", token)

        def read() -> Rows:
            return rows_of(api)

        def search(**rules: Any) -> Search:
            settings = CloudSettings(auth_url=f"{CLOUD_URL}/identity/v3")
            clock, agent = self.svcd.clock, self.svcd._memory
            cloud = TaggedCloud(agent, clock, settings, Secret(token), "alpha")
            self.said = []
            return Search(cloud, read, clock, Rules(**rules), self.said.append)

        self.assertTrue(self.ran(search(), delete=True))
        self.assertEqual(self.said[-1], "1 found, 0 to be removed, 1 left alone")
        self.assertTrue(self.ran(search(ids=frozenset({"forgotten"})), delete=True))
        self.assertEqual([t.id for t in self.state.trusts.values()], [used.id])
        self.assertEqual(self.api.cluster(cluster_id)["status"], "Active")
