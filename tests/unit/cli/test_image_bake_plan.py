"""What a bake does with what it finds, and what it says of its arguments."""

from __future__ import annotations

from pathlib import Path

from attrs import evolve
from twisted.trial.unittest import SynchronousTestCase

from svcd.cli.exits import NOT_FOUND, USAGE, CommandError
from svcd.cli.image_bake_plan import (
    Begin,
    Choice,
    Continue,
    Found,
    Refuse,
    Tidy,
    Wanted,
    choice,
    left_over,
    login_user,
    next_step,
    object_name,
    registration,
)
from svcd.cli.image_bake_tree import File, pieces
from svcd.model.cloud import Flavor, Image, Network, Server

SERVER = Server(id="s1", name="x", status="ACTIVE", metadata={"svcd_bake_beat": "4"})
SAVING = Image(id="i1", name="v", status="SAVING", properties={"svcd_bake": "unfinished"})
FINISHED = Image(id="i1", name="v", status="ACTIVE", properties={"svcd_bake": "finished"})
EXISTS = (
    "the cloud has an image v already (i1): choose another --name, or delete that one:"
    " openstack image delete i1"
)


class NextStepTests(SynchronousTestCase):
    def check(self, now: Found, expected: object, before: Found | None = None) -> None:
        self.assertEqual(next_step("v", before or now, now), expected)

    def test_an_empty_cloud_begins(self) -> None:
        """There is nothing to continue."""
        self.check(Found(), Begin())

    def test_an_image_of_the_name_is_refused(self) -> None:
        """Whoever made it."""
        self.check(Found(images=[Image(id="i1", name="v", status="ACTIVE")]), Refuse(EXISTS))
        self.check(Found(images=[FINISHED]), Refuse(EXISTS))

    def test_a_foreign_image_beside_leftovers_is_refused_after_their_removal(self) -> None:
        """They would stay for ever."""
        foreign = Image(id="i1", name="v", status="ACTIVE")
        self.check(Found(images=[foreign], groups=["g"]), Refuse(EXISTS, tidy=True))

    def test_leftovers_of_a_server_begin_again(self) -> None:
        """What was installed is not known."""
        self.check(
            Found(servers=[SERVER], keypair="k", groups=["g"], addresses=["a"]), Begin(tidy=True)
        )

    def test_a_saved_image_is_continued(self) -> None:
        """Also when its server is gone."""
        saved = evolve(SAVING, status="ACTIVE")
        self.check(Found(images=[saved]), Continue("i1"))
        self.check(Found(images=[saved], servers=[SERVER]), Continue("i1"))

    def test_an_image_that_is_being_saved_is_continued_with_its_server(self) -> None:
        """Without the server it never ends."""
        self.check(Found(images=[SAVING], servers=[SERVER]), Continue("i1"))
        queued = evolve(SAVING, status="QUEUED")
        self.check(Found(images=[queued], servers=[SERVER]), Continue("i1"))
        self.check(Found(images=[SAVING]), Begin(tidy=True))

    def test_a_failed_image_begins_again(self) -> None:
        """Glance's words for it."""
        for status in ("KILLED", "DELETED", "DEACTIVATED"):
            broken = evolve(SAVING, status=status)
            self.check(Found(images=[broken], servers=[SERVER]), Begin(tidy=True))

    def test_two_unfinished_images_begin_again(self) -> None:
        """Which is the right one is not known."""
        two = [SAVING, evolve(SAVING, id="i2")]
        self.check(Found(images=two, servers=[SERVER]), Begin(tidy=True))

    def test_a_finished_image_with_leftovers_is_tidied(self) -> None:
        """The former bake was killed while it removed them."""
        self.check(Found(images=[FINISHED], servers=[SERVER]), Tidy("i1"))
        self.check(Found(images=[FINISHED], keypair="k"), Tidy("i1"))

    def test_a_bake_that_beats_is_not_disturbed(self) -> None:
        """The beats of its server and its new objects show it."""
        text = (
            "another svcd image bake of v is at work on server s1: wait for its end, or choose"
            " another --name"
        )
        now = Found(servers=[SERVER])
        beat = evolve(SERVER, metadata={"svcd_bake_beat": "3"})
        self.check(now, Refuse(text), before=Found(servers=[beat]))
        self.check(now, Refuse(text), before=Found(keypair="k"))
        self.assertTrue(now.rests(now))
        self.assertTrue(now.rests(Found(servers=[beat])), "no third look is needed")

    def test_objects_that_vanish_are_no_work(self) -> None:
        """The cloud removes what a killed bake has deleted; another look says more."""
        before = Found(servers=[SERVER], keypair="k")
        self.check(Found(keypair="k"), Begin(tidy=True), before=before)
        self.assertFalse(Found(keypair="k").rests(before))

    def test_a_server_that_builds_has_no_beats(self) -> None:
        """Another look says more."""
        building = Found(servers=[evolve(SERVER, status="BUILD")])
        self.assertFalse(building.rests(building))

    def test_a_status_is_no_beat(self) -> None:
        """A cloud goes on with what a killed bake has begun."""
        saved = evolve(SAVING, status="ACTIVE")
        before = Found(images=[SAVING], servers=[evolve(SERVER, status="SHUTOFF")])
        self.check(Found(images=[saved], servers=[SERVER]), Continue("i1"), before=before)


WANTED = Wanted(name="v", base="debian-12", flavor="small", tree=Path("/t"))
BASE = Image(id="b", name="debian-12", status="ACTIVE", size_bytes=400 << 20)
SMALL = Flavor(id="2", name="small", ram_mib=2048, vcpus=1, disk_gib=20)
TINY = Flavor(id="1", name="tiny", ram_mib=512, vcpus=1, disk_gib=1)
INNER = Network(id="n", name="net")
OUTER = Network(id="e", name="public", external=True)


class ChoiceTests(SynchronousTestCase):
    def chosen(self, wanted: Wanted = WANTED, *, base: Image = BASE, more: int = 0) -> Choice:
        networks = [INNER, OUTER, *(Network(id=f"n{n}", name=f"net{n}") for n in range(more))]
        return choice(wanted, [base], [TINY, SMALL], networks, 421)

    def refused(self, text: str, code: int = 1, **given: str) -> None:
        error = self.assertRaises(CommandError, self.chosen, evolve(WANTED, **given))
        self.assertEqual((str(error), error.code), (text, code))

    def test_ids_and_names(self) -> None:
        """Both are taken."""
        expected = Choice(base=BASE, flavor_id="2", network_id="n", user="debian", port=22)
        self.assertEqual(self.chosen(), expected)
        by_id = evolve(WANTED, base="b", flavor="2", network="n", pool="e")
        self.assertEqual(self.chosen(by_id), expected)

    def test_what_the_base_image_says(self) -> None:
        """Its login and its SSH port."""
        known = {"_svc_username": "cloud", "_svc_ssh_port": "2222", "os_admin_user": "root"}
        base = evolve(BASE, properties=known)
        self.assertEqual(
            (self.chosen(base=base).user, self.chosen(base=base).port), ("cloud", 2222)
        )
        odd = evolve(BASE, properties={"_svc_ssh_port": "ssh"})
        self.assertEqual(self.chosen(base=odd).port, 22)
        self.assertEqual(login_user("me", base), "me")
        self.assertEqual(login_user("", evolve(BASE, properties={"os_admin_user": "u"})), "u")

    def test_unknown_names(self) -> None:
        """Each with what there is."""
        text = "the cloud has no base image debian-13 (--base); did you mean debian-12?"
        self.refused(text, NOT_FOUND, base="debian-13")
        text = "the cloud has no flavor x (--flavor); the cloud has tiny, small"
        self.refused(text, NOT_FOUND, flavor="x")
        text = "the cloud has no network public (--network); the cloud has net"
        self.refused(text, NOT_FOUND, network="public")
        text = "the cloud has no external network net (--floating-network); the cloud has public"
        self.refused(text, NOT_FOUND, pool="net")

    def test_a_small_disk(self) -> None:
        """1 GiB of system, 421 MiB of software, 700 MiB of packages and 450 MiB of class data."""
        text = (
            "the flavor tiny has a disk of 1 GiB, and the base image with the software needs"
            " 3 GiB; large enough: small"
        )
        self.refused(text, flavor="tiny")

    def test_a_small_memory(self) -> None:
        """As the base image asks."""
        base = evolve(BASE, min_ram_mib=4096)
        error = self.assertRaises(CommandError, self.chosen, base=base)
        text = (
            "the flavor small has 2048 MiB of memory, and 4096 MiB are needed; large enough: none"
        )
        self.assertEqual(str(error), text)

    def test_several_networks(self) -> None:
        """One must be named."""
        error = self.assertRaises(CommandError, self.chosen, more=1)
        text = "the project has several networks: choose one with --network: net, net0"
        self.assertEqual(str(error), text)

    def test_several_images_of_the_name(self) -> None:
        """Only the id tells them apart."""
        two = [BASE, evolve(BASE, id="c")]
        error = self.assertRaises(CommandError, choice, WANTED, two, [SMALL], [INNER], 1)
        text = (
            "the cloud has several base images of the name debian-12: give the id with --base: b, c"
        )
        self.assertEqual((str(error), error.code), (text, USAGE))

    def test_a_base_image_that_is_not_ready(self) -> None:
        """Nova would refuse the server later."""
        base = evolve(BASE, status="QUEUED")
        error = self.assertRaises(CommandError, self.chosen, base=base)
        text = "the base image debian-12 is queued, not active: wait, or choose another --base"
        self.assertEqual(str(error), text)


class WordTests(SynchronousTestCase):
    def test_names_of_objects(self) -> None:
        """Letters, digits and dashes only; different images have different names."""
        self.assertEqual(object_name("vanilla-3.5.0"), "svcd-bake-vanilla-3-5-0-b272c8b6")
        self.assertNotEqual(object_name("a.b"), object_name("a-b"))
        self.assertEqual(len(object_name("x" * 255)), 59)

    def test_what_is_left_has_a_command(self) -> None:
        """One for each kind."""
        left = {
            ("server", "s"): "no",
            ("floating IP", "f"): "why",
            ("security group", "g"): "in use",
            ("key pair", "k"): "gone",
            ("image", "i"): "x",
        }
        self.assertEqual(
            left_over(left).split("; "),
            [
                "NOT removed: server s (no)", "remove it: openstack server delete s",
                "NOT removed: floating IP f (why)", "remove it: openstack floating ip delete f",
                "NOT removed: security group g (in use)",
                "remove it: openstack security group delete g",
                "NOT removed: key pair k (gone)", "remove it: openstack keypair delete k",
                "NOT removed: image i (x)", "remove it: openstack image delete i",
            ],
        )  # fmt: skip

    def test_the_registration(self) -> None:
        """Tags that the base image was registered with are not those of the new one."""
        image = evolve(SAVING, properties={"_svc_tag_old": "True", "_svc_tag_vanilla": "True"})
        given, gone = registration(image, "debian", "text", ["vanilla", "3.5.0"])
        self.assertEqual(
            given,
            {
                "_svc_username": "debian", "_svc_description": "text", "svcd_bake": "finished",
                "_svc_tag_vanilla": "True", "_svc_tag_3.5.0": "True",
            },
        )  # fmt: skip
        self.assertEqual(gone, ["_svc_problem", "_svc_tag_old"])

    def test_pieces_of_a_tree(self) -> None:
        """A large file is alone; none is empty."""
        files = [File("a", 3), File("b", 3), File("c", 9), File("d", 0), File("e", 6)]
        self.assertEqual(
            [[each.path for each in piece] for piece in pieces(files, 6)],
            [["a", "b"], ["c"], ["d", "e"]],
        )
        self.assertEqual(pieces([], 6), [])
