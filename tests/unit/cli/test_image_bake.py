"""`svcd image bake` against the embedded cloud and machines with a scripted shell."""

from __future__ import annotations

import io
import json
import tarfile
from collections.abc import Callable
from pathlib import Path
from typing import Any

from attrs import evolve
from twisted.internet.defer import Deferred
from twisted.python.failure import Failure
from twisted.trial.unittest import SynchronousTestCase

from svcd.cli.exits import INTERRUPTED, REFUSED, UNREACHABLE, CommandError
from svcd.cli.image_bake import Bake
from svcd.cli.image_bake_objects import Services
from svcd.cli.image_bake_plan import Wanted, object_name
from svcd.clients.cloud import cloud_error
from svcd.clients.compute import Compute
from svcd.clients.http import HttpClient
from svcd.clients.identity import Keystone
from svcd.clients.image import Images
from svcd.clients.network import Networks
from svcd.clients.rest import Rest
from svcd.clients.sessions import CallerSession
from svcd.embedded.faults import Effect, FaultRule
from svcd.embedded.lifeline import Lifeline
from svcd.embedded.scripted import Said, ScriptedRemote
from svcd.model.cloud import Image
from svcd.ports.machines import Host
from svcd.provisioning.distributions.vanilla import server_image
from svcd.settings import CloudSettings, Embedded
from tests.unit.embedded.cloud.rig import ORIGIN, Rig

NAME = "baked-3.5.0"
OBJECT = object_name(NAME)


class _Screen:
    def __init__(self) -> None:
        self.notes: list[str] = []

    def note(self, text: str) -> None:
        self.notes.append(text)

    def draw(self, text: str) -> None:
        """Nothing: this is no terminal."""


class BakeCase(SynchronousTestCase):
    """A cloud of its own, a small software tree, and what a bake of alice leaves there."""

    def setUp(self) -> None:
        self.rig = Rig(Embedded(boot_s=20.0, delete_s=1.0, list_lag_s=0.4))
        self.remote = ScriptedRemote(self.rig.clock, self.rig.faults)
        self.screen = _Screen()
        self.tree = Path(self.mktemp())
        (self.tree / "bin").mkdir(parents=True)
        (self.tree / "bin" / "hadoop").write_text("#!/bin/sh\n")
        (self.tree / "bin" / "hadoop").chmod(0o700)
        (self.tree / "files.sha256").write_text("0  bin/hadoop\n")
        (self.tree / "class-data").mkdir()  # valid on this machine only
        (self.tree / "class-data/hadoop.jsa").touch()
        (self.tree / "image.json").write_text(json.dumps({"versions": {"hadoop": "3.5.0"}}))
        self.wanted = Wanted(
            name=NAME,
            base="plain",
            flavor="m1.small",
            tree=self.tree,
            description="Hadoop",
            tags=("vanilla", "3.5.0"),
        )

    def bake(self, line: Lifeline | None = None, **changes: Any) -> Bake:
        """A bake of alice. line: its connections."""
        line = line or Lifeline(self.rig.clock)
        http = HttpClient(line.agent(self.rig.agent), line, cloud_error)
        keystone = Keystone(http, CloudSettings(auth_url=f"{ORIGIN}/identity/v3"), line)
        session = CallerSession(keystone, self.rig.token("alice", "alice", "alpha"), "alpha")

        def rest(service: str, suffix: str = "") -> Rest:
            return Rest(http, session, service, (service,), suffix)

        cloud = Services(
            Compute(rest("compute"), {}),
            Images(rest("image", "/v2")),
            Networks(rest("network", "/v2.0"), "alpha"),
        )
        wanted = evolve(self.wanted, **changes)
        remote = line.remote(self.remote)
        return Bake(cloud, remote, line, wanted, self.screen)

    def baked(self, **changes: Any) -> Image:
        return self.rig.run(self.bake(**changes).run(), within_s=9000.0)

    def refused(self, **changes: Any) -> CommandError:
        """The error of a bake, which leaves nothing."""
        before = self.left()
        try:
            self.baked(**changes)
        except CommandError as error:
            self.assertEqual(self.left(), before)
            return error
        raise AssertionError("the bake was not refused")

    def left(self) -> list[str]:
        """Everything of alice's project that a bake can leave."""
        state = self.rig.cloud.core.state
        return [
            *(f"server {each.name}" for each in state.servers.values()),
            *(f"key pair {each.name}" for each in state.keypairs.values()),
            *(
                f"group {each.name}"
                for each in state.security_groups.values()
                if each.name != "default"
            ),
            *(f"address {each.description}" for each in state.floating_ips.values()),
            *(f"port {each.id}" for each in state.ports.values()),
            *(f"image {each.name}" for each in state.images.values() if not each.builtin),
        ]

    def killed(self, when: Callable[[], bool]) -> None:
        """A bake whose process ends without a word as soon as `when` is true."""
        line = Lifeline(self.rig.clock)
        running = Deferred.fromCoroutine(self.bake(line).run())
        for _ in range(3000):
            if when():
                break
            self.rig.clock.advance(0.1)
        self.assertTrue(when() and not running.called)
        line.cut()

    def image(self) -> Any:
        """The record of the image, None when there is none."""
        images = self.rig.cloud.core.state.images.values()
        return next((each for each in images if each.name == NAME), None)


class WholeTests(BakeCase):
    def test_a_bake(self) -> None:
        """The image is registered, and nothing else is left."""
        image = self.baked()
        self.assertEqual((image.name, image.status, image.min_disk_gib), (NAME, "ACTIVE", 20))
        known = image.properties
        self.assertEqual(
            {name: known[name] for name in known if name.startswith(("_svc_", "svcd"))},
            {
                "_svc_username": "svcd", "_svc_description": "Hadoop", "_svc_tag_vanilla": "True",
                "_svc_tag_3.5.0": "True", "svcd_bake": "finished", "_svc_ssh_port": "2222",
            },
        )  # fmt: skip
        self.assertEqual(self.left(), [f"image {NAME}"])

    def test_the_commands_on_the_server(self) -> None:
        """In their order, as the login user of the base image, with the tree between."""
        self.baked()
        scripts = [each.command for each in self.remote.ran]
        self.assertEqual(
            [scripts.index(each) for each in (server_image.READY, server_image.INSTALL)], [1, 3]
        )
        self.assertEqual(scripts[4:6], [server_image.EMPTY, server_image.UNPACK])
        self.assertIn("files.sha256", scripts[6])
        self.assertEqual(scripts[7:], [server_image.CLASS_DATA, server_image.CLEAN])
        self.assertEqual({each.user for each in self.remote.ran}, {"svcd"})
        with tarfile.open(fileobj=io.BytesIO(self.remote.ran[5].stdin)) as archive:
            members = [(each.name, oct(each.mode), each.uid) for each in archive]
        self.assertEqual(
            members,
            [("bin/hadoop", "0o755", 0), ("files.sha256", "0o644", 0), ("image.json", "0o644", 0)],
        )

    def test_the_server_is_stopped_before_the_snapshot(self) -> None:
        """It has one security group, open for SSH alone, and a key pair of its own."""
        seen: list[Any] = []
        state = self.rig.cloud.core.state
        running = Deferred.fromCoroutine(self.bake().run())
        while not running.called:
            if self.image() is not None and not seen:
                (server,) = state.servers.values()
                rules = [
                    (rule.port_min, rule.port_max, rule.remote_prefix)
                    for group in state.security_groups.values()
                    if group.name == OBJECT
                    for rule in state.rules.having("group", group.id)
                    if rule.direction == "ingress" and rule.remote_group_id is None
                ]
                seen = [server.status, server.key_name, server.name, rules]
            self.rig.clock.advance(0.5)
        self.assertEqual(seen, ["SHUTOFF", OBJECT, OBJECT, [(2222, 2222, None)]])

    def test_a_floating_ip(self) -> None:
        """svcd logs in at it, and releases it."""
        self.baked(pool="public")
        (address,) = {each.address for each in self.remote.ran}
        self.assertTrue(address.startswith("127.2."), address)
        self.assertEqual(self.left(), [f"image {NAME}"])

    def test_the_host_key_is_pinned(self) -> None:
        """Another machine at the address ends the bake."""
        rebuild = self.remote.rebuild

        def taken(host: Host, command: str, stdin: bytes) -> Said:
            rebuild(host.address)
            return Said()

        self.remote.script("apt-get", taken)
        self.assertIn("the host key has changed", str(self.refused()))


class RefusalTests(BakeCase):
    def test_an_image_of_the_name(self) -> None:
        """Nothing is made."""
        self.baked()
        self.screen.notes.clear()
        error = self.refused()
        self.assertIn(f"the cloud has an image {NAME} already", str(error))
        self.assertEqual((error.code, self.screen.notes), (REFUSED, []))

    def test_a_wrong_argument_makes_nothing(self) -> None:
        """Flavor, network and base image are looked up first."""
        self.assertIn("has a disk of 1 GiB", str(self.refused(flavor="m1.tiny")))
        self.assertIn("the cloud has no network no", str(self.refused(network="no")))
        self.assertIn("the cloud has no base image no", str(self.refused(base="no")))
        self.assertEqual(self.remote.ran, ())

    def test_a_server_that_does_not_answer(self) -> None:
        """The end of its console says why."""
        rule = FaultRule(where="ssh", path=" true$", effect=Effect.REFUSED)
        self.rig.faults.add(rule)
        console = json.dumps({"output": "cloud-init: no network\nlogin:\n"})
        self.rig.faults.add(
            FaultRule(where="compute", method="POST", path="/action$", status=200, body=console)
        )
        error = self.refused()
        self.assertIn("waiting for SSH took longer than 10 min 00 s: ssh svcd@", str(error))
        self.assertIn("the end of its console: cloud-init: no network | login:; check", str(error))
        self.assertEqual(error.code, UNREACHABLE)

    def test_a_server_in_error(self) -> None:
        """With the reason of the cloud."""
        core = self.rig.cloud.core
        core.hosts = 0
        core.rng.randrange = lambda _: -1  # type: ignore[method-assign,assignment]
        self.assertIn("the server did not boot: No valid host was found.", str(self.refused()))

    def test_a_quota(self) -> None:
        """In the words of the service."""
        self.rig.faults.add(
            FaultRule(
                where="compute", method="POST", path="/servers$", status=403,
                body='{"forbidden": {"message": "Quota exceeded for instances", "code": 403}}',
            )
        )  # fmt: skip
        error = self.refused()
        self.assertIn("Quota exceeded for instances", str(error))
        self.assertEqual(error.code, REFUSED)

    def test_failures_on_the_server(self) -> None:
        """Each with its own words."""
        for pattern, said, expected in (
            (
                "apt-get",
                "E: Unable to locate package openjdk",
                "installing packages failed: E: Unab",
            ),
            ("df -Pm", "the disk has 3 MiB free", "checking the disk failed: the disk has 3 MiB"),
            ("cloud-init status", "the user x may not", "preparing the server failed: the user x"),
            ("tar -x", "tar: no space", "copying the software failed: tar: no space"),
            ("sha256sum", "bin/hadoop: FAILED", "checking the software on the server failed: bin"),
            ("ssh_host_", "rm: no", "cleaning the server failed: rm: no"),
        ):
            rig = self.remote
            rig.script(pattern, Said(exit_code=1, stderr=said))
            self.assertIn(expected, str(self.refused()))
            rig.script(pattern, Said())

    def test_a_snapshot_that_fails(self) -> None:
        """The cloud refuses it, or ends it."""
        self.rig.faults.add(
            FaultRule(where="compute", method="POST", path="/action$", after=1, times=1, status=500)
        )
        self.refused()
        state = self.rig.cloud.core.state

        def lost() -> None:
            for each in list(state.images.values()):
                if each.name == NAME:
                    state.images.put(evolve(each, status="killed", saved_at=0.0))
                    return
            self.rig.clock.callLater(1.0, lost)

        self.rig.clock.callLater(1.0, lost)
        self.assertIn("its status is killed", str(self.refused()))


class EndTests(BakeCase):
    def cancelled(self, when: Callable[[], bool]) -> CommandError:
        """The error of a bake that is cancelled as soon as `when` is true."""
        out: list[object] = []
        bake = self.bake()
        Deferred.fromCoroutine(bake.run()).addBoth(out.append)
        for _ in range(3000):
            if when():
                break
            self.rig.clock.advance(0.5)
        bake.stop(CommandError("interrupted", INTERRUPTED))
        for _ in range(600):
            self.rig.clock.advance(0.5)
        (failure,) = out
        assert isinstance(failure, Failure)
        assert isinstance(failure.value, CommandError), failure
        return failure.value

    def test_ctrl_c(self) -> None:
        """At any moment nothing is left."""
        state = self.rig.cloud.core.state
        for when in (
            lambda: bool(state.keypairs.values()),
            lambda: bool(state.servers.values()),
            lambda: len(self.remote.ran) > 3,
            lambda: self.image() is not None,
        ):
            error = self.cancelled(when)
            self.assertEqual((str(error), error.code), ("interrupted", INTERRUPTED))
            self.assertEqual(self.left(), [])

    def test_ctrl_c_while_it_removes(self) -> None:
        """The removal goes on, and the failure is told; the second Ctrl-C ends it at once."""
        rule = FaultRule(where="compute", method="POST", path="/servers$", status=403)
        for times, is_unsure in ((1, False), (2, True)):
            self.setUp()
            self.rig.faults.add(rule)
            out: list[object] = []
            bake = self.bake()
            Deferred.fromCoroutine(bake.run()).addBoth(out.append)
            for _ in range(3000):
                if any(each.startswith("removing what") for each in self.screen.notes):
                    break
                self.rig.clock.advance(0.01)
            for _ in range(times):
                bake.stop(CommandError("interrupted", INTERRUPTED))
            for _ in range(600):
                self.rig.clock.advance(0.5)
            self.assertIn("answered 403", str(out[0]))
            self.assertEqual("NOT removed: " in str(out[0]), is_unsure)
            if not is_unsure:
                self.assertEqual(self.left(), [])

    def test_a_key_pair_whose_creation_has_no_answer(self) -> None:
        """The cloud may have made it, so it is removed; that of another bake stays."""
        answers = ("had no complete answer", "broke off")
        for effect, why in zip((Effect.TIMEOUT_AFTER, Effect.RESET_AFTER), answers, strict=True):
            self.setUp()
            rule = FaultRule(where="compute", method="POST", path="/os-keypairs", effect=effect)
            self.rig.faults.add(rule)
            self.assertIn(why, str(self.refused()))
            self.assertEqual(self.left(), [])

    def test_ctrl_c_while_it_removes_the_key_pair(self) -> None:
        """The first one changes nothing; the second one ends the removal, which is told."""
        path = "/os-keypairs"
        for times, is_unsure in ((1, False), (2, True)):
            self.setUp()
            self.rig.faults.add(
                FaultRule(where="compute", method="POST", path=path, effect=Effect.RESET_AFTER)
            )
            self.rig.faults.add(
                FaultRule(where="compute", method="GET", path=path, after=1, delay_s=5.0,
                          effect=Effect.DELAY)
            )  # fmt: skip
            out: list[object] = []
            bake = self.bake()
            Deferred.fromCoroutine(bake.run()).addBoth(out.append)
            for _ in range(3000):
                if self.rig.cloud.core.state.keypairs.values():
                    break
                self.rig.clock.advance(0.01)
            self.rig.clock.advance(1.0)
            for _ in range(times):
                bake.stop(CommandError("interrupted", INTERRUPTED))
            for _ in range(60):
                self.rig.clock.advance(0.5)
            self.assertIn("broke off", str(out[0]))
            self.assertEqual(f"NOT removed: key pair {OBJECT} (interr" in str(out[0]), is_unsure)
            self.assertEqual(self.left(), [f"key pair {OBJECT}"] if is_unsure else [])

    def test_a_key_pair_of_another_bake(self) -> None:
        """It stays."""
        self.killed(lambda: bool(self.rig.cloud.core.state.keypairs.values()))
        before = self.left()
        removed = self.bake()._objects.remove_keypair("ssh-ed25519 other")
        self.assertEqual((self.rig.run(removed), self.left()), ("", before))

    def test_a_key_pair_that_cannot_be_removed(self) -> None:
        """With its reason and the command."""
        for method, effect in (("POST", Effect.RESET_AFTER), ("DELETE", Effect.ANSWER)):
            rule = FaultRule(where="compute", method=method, path="/os-keypairs", effect=effect)
            self.rig.faults.add(evolve(rule, status=500))
        error = self.assertRaises(CommandError, self.baked)
        self.assertIn("broke off", str(error))
        self.assertIn(f"remove it: openstack keypair delete {OBJECT}", str(error))
        self.assertEqual(self.left(), [f"key pair {OBJECT}"])

    def test_what_cannot_be_removed_is_named(self) -> None:
        """With its reason and the command."""
        self.rig.faults.add(
            FaultRule(where="compute", method="DELETE", path="/os-keypairs/", status=500)
        )
        self.remote.script("apt-get", Said(exit_code=1, stderr="E: no"))
        try:
            self.baked()
        except CommandError as error:
            text = str(error)
        self.assertIn(f"NOT removed: key pair {OBJECT} (compute: DELETE", text)
        self.assertIn(f"remove it: openstack keypair delete {OBJECT}", text)
        self.assertEqual(self.left(), [f"key pair {OBJECT}"])

    def test_a_port_without_its_server(self) -> None:
        """Nova forgets one at times; it would keep the security group for ever."""
        state = self.rig.cloud.core.state

        def forgotten() -> bool:
            return self.image() is not None

        running = Deferred.fromCoroutine(self.bake().run())
        while not forgotten():
            self.rig.clock.advance(0.5)
        (port,) = state.ports.values()
        state.ports.put(evolve(port, id="forgotten", device_id="no-server", address="127.1.0.99"))
        for _ in range(200):
            self.rig.clock.advance(0.5)
        self.assertTrue(running.called)
        self.assertEqual(self.left(), [f"image {NAME}"])

    def test_a_registered_image_stays(self) -> None:
        """Also when something beside it cannot be removed."""
        self.rig.faults.add(
            FaultRule(where="compute", method="DELETE", path="/os-keypairs/", status=500)
        )
        try:
            self.baked()
        except CommandError as error:
            text = str(error)
        self.assertIn("is registered; NOT removed: key pair", text)
        self.assertEqual(self.left(), [f"key pair {OBJECT}", f"image {NAME}"])


class AgainTests(BakeCase):
    def test_killed_before_the_snapshot(self) -> None:
        """The next bake removes everything and begins again."""
        self.killed(lambda: len(self.remote.ran) > 3)
        self.assertEqual(len(self.left()), 4)
        former = next(iter(self.rig.cloud.core.state.servers.values())).id
        image = self.baked()
        self.assertNotEqual(image.properties["instance_uuid"], former)
        self.assertEqual(self.left(), [f"image {NAME}"])

    def test_killed_while_the_image_is_saved(self) -> None:
        """The next bake registers this image."""
        self.killed(lambda: self.image() is not None)
        former = self.image().id
        self.assertEqual(self.baked().id, former)
        self.assertEqual(self.left(), [f"image {NAME}"])
        self.assertEqual(self.image().properties["_svc_username"], "svcd")

    def test_killed_before_the_registration(self) -> None:
        """The same when it is saved meanwhile."""
        self.killed(lambda: self.image() is not None)
        self.rig.clock.advance(600.0)
        former = self.image().id
        self.assertEqual(self.baked().id, former)
        self.assertEqual(self.left(), [f"image {NAME}"])

    def test_killed_after_the_registration(self) -> None:
        """The next bake removes the rest, and the image stays."""
        self.killed(lambda: getattr(self.image(), "properties", {}).get("svcd_bake") == "finished")
        former = self.image().id
        self.assertEqual(self.baked().id, former)
        self.assertEqual(self.left(), [f"image {NAME}"])

    def test_two_at_once(self) -> None:
        """The second one is refused by name, and the first one goes on."""
        out: list[object] = []
        self.remote.script("apt-get", Said(delay_s=600.0))
        Deferred.fromCoroutine(self.bake().run()).addBoth(out.append)
        for begin_s in (2.0, 40.0):  # while the server builds, and while it works
            self.rig.clock.advance(begin_s)
            error = self.refused()
            self.assertIn(f"another svcd image bake of {NAME} is at work", str(error))
            self.assertEqual((error.code, out), (REFUSED, []))
        for _ in range(2000):
            self.rig.clock.advance(1.0)
        (image,) = out
        assert isinstance(image, Image), image
        self.assertEqual(self.left(), [f"image {NAME}"])

    def test_two_that_start_together(self) -> None:
        """One of them makes the image; the other one ends and removes nothing of it."""
        for apart_s in (0.0, 0.3, 1.0, 1.5, 2.0):
            self.setUp()
            self.remote.script("apt-get", Said(delay_s=100.0))
            out: list[object] = []
            for _ in range(2):
                Deferred.fromCoroutine(self.bake().run()).addBoth(out.append)
                self.rig.clock.advance(apart_s)
            for _ in range(2000):
                self.rig.clock.advance(1.0)
            error, image = out
            assert isinstance(error, Failure), (apart_s, error)
            self.assertIn(f"another svcd image bake of {NAME} ", str(error.value))
            assert isinstance(image, Image), (apart_s, image)
            self.assertEqual(self.left(), [f"image {NAME}"])

    def test_two_that_start_together_and_a_lost_answer(self) -> None:
        """The bake that does not know whether it has the key pair removes nothing of the other."""
        for effect in (Effect.RESET_BEFORE, Effect.TIMEOUT_BEFORE):
            self.setUp()
            self.remote.script("apt-get", Said(delay_s=100.0))
            late = FaultRule(where="compute", method="GET", path="/flavors", effect=Effect.DELAY)
            lost = FaultRule(where="compute", method="POST", path="/os-keypairs", effect=effect)
            self.rig.faults.add(evolve(late, times=1, delay_s=5.0))
            self.rig.faults.add(evolve(lost, after=1))
            out: list[object] = []
            for _ in range(2):
                Deferred.fromCoroutine(self.bake().run()).addBoth(out.append)
            for _ in range(2000):
                self.rig.clock.advance(1.0)
            error, image = out
            assert isinstance(error, Failure), (effect, error)
            self.assertIn("/os-keypairs", str(error.value))
            self.assertNotIn("NOT removed", str(error.value))
            assert isinstance(image, Image), (effect, image)
            self.assertEqual(self.left(), [f"image {NAME}"])

    def test_a_bake_of_another_name(self) -> None:
        """It is not disturbed, nor does it disturb."""
        self.killed(lambda: len(self.remote.ran) > 3)
        before = self.left()
        self.baked(name="other")
        self.assertEqual(sorted(self.left()), sorted([*before, "image other"]))
