"""The command that the daemon's start shows."""

from __future__ import annotations

from pathlib import Path

from twisted.trial.unittest import SynchronousTestCase

from svcd.runtime.first_command import first_command
from svcd.settings import load

BASE = "http://127.0.0.1:8386"
HERE = Path("/home/ann/svcd")
CREATE = "cluster create first --plugin vanilla --workers 2 --wait"


class FirstCommandTests(SynchronousTestCase):
    """It suits the settings, and the folder of the other shell does not matter."""

    def command(
        self, *flags: str, activate: Path | None = HERE / ".venv/bin/activate", here: Path = HERE
    ) -> str:
        return first_command(BASE, load(None, {}, flags).settings, activate, here)

    def test_make_run(self) -> None:
        """The folder of the clone, whose environment is there."""
        wanted = f"cd /home/ann/svcd; . .venv/bin/activate; svcd {CREATE}"
        self.assertEqual(self.command(), wanted)
        self.assertEqual(self.command("server.state_dir=state"), wanted)
        self.assertEqual(self.command("server.state_dir=/home/ann/svcd/state"), wanted)

    def test_another_state_folder(self) -> None:
        """Its whole path, and that of the environment."""
        for folder, path in (("/tmp/a b", "'/tmp/a b'"), ("second", "/home/ann/svcd/second")):
            self.assertEqual(
                self.command(f"server.state_dir={folder}"),
                f". /home/ann/svcd/.venv/bin/activate; svcd --state-dir {path} {CREATE}",
            )

    def test_a_real_cloud(self) -> None:
        """It needs a login, for which the caller names a cloud of clouds.yaml."""
        self.assertEqual(
            self.command("auth.mode=keystone", "cloud.kind=openstack", activate=None),
            f"svcd --api http://127.0.0.1:8386 --os-cloud NAME {CREATE}",
        )
