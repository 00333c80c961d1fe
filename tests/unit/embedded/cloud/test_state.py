"""The tables of the embedded cloud: their keys and order, also after a restart."""

from __future__ import annotations

from pathlib import Path

from twisted.trial.unittest import SynchronousTestCase

from svcd.embedded.cloud.objects import Names, selected
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

    def test_records_are_found_by_their_keys(self) -> None:
        """A record without the key is under none."""
        self.volumes.put(volume("a", server="s"))
        self.volumes.put(volume("b", "beta"))
        self.assertEqual((self.ids("project", "alpha"), self.ids("server", "s")), (["a"], ["a"]))
        self.assertEqual((self.ids("project", "beta"), self.ids("server", "t")), (["b"], []))
        self.assertEqual(self.volumes.count("project", "alpha"), 1)

    def test_a_changed_key_moves_the_record(self) -> None:
        """It is not under the former key any more."""
        self.volumes.put(volume("a", server="s"))
        self.volumes.put(volume("a", server="t"))
        self.assertEqual((self.ids("server", "s"), self.ids("server", "t")), ([], ["a"]))

    def test_a_replaced_record_keeps_its_place(self) -> None:
        """Under each key that does not change."""
        for each in ("a", "b", "c"):
            self.volumes.put(volume(each))
        self.volumes.put(volume("a", size=5, server="s"))
        self.assertEqual(self.ids("project", "alpha"), ["a", "b", "c"])

    def test_several_keys_of_a_record(self) -> None:
        """A group that a port leaves no longer leads to it."""
        ports = State(None).ports
        ports.put(port("1", "2"))
        ports.put(port("2"))
        self.assertEqual([each.id for each in ports.having("security_group", "2")], ["p"])
        self.assertEqual(ports.having("security_group", "1"), [])
        ports.remove("p")
        ports.remove("p")
        self.assertEqual((ports.count("security_group", "2"), len(ports)), (0, 0))

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


class NamesTests(SynchronousTestCase):
    def setUp(self) -> None:
        self.loaded = 0
        self.names = Names(self.load)

    def load(self, container: str) -> list[str]:
        self.loaded += 1
        return ["b/2", "a", "b/1", "c", "b/3"]

    def found(self, prefix: str = "", marker: str = "", delimiter: str = "") -> list[str]:
        names = self.names.of("many")
        return [name for name, _ in selected(names, prefix, marker, delimiter)]

    def test_names_are_in_order_and_loaded_once(self) -> None:
        self.assertEqual(self.found(), ["a", "b/1", "b/2", "b/3", "c"])
        self.assertEqual(self.found("b/"), ["b/1", "b/2", "b/3"])
        self.assertEqual(self.found(marker="b/2"), ["b/3", "c"])
        self.assertEqual(self.found("b/", "b/2"), ["b/3"])
        self.assertEqual(self.loaded, 1)

    def test_a_delimiter_skips_names_of_the_same_entry(self) -> None:
        """A folder follows the marker as a name does."""
        self.assertEqual(self.found(delimiter="/"), ["a", "b/", "c"])
        self.assertEqual(self.found(marker="b/", delimiter="/"), ["c"])
        self.assertEqual(self.found("b/", delimiter="/"), ["b/1", "b/2", "b/3"])

    def test_added_and_removed_names(self) -> None:
        """A name that is unknown, or not the one at its place, is not removed."""
        self.assertEqual(self.found("b/2"), ["b/2"])
        self.names.add("many", "b/10")
        self.names.remove("many", "b/2")
        self.names.remove("many", "b/2")
        self.names.remove("many", "z")
        self.assertEqual(self.found(), ["a", "b/1", "b/10", "b/3", "c"])

    def test_a_forgotten_container_is_loaded_again(self) -> None:
        """After its removal another one may have its name."""
        self.found()
        self.names.forget("many")
        self.found()
        self.assertEqual(self.loaded, 2)
