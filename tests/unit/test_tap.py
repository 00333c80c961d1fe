"""The flags of `twistd svcd`."""

from __future__ import annotations

import subprocess
import sys
from pathlib import Path

from twisted.application.service import IServiceMaker
from twisted.plugin import IPlugin, getPlugins
from twisted.trial.unittest import SynchronousTestCase

from svcd import tap, tap_cloud
from svcd.settings import schema


class OptionsTests(SynchronousTestCase):
    def parsed(self, *flags: str) -> tap.Options:
        options = tap.Options()
        options.parseOptions(flags)
        return options

    def test_flags_and_environment_and_file_make_the_settings(self) -> None:
        """`tests.unit.test_settings` has which of them wins."""
        file = Path(self.mktemp())
        file.write_text("[server]\ndrain_s = 1\n")
        self.patch(tap.os, "environ", {"SVCD_EMBEDDED_TENANT": "acme"})
        loaded = self.parsed("--config", str(file), "--set", "server.listen=tcp:localhost:2").loaded
        assert loaded is not None
        given = loaded.settings
        self.assertEqual(
            (given.server.listen, given.server.drain_s, given.embedded.tenant),
            ("tcp:localhost:2", 1.0, "acme"),
        )

    def test_help_lists_every_setting_with_default_and_meaning(self) -> None:
        """In the order of the sections; secrets have no default to show but the demo's."""
        text = tap.Options().getUsage()
        keys = [line.split()[0] for line in text.splitlines() if line.startswith("  ")]
        self.assertEqual([k for k in keys if "." in k], list(schema()))
        self.assertIn("endpoint of the API [tcp:127.0.0.1:8386]", text)

    def test_wrong_settings_end_with_2(self) -> None:
        """Both of the parser's and of the settings'."""
        for flags in (("--nope",), ("--set", "a.b=c"), ("--set", "plugins.enabled=")):
            with self.assertRaises(SystemExit) as raised:
                self.parsed(*flags)
            self.assertEqual(raised.exception.code, 2)

    def printed(self, code: str) -> list[str]:
        """The words that a Python program prints."""
        done = subprocess.run(
            [sys.executable, "-c", code], capture_output=True, text=True, timeout=60, check=True
        )
        return done.stdout.split()

    def test_help_is_quick(self) -> None:
        """The rooms are not imported for it: that takes most of the time of a start."""
        code = "import sys, svcd.tap, svcd.tap_cloud; print('svcd.service' in sys.modules)"
        self.assertEqual(self.printed(code), ["False"])

    def test_a_daemon_keeps_no_source_of_generated_methods(self) -> None:
        """Nothing but a debugger reads it."""
        code = (
            "import linecache, svcd.tap as tap, svcd.service as service\n"
            "def kept(): return sum(name.startswith('<attrs') for name in linecache.cache)\n"
            "before = kept()\n"
            "tap.make(tap.Options(), service.DaemonService)\n"
            "print(before > 200, kept())"
        )
        self.assertEqual(self.printed(code), ["True", "0"])

    def test_the_imports_of_a_daemon_make_no_full_collection(self) -> None:
        """Nor do collections at the start walk what the modules have made."""
        code = (
            "import gc, svcd.tap as tap\n"
            "full = []\n"
            "gc.callbacks.append(lambda phase, info: full.append(info['generation'] == 2))\n"
            "before = gc.get_threshold()\n"
            "tap.makeService(tap.Options())\n"
            "frozen, walked = gc.get_freeze_count(), len(gc.get_objects())\n"
            "print(any(full), gc.get_threshold() == before, frozen > walked)"
        )
        self.assertEqual(self.printed(code), ["False", "True", "True"])

    def test_plugins_are_found(self) -> None:
        """Both programs, with the modules that make them."""
        found = {
            p.tapname: p.module  # type: ignore[attr-defined]
            for p in getPlugins(IServiceMaker)
            if IPlugin.providedBy(p) and getattr(p, "tapname", "").startswith("svcd")
        }
        self.assertEqual(found, {"svcd": tap.__name__, "svcd-cloud": tap_cloud.__name__})
