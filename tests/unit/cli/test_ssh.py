"""`svcd cluster ssh`: the machine, the words after `--`, and the embedded cloud's key."""

from __future__ import annotations

import json
import os
from pathlib import Path

import click
from twisted.trial.unittest import SynchronousTestCase

from svcd.cli import ssh
from svcd.cli.exits import NOT_FOUND, CommandError
from svcd.cli.session import Session

MACHINES = [{"instance_name": f"c-{name}"} for name in ("master-001", "worker-001", "worker-002")]


class MachineTests(SynchronousTestCase):
    def test_whole_names_and_their_ends(self) -> None:
        """Without one, the first."""
        given = (None, "c-worker-002", "worker-001", "master")
        found = [ssh.chosen(MACHINES, each, "c")["instance_name"] for each in given]
        self.assertEqual(found, ["c-master-001", "c-worker-002", "c-worker-001", "c-master-001"])

    def test_unknown_machines(self) -> None:
        for machines, given, said in (
            (MACHINES, "worker", "it is the beginning of c-worker-001, c-worker-002"),
            (MACHINES, "c-worker-003", "did you mean c-worker-00"),
            (MACHINES, "zzz", "its machines are c-master-001, "),
            ([], None, "has no machines"),
        ):
            with self.assertRaises(CommandError) as raised:
                ssh.chosen(machines, given, "c")
            self.assertEqual(raised.exception.code, NOT_FOUND)
            self.assertIn(said, str(raised.exception))


class WordsTests(SynchronousTestCase):
    def parsed(self, *words: str) -> tuple[dict[str, object], tuple[str, ...]]:
        ctx = ssh.command.make_context("ssh", list(words))
        own = {name: ctx.params[name] for name in ("cluster", "machine")}
        return own, ctx.meta[ssh.__name__]

    def test_what_stands_after_the_dashes_is_the_command(self) -> None:
        """It may have options, and dashes again."""
        self.assertEqual(self.parsed("c"), ({"cluster": "c", "machine": None}, ()))
        self.assertEqual(
            self.parsed("c", "--", "df", "-h", "--", "/"),
            ({"cluster": "c", "machine": None}, ("df", "-h", "--", "/")),
        )
        self.assertEqual(
            self.parsed("c", "m", "-q", "--", "ls"), ({"cluster": "c", "machine": "m"}, ("ls",))
        )
        self.assertRaises(click.UsageError, self.parsed, "c", "m", "ls")


class KeyTests(SynchronousTestCase):
    def test_the_key_of_the_embedded_cloud(self) -> None:
        """Only of its own key pair, and only when the daemon was found by its state folder."""
        self.patch(os, "environ", {})
        state = Path(self.mktemp())
        key = state / "cloud" / "keys" / "demo"
        key.parent.mkdir(parents=True)
        key.write_text("key")
        session = Session(state_dir=str(state))
        self.assertIsNone(session.private_key("demo"))
        (state / "endpoints.json").write_text(json.dumps({"api": "http://a"}))
        session = Session(state_dir=str(state))
        self.assertEqual(session.private_key("demo"), key)
        for other in ("mine", "../keys", "", None):
            self.assertIsNone(session.private_key(other))
        self.assertIsNone(Session(state_dir=str(state), api="http://b").private_key("demo"))
