"""What `svcd apply` does, given what is there."""

from __future__ import annotations

from twisted.trial.unittest import SynchronousTestCase

from svcd.cli.bundle import There
from svcd.cli.bundle_plan import Change, Step, plan
from svcd.cli.job_files import Unusable
from tests.unit.cli.test_bundle import ALL, CLUSTER, IMAGES, changes, read


class PlanTests(SynchronousTestCase):
    def test_new_project(self) -> None:
        """All is made, what others need first."""
        steps = plan(list(reversed(read())), There(images=IMAGES), {"count.pig": "d1"})
        self.assertEqual(
            changes(steps),
            [
                ("node group template worker", "create"),
                ("template small", "create"),
                ("source in", "create"),
                ("binary count.pig", "create"),
                ("job count", "create"),
                ("cluster first", "create"),
            ],
        )

    def test_applied_bundle(self) -> None:
        """Nothing is left to do."""
        steps = plan(read(), ALL, {"count.pig": "d1"})
        self.assertEqual({each.change for each in steps}, {Change.NONE})

    def test_half_applied_bundle(self) -> None:
        """The rest is made."""
        rows = {k: v for k, v in ALL.rows.items() if k not in ("jobs", "clusters")}
        steps = plan(read(), There(rows=rows, images=IMAGES, digests=ALL.digests), {})
        self.assertEqual(
            [each for each in changes(steps) if each[1] != "unchanged"],
            [("job count", "create"), ("cluster first", "create")],
        )

    def test_cluster_is_scaled(self) -> None:
        """The only change that the API makes: other sizes, and new groups."""
        groups = b"[{name: worker, count: 5}, {name: more, count: 1}]"
        text = b"clusters: [{name: first, node_groups: %s}]" % groups
        (step,) = plan(read(text), ALL, {})
        self.assertEqual((step.change, step.id, step.sizes), (Change.SCALE, "c1", {"worker": 5}))
        self.assertEqual(step.texts, ["group worker: 2 -> 5", "group more: new, 1 machines"])
        self.assertEqual(step.groups, [{"name": "more", "count": 1}])

    def test_cluster_without_a_future(self) -> None:
        """One that goes, and one that is broken, are not as the bundle wants them."""
        for status, change, text in (
            ("Deleting", Change.REFUSED, "it is being deleted: wait for its end (svcd cluster rm"),
            ("Error", Change.FAILED, "it is in Error: svcd why first shows the reason"),
        ):
            rows = {**ALL.rows, "clusters": [{**CLUSTER, "status": status}]}
            for body in (
                b"{name: first}",
                b"{name: first, node_groups: [{name: worker, count: 5}]}",
            ):
                there = There(rows=rows, images=IMAGES)
                (step,) = plan(read(b"clusters: [%s]" % body), there, {})
                self.assertEqual(step.change, change)
                self.assertIn(text, step.texts[-1])

    def test_names_of_clusters_have_no_case(self) -> None:
        """The API would refuse the second one."""
        with self.assertRaises(Unusable) as raised:
            plan(read(b"clusters: [{name: new}, {name: NEW}]"), ALL, {})
        self.assertIn("clusters[1]: cluster NEW is in the bundle twice", str(raised.exception))

    def refused(self, text: bytes, digests: dict[str, str] | None = None) -> Step:
        (step,) = plan(read(text, W="new"), ALL, digests or {})
        self.assertEqual(step.change, Change.REFUSED)
        return step

    def test_change_that_the_api_cannot_make(self) -> None:
        """What differs, and what to do."""
        step = self.refused(b"data_sources: [{name: in, url: 'objstore://c/other'}]")
        self.assertEqual(
            step.texts,
            [
                "url: 'objstore://c/in' -> 'objstore://c/other'",
                "the API cannot change it: give it another name, or remove it with svcd source rm"
                " in and apply again",
            ],
        )
        step = self.refused(b"jobs: [{name: count, mains: [count.pig], libs: [count.pig]}]")
        self.assertEqual(step.texts[0], "libs: None -> ['count.pig']")
        step = self.refused(b"job_binaries: [{name: count.pig, content: x}]", {"count.pig": "d2"})
        self.assertEqual(step.texts[0], "another content")

    def test_secrets_are_not_shown(self) -> None:
        """A password that differs is named, and neither value is."""
        step = self.refused(b"data_sources: [{name: in, credentials: {password: {env: W}}}]")
        self.assertEqual(step.texts[0], "credentials.password")

    def test_refusals(self) -> None:
        """Missing objects and images, and an object that is there twice."""
        for text, expected in (
            (b"jobs: [{name: a, mains: [x]}]", "b.yaml: jobs[0]: there is no binary x in the bun"),
            (b"clusters: [{name: a, image: x}]", "there is no registered image x, or several"),
            (b"jobs: [{name: a}, {name: a}]", "b.yaml: jobs[1]: job a is in the bundle twice"),
        ):
            error = self.assertRaises(Unusable, plan, read(text), ALL, {})
            self.assertIn(expected, str(error))
