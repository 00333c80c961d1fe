"""`svcd image bake` against the embedded cloud and machines with a scripted shell."""

from __future__ import annotations

import io
import json
import os
import sys
import tarfile
from collections.abc import Callable
from contextlib import redirect_stderr
from pathlib import Path
from typing import Any

from attrs import evolve
from twisted.internet.defer import Deferred
from twisted.python.failure import Failure
from twisted.trial.unittest import SynchronousTestCase

from svcd.cli.exits import INTERRUPTED, REFUSED, UNREACHABLE, CommandError
from svcd.cli.image_bake import Bake, Screen
from svcd.cli.image_bake_objects import Services
from svcd.cli.image_bake_plan import Wanted, object_name
from svcd.cli.session import Session
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
from tests.support.commands import RunCase
from tests.unit.embedded.cloud.rig import ORIGIN, Rig

NAME = "baked-3.5.0"
OBJECT = object_name(NAME)
BAKE = ("image", "bake", "vanilla", "--base", "plain", "--flavor", "m1.small")


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
        groups = (group.name for group in state.security_groups.values())
        return [
            *(f"server {each.name}" for each in state.servers.values()),
            *(f"key pair {each.name}" for each in state.keypairs.values()),
            *(f"group {name}" for name in groups if name != "default"),
            *(f"address {each.description}" for each in state.floating_ips.values()),
            *(f"port {each.id}" for each in state.ports.values()),
            *(f"image {each.name}" for each in state.images.values() if not each.builtin),
        ]

    def begun(self, bake: Bake) -> list[Any]:
        """Begin a bake; its image or its failure comes into the list."""
        out: list[Any] = []
        Deferred.fromCoroutine(bake.run()).addBoth(out.append)
        return out

    def until(self, when: Callable[[], object], step_s: float = 0.1) -> None:
        """Advance the clock until `when` is true."""
        for _ in range(9000):
            if when():
                return
            self.rig.clock.advance(step_s)
        raise AssertionError("it did not come so far")

    def later(self, seconds: float) -> None:
        for _ in range(int(seconds * 2)):
            self.rig.clock.advance(0.5)

    def killed(self, when: Callable[[], object]) -> None:
        """A bake whose process ends without a word as soon as `when` is true."""
        line = Lifeline(self.rig.clock)
        out = self.begun(self.bake(line))
        self.until(when)
        self.assertEqual(out, [])
        line.cut()

    def fault(self, method: str, path: str, effect: Effect = Effect.ANSWER, **more: Any) -> None:
        """A fault of the compute service; without an effect an answer with a status."""
        rule = FaultRule(where="compute", method=method, path=path, effect=effect, **more)
        self.rig.faults.add(rule)

    def image(self) -> Any:
        """The record of the image, None when there is none."""
        images = self.rig.cloud.core.state.images.values()
        return next((each for each in images if each.name == NAME), None)

    def keypairs(self) -> list[Any]:
        return list(self.rig.cloud.core.state.keypairs.values())


class WholeTests(BakeCase):
    def test_a_bake(self) -> None:
        """At a floating IP. The image is registered, and nothing else is left."""
        image = self.baked(pool="public")
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
        (address,) = {each.address for each in self.remote.ran}
        self.assertTrue(address.startswith("127.2."), address)

    def test_the_commands_on_the_server(self) -> None:
        """In their order, as the login user of the base image, with the tree between."""
        self.baked()
        scripts = [each.command for each in self.remote.ran]
        self.assertEqual((scripts[1], scripts[3]), (server_image.READY, server_image.INSTALL))
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
        state = self.rig.cloud.core.state
        self.begun(self.bake())
        self.until(self.image, 0.5)
        (server,) = state.servers.values()
        (group,) = (each for each in state.security_groups.values() if each.name == OBJECT)
        rules = [
            (rule.port_min, rule.port_max, rule.remote_prefix)
            for rule in state.rules.having("group", group.id)
            if rule.direction == "ingress" and rule.remote_group_id is None
        ]
        seen = (server.status, server.key_name, server.name, rules)
        self.assertEqual(seen, ("SHUTOFF", OBJECT, OBJECT, [(2222, 2222, None)]))

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

    def test_a_server_that_does_not_answer(self) -> None:
        """The end of its console says why."""
        self.rig.faults.add(FaultRule(where="ssh", path=" true$", effect=Effect.REFUSED))
        console = json.dumps({"output": "cloud-init: no network\nlogin:\n"})
        self.fault("POST", "/action$", status=200, body=console)
        error = self.refused()
        self.assertIn("waiting for SSH took longer than 10 min 00 s: ssh svcd@", str(error))
        self.assertIn("the end of its console: cloud-init: no network | login:; check", str(error))
        self.assertEqual(error.code, UNREACHABLE)

    def test_a_server_that_the_cloud_does_not_make(self) -> None:
        """With the reason of the cloud."""
        forbidden = '{"forbidden": {"message": "Quota exceeded for instances", "code": 403}}'
        self.fault("POST", "/servers$", status=403, body=forbidden, times=1)
        error = self.refused()
        self.assertIn("Quota exceeded for instances", str(error))
        self.assertEqual(error.code, REFUSED)
        core = self.rig.cloud.core
        core.hosts = 0
        core.rng.randrange = lambda _: -1  # type: ignore[method-assign,assignment]
        self.assertIn("the server did not boot: No valid host was found.", str(self.refused()))

    def test_a_snapshot_that_fails(self) -> None:
        """The cloud refuses it, or ends it."""
        self.fault("POST", "/action$", after=1, times=1, status=500)
        self.refused()
        out = self.begun(self.bake())
        self.until(self.image)
        lost = evolve(self.image(), status="killed", saved_at=0.0)
        self.rig.cloud.core.state.images.put(lost)
        self.later(200)
        self.assertIn("its status is killed", str(out[0].value))
        self.assertEqual(self.left(), [])

    def test_failures_on_the_server(self) -> None:
        """The error names the step and quotes what the command said."""
        for pattern, said, expected in (
            ("apt-get", "E: Unable to locate package", "installing packages failed: E: Unable"),
            ("df -Pm", "the disk has 3 MiB free", "checking the disk failed: the disk has 3 MiB"),
            ("cloud-init status", "the user x may not", "preparing the server failed: the user x"),
            ("tar -x", "tar: no space", "copying the software failed: tar: no space"),
            ("sha256sum", "bin/hadoop: FAILED", "checking the software on the server failed: bin"),
            ("ssh_host_", "rm: no", "cleaning the server failed: rm: no"),
        ):
            self.remote.script(pattern, Said(exit_code=1, stderr=said))
            self.assertIn(expected, str(self.refused()))
            self.remote.script(pattern, Said())


class EndTests(BakeCase):
    def interrupted(
        self, when: Callable[[], object], times: int = 1, after_s: float = 0.0
    ) -> CommandError:
        """The error of a bake that Ctrl-C ends as soon as `when` is true, or `after_s` later."""
        bake = self.bake()
        out = self.begun(bake)
        self.until(when, 0.01)
        self.later(after_s)
        for _ in range(times):
            bake.stop(CommandError("interrupted", INTERRUPTED))
        self.later(300)
        (failure,) = out
        assert isinstance(failure.value, CommandError), failure
        return failure.value

    def test_ctrl_c(self) -> None:
        """At any moment nothing is left."""
        for when in (
            self.keypairs,
            self.rig.cloud.core.state.servers.values,
            lambda: len(self.remote.ran) > 3,
            self.image,
        ):
            error = self.interrupted(when)
            self.assertEqual((str(error), error.code), ("interrupted", INTERRUPTED))
            self.assertEqual(self.left(), [])

    def test_a_key_pair_whose_creation_has_no_answer(self) -> None:
        """The cloud may have made it, so it is removed, unless a second Ctrl-C ends the removal."""
        path = "/os-keypairs"
        for effect, why in (
            (Effect.TIMEOUT_AFTER, "had no complete answer"),
            (Effect.RESET_AFTER, "broke off"),
        ):
            self.setUp()
            self.fault("POST", path, effect)
            self.assertIn(why, str(self.refused()))
        for times in (1, 2):
            self.setUp()
            self.fault("POST", path, Effect.RESET_AFTER)
            self.fault("GET", path, Effect.DELAY, after=1, delay_s=5.0)
            error = self.interrupted(self.keypairs, times, after_s=1.0)
            self.assertIn("broke off", str(error))
            told = f"NOT removed: key pair {OBJECT} (interr" in str(error)
            self.assertEqual(told, times == 2)
            self.assertEqual(self.left(), [f"key pair {OBJECT}"] * (times - 1))

    def test_what_cannot_be_removed_is_named(self) -> None:
        """With its reason and the command, also after a success: a registered image stays."""
        for lost, script, words, left in (
            (True, Said(), "broke off", []),
            (False, Said(exit_code=1, stderr="E: no"), "E: no", []),
            (False, Said(), "is registered", [f"image {NAME}"]),
        ):
            self.setUp()
            if lost:
                self.fault("POST", "/os-keypairs", Effect.RESET_AFTER)
            self.fault("DELETE", "/os-keypairs/", status=500)
            self.remote.script("apt-get", script)
            text = str(self.assertRaises(CommandError, self.baked))
            self.assertIn(words, text)
            self.assertIn(f"; NOT removed: key pair {OBJECT} (compute: DELETE", text)
            self.assertIn(f"remove it: openstack keypair delete {OBJECT}", text)
            self.assertEqual(self.left(), [f"key pair {OBJECT}", *left])

    def test_a_port_without_its_server(self) -> None:
        """Nova forgets one at times; it would keep the security group for ever."""
        ports = self.rig.cloud.core.state.ports
        out = self.begun(self.bake())
        self.until(self.image, 0.5)
        (port,) = ports.values()
        ports.put(evolve(port, id="forgotten", device_id="no-server", address="127.1.0.99"))
        self.later(100)
        self.assertEqual((len(out), self.left()), (1, [f"image {NAME}"]))


class AgainTests(BakeCase):
    def test_killed_before_the_snapshot(self) -> None:
        """The next bake removes everything and begins again; one of another name does not."""
        self.killed(lambda: len(self.remote.ran) > 3)
        before = self.left()
        self.assertEqual(len(before), 4)
        former = next(iter(self.rig.cloud.core.state.servers.values())).id
        self.baked(name="other")
        self.assertEqual(sorted(self.left()), sorted([*before, "image other"]))
        image = self.baked()
        self.assertNotEqual(image.properties["instance_uuid"], former)
        self.assertEqual(self.left(), ["image other", f"image {NAME}"])

    def test_killed_later(self) -> None:
        """While the image is saved, before and after its registration: the image is kept."""
        for when, pause_s in (
            (self.image, 0.0),
            (self.image, 600.0),
            (lambda: self.image() and self.image().properties.get("svcd_bake") == "finished", 0.0),
        ):
            self.setUp()
            self.killed(when)
            self.later(pause_s)
            former = self.image().id
            self.assertEqual(self.baked().id, former)
            self.assertEqual(self.left(), [f"image {NAME}"])
            self.assertEqual(self.image().properties["_svc_username"], "svcd")

    def test_two_that_start_together(self) -> None:
        """One of them makes the image; the other one ends and removes nothing of it."""
        for apart_s in (0.0, 0.3, 1.0, 1.5, 2.0):
            self.setUp()
            self.remote.script("apt-get", Said(delay_s=100.0))
            first = self.begun(self.bake())
            self.rig.clock.advance(apart_s)
            second = self.begun(self.bake())
            self.later(1000)
            results = [*first, *second]
            (failure,) = (each for each in results if isinstance(each, Failure))
            self.assertIn(f"another svcd image bake of {NAME} ", str(failure.value))
            self.assertEqual([each.name for each in results if each is not failure], [NAME])
            self.assertEqual(self.left(), [f"image {NAME}"])

    def test_two_at_once(self) -> None:
        """The second one is refused by name, and the first one goes on."""
        self.remote.script("apt-get", Said(delay_s=600.0))
        out = self.begun(self.bake())
        for begin_s in (2.0, 40.0):  # while the server builds, and while it works
            self.rig.clock.advance(begin_s)
            error = self.refused()
            self.assertIn(f"another svcd image bake of {NAME} is at work", str(error))
            self.assertEqual((error.code, out), (REFUSED, []))
        self.later(2000)
        (image,) = out
        assert isinstance(image, Image), image
        self.assertEqual(self.left(), [f"image {NAME}"])


class ScreenTests(SynchronousTestCase):
    def test_a_reader_that_has_gone(self) -> None:
        """As `| tee` after Ctrl-C: the bake goes on, and removes what it has made."""
        read, write = os.pipe()
        os.close(read)
        with redirect_stderr(io.TextIOWrapper(io.FileIO(write, "w"), write_through=True)):
            screen = Screen(Session())
            screen.note("removing")
            self.assertRaises(BrokenPipeError, print, "x", file=sys.stderr)


class CommandTests(RunCase):
    def test_refusals_before_the_bake(self) -> None:
        """Of the login, which comes first, of words for the registry, and of the tree."""
        tree = Path(self.mktemp()).absolute()
        tree.mkdir()
        for more, code, text in (
            (("--user", "a b"), 2, "--user 'a b' is no login name"),
            (("--tag", "x y"), 2, "--tag 'x y' is no tag"),
            (("--tree", "/nowhere"), 1, "/nowhere does not exist; build it: svcd image build van"),
            (("--tree", str(tree)), 1, f"{tree}/bin/hadoop is missing; build it"),
        ):
            said = self.shown.run(*BAKE, *more)
            self.assertEqual((said.code, said.out), (code, ""), said)
            self.assertIn(f"svcd image bake: {text}", said.err)
        said = self.shown.run(*BAKE, "--tree", "/nowhere", known=False)
        self.assertEqual((said.code, said.out), (2, ""), said)
        self.assertIn("no login at a cloud: set OS_AUTH_URL and the other OS_ variables", said.err)
