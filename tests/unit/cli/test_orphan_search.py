"""The search of `svcd orphans` on the embedded cloud, beside what others have there."""

from __future__ import annotations

from collections.abc import Callable, Sequence
from typing import Any

from attrs import evolve
from twisted.internet.defer import Deferred
from twisted.trial.unittest import SynchronousTestCase

from svcd.cli.exits import REFUSED, CommandError
from svcd.cli.orphan_search import Outcome, Rows, Rules, Search, judged, rows_of
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

    def test_what_belongs_to_a_row(self) -> None:
        """Whoever marked the thing; a job's credential has a row of its own."""
        for installation in (MINE, THEIRS, ""):
            self.assertIsNone(self.why(thing(Tag(ONE, installation))))
        self.assertIsNone(self.why(thing(None, Kind.TRUST, "t-1")))
        rows = evolve(ROWS, job_credentials=frozenset({"known"}))
        things = [
            thing(Tag(ONE, owner), Kind.APPLICATION_CREDENTIAL, name, name=name)
            for name, owner in (("known", MINE), ("lost", MINE))
        ]
        found = {o.thing.id: o.why for o in judged(things, rows, Rules(), NOW)}
        self.assertEqual(found, {"lost": ""})

    def test_what_may_go(self) -> None:
        """By its mark, by that of another thing of its cluster, by --unmarked, or by --id."""
        mine, theirs = thing(Tag(TWO, MINE)), thing(Tag(TWO, THEIRS))
        group = thing(Tag(TWO), Kind.SERVER_GROUP, "g")
        trust = thing(None, Kind.TRUST, "t-2", made_at=None)
        young = thing(Tag(TWO, MINE), made_at=NOW - 599)
        undated = thing(Tag(TWO), Kind.SERVER_GROUP, "g", made_at=None)
        other, nobody = "another installation", "does not name an installation"
        age = "an object of its cluster is younger than 10 min 00 s"

        def by_id(id_: str) -> dict[str, Any]:
            return {"ids": frozenset({id_})}

        unmarked, short = {"unmarked": True}, {"young_s": 10.0}
        for each, beside, rules, why in (
            (mine, [], {}, ""),
            (theirs, [], {}, other),
            (theirs, [], unmarked, other),
            (theirs, [], by_id("x"), ""),
            (group, [], {}, nobody),
            (group, [mine], {}, ""),
            (group, [theirs], unmarked, other),
            (group, [], unmarked, ""),
            (group, [], by_id("g"), ""),
            (trust, [], unmarked, "--id"),
            (trust, [], by_id("t-2"), ""),
            (young, [], {}, age),
            (young, [], by_id("x"), age),
            (young, [], short, ""),
            (undated, [young], {}, age),
        ):
            said = self.why(each, *beside, **rules)
            assert said is not None, each
            self.assertEqual((bool(said), why in said), (bool(why), True), (each, rules, said))


class SearchTests(WatchedCloudTestCase):
    """Whole searches."""

    settings = {"embedded.delete_s": "3", "embedded.volume_s": "2"}

    def search(
        self,
        rows: Rows | None = None,
        user: str = "",
        project: str = "",
        confirm: Callable[[Sequence[str]], None] = lambda names: None,
        **rules: Any,
    ) -> Search:
        token = self.svcd.token(user, project=project) if user else self.svcd.token()
        settings = CloudSettings(auth_url=f"{CLOUD_URL}/identity/v3")
        cloud = TaggedCloud(
            self.svcd._memory, self.svcd.clock, settings, Secret(token), project or "demo"
        )
        api = reader(self.svcd, project, token) if user else reader(self.svcd)
        self.said: list[str] = []

        def read() -> Rows:
            return rows or rows_of(api)

        return Search(cloud, read, self.svcd.clock, Rules(**rules), self.said.append, confirm)

    def ran(self, search: Search, delete: bool = True, wait_s: float = 180.0) -> bool:
        work = Deferred.fromCoroutine(search.run(delete, wait_s))
        self.outcome: Outcome = self.svcd.result_of(work)
        return not self.outcome.troubles

    def old(self) -> str:
        """A cluster that is older than what a search leaves alone."""
        cluster_id = self.create(workers=1)
        self.api.until_status(cluster_id, "Active")
        self.svcd.advance(700)
        return cluster_id

    def lost(self) -> str:
        """An old cluster that has no row any more."""
        cluster_id = self.old()
        self.lose(cluster_id)
        return cluster_id

    def foreign(self) -> None:
        """What somebody else of the tenant has, named as nearly like ours as can be."""
        server = {"name": "mine-worker-001", "imageRef": self.svcd.image_id, "flavorRef": "1",
                  "networks": [{"uuid": PRIVATE_NETWORK_ID}]}  # fmt: skip
        for metadata in ({}, {"svcd_cluster_id": "mine", "svcd_instance_id": "x"}):
            body = {"server": {**server, "metadata": metadata}}
            self.ask_cloud("POST", "/compute/v2.1/servers", body)
        volume = {"volume": {"name": "volume_mine-worker-001_1", "size": 1}}
        self.ask_cloud("POST", f"/volume/v3/{self.svcd.tenant}/volumes", volume)
        group = {"name": f"svcd-{ONE}", "description": "my own"}
        self.ask_cloud("POST", "/network/v2.0/security-groups", {"security_group": group})

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

        self.assertTrue(self.ran(self.search(), delete=False))
        self.assertEqual(self.said[-2], "9 found, 9 to be removed, 0 left alone")
        self.assertEqual(self.said[-1], "nothing was removed: run the command again with --delete")
        self.assertEqual(self.held() - before, of_lost)

        self.assertTrue(self.ran(self.search()))
        removed = [line for line in self.said if line.startswith("removed ")]
        self.assertEqual(len(removed), 9)
        self.assertEqual(self.held(), before)
        self.assertTrue(self.ran(self.search(), delete=False))
        self.assertEqual(self.said, ["0 found, 0 to be removed, 0 left alone"])
        self.assertEqual(self.api.cluster(kept)["status"], "Active")

    def test_a_question_that_is_not_answered_with_yes(self) -> None:
        """It names the objects that would go; nothing goes."""
        self.lost()
        before = self.held()
        asked: list[str] = []

        def no(names: Sequence[str]) -> None:
            asked.extend(names)
            raise CommandError("nothing was changed", REFUSED)

        with self.assertRaises(CommandError):
            self.ran(self.search(confirm=no))
        self.assertIn("server mine-worker-001", asked)
        self.assertEqual(self.held(), before)

    def test_a_removal_that_the_cloud_refuses(self) -> None:
        """It is told to people and to scripts, with the reason; the rest is removed."""
        cluster_id = self.lost()
        (victim, *_) = self.servers()
        text = '{"forbidden": {"code": 403, "message": "Policy does not allow it."}}'
        self.fault("compute", method="DELETE", path=victim.id, status=403, body=text)
        self.assertTrue(self.ran(self.search(), delete=False))
        (row,) = [each for each in self.outcome.body["orphans"] if each["id"] == victim.id]
        row.pop("created_at")
        self.assertEqual(
            row,
            {"kind": "server", "id": victim.id, "name": victim.name, "status": "ACTIVE",
             "cluster_id": cluster_id, "left_alone": None, "removed": False, "not_removed": None},
        )  # fmt: skip
        self.assertFalse(self.ran(self.search(), wait_s=20.0))
        ended = {each["id"]: each for each in self.outcome.body["orphans"]}
        self.assertIn("was answered 403", ended.pop(victim.id)["not_removed"])
        self.assertEqual({each["kind"] for each in ended.values() if each["removed"]}, {"server"})
        self.assertEqual(self.outcome.body["not_searched"], [])
        (told,) = [line for line in self.said if line.startswith("NOT removed server")]
        self.assertTrue(told.startswith(f"NOT removed server {victim.id} "), told)
        self.assertIn("Policy does not allow it.", told)
        self.assertEqual([server.id for server in self.servers()], [victim.id])

    def test_clusters_that_are_being_made_or_removed(self) -> None:
        """At no moment are they taken for leftovers."""
        self.begin(embedded__boot_s="3", embedded__delete_s="3")
        for moment in (0.0, 0.1, 1.0, 3.0, 3.2):
            cluster_id = self.create(workers=2, volumes=1, pool="public")
            self.svcd.advance(moment)
            self.assertTrue(self.ran(self.search(young_s=0.0), delete=False))
            self.assertEqual(self.said, ["0 found, 0 to be removed, 0 left alone"])
            self.api.delete(f"/clusters/{cluster_id}")
            self.svcd.advance(moment)
            self.assertTrue(self.ran(self.search(young_s=0.0)))
            self.assertEqual([line for line in self.said if "removed " in line[:12]], [])
            self.gone(cluster_id)

    def test_living_server_in_a_group_of_ours_keeps_its_port(self) -> None:
        """Somebody has put a server of his own into a lost cluster's security group."""
        self.lost()
        (group,) = [g for g in self.state.security_groups.values() if g.name.startswith("svcd-")]
        before = self.held()
        self.foreign()
        his = self.held() - before
        for port in self.state.ports.values():
            if port.id in his:
                self.state.ports.put(evolve(port, security_groups=(group.id,)))
        self.ran(self.search(), wait_s=10.0)
        self.assertEqual(his - self.held(), set())

    def test_nothing_is_judged_without_the_rows_of_the_project(self) -> None:
        """The token is for another project, or the daemon does not answer."""
        self.old()
        before = self.held()
        with self.assertRaisesRegex(CloudError, "the token is for project demo, not for other"):
            self.ran(self.search(project="other"))
        search = self.search()
        self.fault("store", status=500)
        self.assertRaises(CommandError, self.ran, search)
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
        self.assertTrue(self.ran(self.search()))
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
        cluster_id = self.old()
        (used,) = self.state.trusts.values()
        self.state.trusts.put(evolve(used, id="forgotten"))
        self.svcd.advance(700)
        alice = {"user": "alice", "project": "alpha"}
        self.assertTrue(self.ran(self.search(**alice)))
        self.assertEqual(self.said[-1], "1 found, 0 to be removed, 1 left alone")
        self.assertTrue(self.ran(self.search(**alice, ids=frozenset({"forgotten"}))))
        self.assertEqual([t.id for t in self.state.trusts.values()], [used.id])
        self.assertEqual(self.api.cluster(cluster_id)["status"], "Active")
