"""Deciding code reaches no reactor and no web framework, not even indirectly."""

import importlib
import re
import subprocess
import sys
from pathlib import Path

from twisted.trial.unittest import SynchronousTestCase

ROOMS = ("svcd.model", "svcd.provisioning.decide", "svcd.workflow.decide")
"""Every module of these packages."""
PURE = (
    "svcd.errors",
    "svcd.provisioning.distributions.fake",
    "svcd.provisioning.distributions.vanilla",
)
FORBIDDEN = ("twisted.internet.reactor", "twisted.web", "twisted.conch", "klein", "treq")

_PROGRAM = """
import importlib, pkgutil, sys
names = [sys.argv[1]]
if sys.argv[2]:
    package = importlib.import_module(sys.argv[1])
    names += [each.name for each in pkgutil.walk_packages(package.__path__, sys.argv[1] + ".")]
for name in names:
    importlib.import_module(name)
    reached = [each for each in sys.argv[3:] if each in sys.modules]
    if reached:
        print(name, *reached)
        break
"""


class PurityTests(SynchronousTestCase):
    def test_pure_modules_bring_neither_reactor_nor_web(self) -> None:
        """Each room, and each module, in an interpreter of its own."""
        running = {
            module: subprocess.Popen(
                [sys.executable, "-c", _PROGRAM, module, whole, *FORBIDDEN],
                stdout=subprocess.PIPE,
                text=True,
            )
            for module, whole in (*((room, "whole") for room in ROOMS), *((m, "") for m in PURE))
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
