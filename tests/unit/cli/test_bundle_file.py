"""What `svcd apply -f FILE` reads."""

from __future__ import annotations

from twisted.trial.unittest import SynchronousTestCase

from svcd.cli.exits import CommandError
from tests.unit.cli.test_bundle import read


class ParseTests(SynchronousTestCase):
    def refusal(self, text: bytes) -> str:
        return str(self.assertRaises(CommandError, read, text))

    def test_bundle(self) -> None:
        """Each object with its place, and variables of the environment filled in."""
        items = read()
        self.assertEqual(
            [(each.title, each.where) for each in items[2:5]],
            [
                ("source in", "b.yaml: data_sources[0]"),
                ("binary count.pig", "b.yaml: job_binaries[0]"),
                ("job count", "b.yaml: jobs[0]"),
            ],
        )
        self.assertEqual(items[2].body["credentials"], {"user": "demo", "password": "geheim"})
        self.assertNotIn("geheim", repr(items))

    def test_several_documents(self) -> None:
        """They are one bundle; an empty one is nothing."""
        self.assertEqual(len(read(b"---\n---\njobs: [{name: a}]\n---\njobs: [{name: b}]\n")), 2)

    def test_refusals(self) -> None:
        """Each says the place and what to write."""
        for text, expected in (
            (b"a: [", "b.yaml is not valid YAML or JSON in line 1"),
            (b"- 1", "b.yaml: expected lists of node_group_templates, "),
            (b"job: []", "b.yaml: job: unknown field; did you mean jobs?"),
            (b"jobs: {}", "b.yaml: jobs must be a list"),
            (b"jobs: [{type: Pig}]", "b.yaml: jobs[0].name must be a text"),
            (b"jobs: [{name: a, mian: []}]", "b.yaml: jobs[0].mian: unknown field; did you mean"),
            (
                b"clusters: [{name: a, default_image_id: x}]",
                "b.yaml: clusters[0].default_image_id: unknown field; did you mean image?",
            ),
            (
                b"clusters: [{name: a, engine_version: 0.1}]",
                "b.yaml: clusters[0].engine_version: 0.1 is no text in YAML: put it into",
            ),
            (b"jobs: [{name: a, name: b}]", "line 1: the key name is given twice"),
            (b"jobs: [{1: a}]", "the key 1 is no text"),
            (b"clusters: [{name: a, anti_affinity: [2026-01-01]}]", "is no text in YAML"),
            (b"job_binaries: [{name: a}]", "give one of file, content and url"),
            (b"data_sources: [{name: a, credentials: {user: {env: U}}}]", "set the variable U of"),
            (b"data_sources: [{name: a, url: {env: NO}}]", "url.env must be a text"),
        ):
            self.assertIn(expected, self.refusal(text))

    def test_file_that_grows_by_aliases(self) -> None:
        """It is refused before it is copied."""
        lines = [b"a0: &a0 [1,1,1,1,1,1,1,1,1]"]
        lines += [
            b"a%d: &a%d [%s]" % (n, n, b",".join([b"*a%d" % (n - 1)] * 9)) for n in range(1, 9)
        ]
        self.assertIn("more than 100000 values", self.refusal(b"\n".join(lines)))
