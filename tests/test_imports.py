"""Deciding code reaches no reactor and no web framework, not even indirectly."""

import importlib
import re
import subprocess
import sys
from pathlib import Path

from twisted.trial.unittest import SynchronousTestCase

PURE = (
    "svcd.model.cluster",
    "svcd.model.convert",
    "svcd.model.failures",
    "svcd.model.marks",
    "svcd.model.redaction",
    "svcd.model.requests",
    "svcd.model.shapes",
    "svcd.model.wire",
    "svcd.errors",
    "svcd.provisioning.decide.outcomes",
    "svcd.provisioning.checks",
    "svcd.provisioning.health",
    "svcd.provisioning.lifecycle",
    "svcd.provisioning.planner",
    "svcd.provisioning.rules",
    "svcd.provisioning.stamps",
    "svcd.provisioning.story",
    "svcd.provisioning.distributions.fake",
    "svcd.provisioning.distributions.vanilla",
    "svcd.workflow.addresses",
    "svcd.workflow.causes",
    "svcd.workflow.document",
    "svcd.workflow.failures",
    "svcd.workflow.hints",
    "svcd.workflow.lifecycle",
    "svcd.workflow.masking",
    "svcd.workflow.stamps",
    "svcd.workflow.stuck",
    "svcd.workflow.unfit",
)
FORBIDDEN = ("twisted.internet.reactor", "twisted.web", "twisted.conch", "klein", "treq")

_PROGRAM = """
import importlib, sys
importlib.import_module(sys.argv[1])
print(" ".join(m for m in sys.argv[2:] if m in sys.modules))
"""


class PurityTests(SynchronousTestCase):
    def test_pure_modules_bring_neither_reactor_nor_web(self) -> None:
        """Each in an interpreter of its own."""
        running = {
            module: subprocess.Popen(
                [sys.executable, "-c", _PROGRAM, module, *FORBIDDEN],
                stdout=subprocess.PIPE,
                text=True,
            )
            for module in PURE
        }
        reached = {
            module: each.communicate(timeout=60)[0].strip() for module, each in running.items()
        }
        self.assertEqual({m: r for m, r in reached.items() if r}, {})
        self.assertEqual([m for m, each in running.items() if each.returncode], [])


class PublicNamesTests(SynchronousTestCase):
    def test_http_clients_use_public_names_of_the_libraries(self) -> None:
        """Neither a private module nor a private name of one is imported."""
        clients = Path(next(iter(importlib.import_module("svcd.clients").__path__)))
        private = re.compile(
            r"^\s*(from|import) (twisted|treq|hyperlink)[\w.]*(\._| import .*\b_)", re.MULTILINE
        )
        found = {
            file.name: match[0].strip()
            for file in clients.glob("*.py")
            if (match := private.search(file.read_text(encoding="utf-8")))
        }
        self.assertEqual(found, {})
