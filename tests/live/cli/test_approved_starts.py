"""What `svcd doctor` approves starts, what it refuses does not: both on one table of settings."""

from __future__ import annotations

import shutil
import socket
import tempfile
from collections.abc import Callable, Coroutine, Sequence
from functools import partial
from pathlib import Path
from typing import Any, Final

from svcd.cli.doctor import examine
from svcd.cli.finding import Finding
from svcd.runtime.tasks import gather
from svcd.settings import load
from tests.support.processes import Daemon, DaemonCase

# {folder}: a folder that exists. {taken}: a port in use. {file}: a file with nonsense.
_STARTS: Final[tuple[dict[str, str], ...]] = (
    {},
    {"server.listen": "tcp:port=0:interface=127.0.0.1", "server.admin_listen": "tcp:127.0.0.1:0"},
    {"server.listen": "unix:{folder}/svcd.sock:mode=600"},
    {"log.audit": "{folder}/audit.log", "server.seal_key": "{folder}/key"},
    {"database.url": "sqlite:///{folder}/svcd.sqlite"},
)
_FAILS: Final[tuple[dict[str, str], ...]] = (
    {"server.listen": "8386"},
    {"server.listen": "tcp:127.0.0.1:70000"},
    {"server.listen": "tcp:127.0.0.1:{taken}"},
    {"server.listen": "tcp:127.0.0.1:no"},
    {"server.listen": "nothing:127.0.0.1:0"},
    {"server.listen": "unix:{folder}/none/svcd.sock:mode=600"},
    {"server.listen": "unix:{file}:mode=600"},
    {"server.listen": "unix:{folder}/" + "x" * 100 + ":mode=600"},
    {"server.listen": "ssl:0:privateKey=/none.pem:interface=127.0.0.1"},
    {"server.admin_listen": "tcp:127.0.0.1:"},
    {"cloud.listen": "tcp"},
    {"plugins.enabled": "fake,nope"},
    {"log.audit": "{folder}/none/audit.log"},
    {"server.seal_key": "{file}"},
    {"server.seal_key": "{file}/key"},
    {"database.url": "sqlite:///{folder}/none/svcd.sqlite"},
    {"database.url": "sqlite:///{file}"},
    {"server.state_dir": "{file}"},
)


class TableTests(DaemonCase):
    def setUp(self) -> None:
        taken = socket.socket()
        self.addCleanup(taken.close)
        taken.bind(("127.0.0.1", 0))
        taken.listen()
        self.taken = taken.getsockname()[1]

    def prepared(self, row: dict[str, str]) -> tuple[Daemon, list[Finding]]:
        """A daemon with the settings of `row`, and the findings that are not good."""
        folder = Path(tempfile.mkdtemp())  # short, for the path of a socket
        self.addCleanup(shutil.rmtree, folder)
        file = folder / "nonsense"
        file.touch(0o600)
        file.write_text("nonsense" * 100)
        daemon = self.daemon()
        daemon.settings |= {
            name: value.format(folder=folder, file=file, taken=self.taken)
            for name, value in row.items()
        }
        flags = [f"{name}={value}" for name, value in daemon.settings.items()]
        findings = examine(load(None, {}, flags).settings)
        return daemon, [each for each in findings if not each.good and not each.warning]

    async def test_settings_that_the_doctor_approves_start(self) -> None:
        """Each row, several daemons at once."""
        await self.all(self.starts, _STARTS)

    async def test_settings_that_the_doctor_refuses_do_not_start(self) -> None:
        """Each row has a remedy, and the daemon ends with one line."""
        await self.all(self.fails, _FAILS)

    async def all(
        self,
        check: Callable[[dict[str, str]], Coroutine[Any, Any, None]],
        table: Sequence[dict[str, str]],
    ) -> None:
        for result in await gather([partial(check, row) for row in table], 4):
            if isinstance(result, BaseException):
                raise result

    async def starts(self, row: dict[str, str]) -> None:
        daemon, refused = self.prepared(row)
        self.assertEqual(refused, [], row)
        await daemon.start()
        self.assertEqual((await daemon.stop()).code, 0, row)

    async def fails(self, row: dict[str, str]) -> None:
        daemon, refused = self.prepared(row)
        self.assertNotEqual(refused, [], row)
        for each in refused:
            self.assertTrue(each.remedy, each)
        ended = await daemon.spawn().end()
        self.assertIn(ended.code, (1, 2), (row, ended))
        self.assertEqual(len(ended.err.splitlines()), 1, (row, ended.err))
