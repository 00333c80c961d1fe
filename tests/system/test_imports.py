"""Deciding code reaches no reactor and no web framework, not even indirectly."""

import importlib
import re
import subprocess
import sys
from pathlib import Path

from twisted.trial.unittest import SynchronousTestCase

from svcd.cli.main import COMMANDS

ROOMS = ("svcd.model", "svcd.provisioning.decide", "svcd.workflow.decide")
"""Every module of these packages."""
PURE = (
    "svcd.errors",
    "svcd.provisioning.distributions.fake",
    "svcd.provisioning.distributions.vanilla",
)
FORBIDDEN = ("twisted.internet.reactor", "twisted.web", "twisted.conch", "klein", "treq")

NO_COMMAND = ("twisted", "OpenSSL", "cryptography", "msgspec", "svcd.settings", "svcd.store")
"""What commands of the API never import."""
OPERATORS = ("image", "config", "doctor", "backup", "restore", "db", "keys", "orphans", "demo")
"""The operator's commands, some of which work with the daemon's own code."""

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


class ImportsCase(SynchronousTestCase):
    """Looks at what a program imports."""

    def imported(self, program: str) -> list[str]:
        """The first parts of the names of all modules that `program` imports."""
        line = f"import sys\n{program}\nprint(*sorted({{n for n in sys.modules}}), file=sys.stderr)"
        done = subprocess.run(
            [sys.executable, "-c", line],
            stdout=subprocess.DEVNULL,
            stderr=subprocess.PIPE,
            text=True,
            check=True,
            timeout=60,
        )
        return done.stderr.split()


class CommandTests(ImportsCase):
    """What the commands of the API import: a person waits for it at each of them."""

    def test_no_command_of_the_api_brings_the_daemon(self) -> None:
        """All their modules in one interpreter."""
        modules = [
            f"import {place.partition(':')[0]}"
            for name, (place, _) in COMMANDS.items()
            if name not in OPERATORS
        ]
        modules += ["import svcd.cli.create, svcd.cli.ssh, svcd.cli.waiting, svcd.cli.login"]
        found = self.imported("\n".join(modules))
        self.assertEqual([name for name in NO_COMMAND if name in found], [])
        self.assertIn("svcd.cli.clusters", found)

    def test_help_and_lists_bring_even_less(self) -> None:
        """Neither a module of a command, nor attrs, YAML or rich."""
        program = "from svcd.cli.main import main\nmain(['--help'])"
        found = self.imported(program)
        heavy = [*NO_COMMAND, "attr", "yaml", "rich", "http.client", "svcd.cli.clusters"]
        self.assertEqual([name for name in heavy if name in found], [])
        found = self.imported(
            program.replace("'--help'", "'cluster', 'ls', '--state-dir', '/nowhere'")
        )
        heavy = [*NO_COMMAND, "attr", "yaml", "rich", "keystoneauth1", "svcd.model.redaction"]
        self.assertEqual([name for name in heavy if name in found], [])


class StartTests(ImportsCase):
    """What a daemon and a test import only when they need it."""

    def test_a_start_brings_no_module_for_single_requests(self) -> None:
        """YAML takes longer than most libraries, and few requests need it."""
        found = self.imported("import svcd.testing, svcd.service, svcd.tap")
        self.assertNotIn("yaml", found)
        self.assertIn("svcd.model.convert", found)

    def test_a_test_brings_no_machine(self) -> None:
        """A FakeService has neither SSH nor processes, and builds no image."""
        found = self.imported("import svcd.testing, svcd.service")
        heavy = (
            *("twisted.conch", "svcd.clients.ssh", "svcd.embedded.machines", "svcd.embedded.host"),
            *("svcd.provisioning.distributions.vanilla.image", "tarfile", "argparse", "tomllib"),
        )
        self.assertEqual([name for name in heavy if name in found], [])

    def test_a_daemon_brings_no_cloud(self) -> None:
        """The embedded one comes with `cloud.kind=embedded`."""
        found = self.imported("import svcd.service, svcd.tap")
        self.assertEqual([name for name in found if name.startswith("svcd.embedded")], [])
        self.assertIn("svcd.clients.cloud", found)


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
