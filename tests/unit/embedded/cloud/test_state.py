"""The tables of the embedded cloud: their keys and order, also after a restart."""

from __future__ import annotations

from pathlib import Path

from twisted.trial.unittest import SynchronousTestCase

from svcd.embedded.cloud.records import Port, Volume
from svcd.embedded.cloud.state import State


def volume(id_: str, project: str = "alpha", size: int = 1, server: str | None = None) -> Volume:
    return Volume(
        id=id_,
        name="",
        project_id=project,
        user_id="alice",
        size_gib=size,
        status="available",
        metadata={},
        server_id=server,
        device=None,
        created_at=0.0,
        updated_at=0.0,
        due_at=0.0,
    )


def port(*groups: str) -> Port:
    return Port(
        id="p",
        project_id="alpha",
        network_id="n",
        device_id="s",
        address="127.1.0.10",
        mac="",
        security_groups=groups,
    )


class TableTests(SynchronousTestCase):
    def setUp(self) -> None:
        self.volumes = State(None).volumes

    def ids(self, name: str, key: str) -> list[str]:
        return [each.id for each in self.volumes.having(name, key)]

    def test_a_replaced_record_keeps_its_place(self) -> None:
        """Under each key that does not change."""
        for each in ("a", "b", "c"):
            self.volumes.put(volume(each))
        self.volumes.put(volume("a", size=5, server="s"))
        self.assertEqual(self.ids("project", "alpha"), ["a", "b", "c"])

    def test_a_restart_finds_records_by_their_keys_again(self) -> None:
        """From the records on the disk."""
        folder = Path(self.mktemp())
        state = State(folder)
        state.volumes.put(volume("a", size=3, server="s"))
        state.volumes.put(volume("b", size=4))
        state.volumes.remove("b")
        state.close()
        state = State(folder)
        self.addCleanup(state.close)
        self.volumes = state.volumes
        self.assertEqual((self.ids("project", "alpha"), self.ids("server", "s")), (["a"], ["a"]))
