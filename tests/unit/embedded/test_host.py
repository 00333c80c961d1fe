"""The embedded cloud on a socket: its passwords, and the requests of browsers."""

from __future__ import annotations

import json
from pathlib import Path
from typing import Any

from attrs import evolve
from twisted.internet import reactor as global_reactor  # noqa: TID251 - sockets
from twisted.trial.unittest import TestCase

from svcd.embedded.host import EmbeddedHost, machines_for, memory_bytes
from svcd.runtime.state_dir import StateFolderError
from svcd.settings import CloudSettings, Settings
from tests.support.processes import send

reactor: Any = global_reactor


class HostTests(TestCase):
    def host(self, folder: Path, **embedded: Any) -> EmbeddedHost:
        """A host of `folder`."""
        settings = evolve(Settings(), cloud=CloudSettings(listen="tcp:127.0.0.1:0"))
        settings = evolve(settings, embedded=evolve(settings.embedded, **embedded))
        return EmbeddedHost(reactor, settings, folder, lambda _: "", admin=True)

    async def users(self, folder: Path) -> dict[str, str]:
        host = self.host(folder)
        users = {u.name: u.password for u in host.cloud.core.users.values()}
        await host.stop()
        return users

    async def test_each_folder_has_passwords_of_its_own(self) -> None:
        """Of all users, different ones, the same after a restart, and for the owner alone."""
        folder, other = Path(self.mktemp()).absolute(), Path(self.mktemp()).absolute()
        users = await self.users(folder)
        self.assertEqual(set(users), {"svcd", "alice", "bob", "carol", "dave", "demo"})
        again = await self.users(folder)
        self.assertEqual(users, again)
        others = await self.users(other)
        self.assertEqual(len({*users.values(), *others.values()}), 12)
        self.assertGreaterEqual(min(map(len, users.values())), 32)
        file = folder / "cloud" / "passwords.json"
        self.assertEqual(json.loads(file.read_text()), users)
        self.assertEqual(file.stat().st_mode & 0o777, 0o600)
        file.write_text("")
        with self.assertRaises(StateFolderError) as raised:
            await self.users(folder)
        self.assertIn(f"{file} is damaged", str(raised.exception))

    async def test_number_of_machines_follows_the_memory(self) -> None:
        """Unless the setting has another one."""
        self.assertEqual(machines_for(24_105 << 20), 47)
        self.assertEqual([machines_for(n << 20) for n in (100, 1023, 1024)], [1, 1, 2])
        for quota, expected in ((0, machines_for(memory_bytes())), (7, 7)):
            host = self.host(Path(self.mktemp()).absolute(), quota_instances=quota)
            self.assertEqual(host.cloud.core.limit("demo", "instances"), expected)
            await host.stop()

    async def test_names_are_no_passwords_and_pages_are_refused(self) -> None:
        """401 for user demo with password demo; 403 for a rebound name and a foreign page."""
        host = self.host(Path(self.mktemp()).absolute())
        self.addCleanup(host.stop)
        await host.start()
        told = host.endpoints()
        self.assertEqual(await self.login(told["identity"], told["password"]), 201)
        self.assertEqual(await self.login(told["identity"], "demo"), 401)
        for name, value in (
            ("Host", "evil.example"),
            ("Origin", "https://evil.example"),
            ("Sec-Fetch-Site", "cross-site"),
        ):
            status = await self.login(told["identity"], told["password"], {name: value})
            self.assertEqual(status, 403, name)

    async def login(self, identity: str, password: str, headers: Any = None) -> int:
        user = {"name": "demo", "domain": {"id": "default"}, "password": password}
        auth = {"identity": {"methods": ["password"], "password": {"user": user}}}
        body = {"auth": auth}
        reply = await send("POST", f"{identity}/auth/tokens", json=body, headers=headers)
        return int(reply.status)
