"""What a bake does with what it finds, and what it says of its arguments."""

from __future__ import annotations

from pathlib import Path
from typing import Any

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

    def test_what_a_bake_finds_at_rest(self) -> None:
        """An image of the name is refused whoever made it; leftovers would stay for ever."""
        foreign, saved = Image(id="i1", name="v", status="ACTIVE"), evolve(SAVING, status="ACTIVE")
        killed = [evolve(SAVING, status=status) for status in ("KILLED", "DELETED", "DEACTIVATED")]
        queued, server = evolve(SAVING, status="QUEUED"), {"servers": [SERVER]}
        leftovers: dict[str, Any] = {**server, "keypair": "k", "groups": ["g"], "addresses": ["a"]}
        for now, expected in (
            (Found(), Begin()),
            (Found(images=[foreign]), Refuse(EXISTS)),
            (Found(images=[FINISHED]), Refuse(EXISTS)),
            (Found(images=[foreign], groups=["g"]), Refuse(EXISTS, tidy=True)),
            # what was installed is not known
            (Found(**leftovers), Begin(tidy=True)),
            # a saved image needs no server; without one, saving never ends
            (Found(images=[saved]), Continue("i1")),
            (Found(images=[saved], **server), Continue("i1")),
            (Found(images=[SAVING], **server), Continue("i1")),
            (Found(images=[queued], **server), Continue("i1")),
            (Found(images=[SAVING]), Begin(tidy=True)),
            *((Found(images=[image], **server), Begin(tidy=True)) for image in killed),
            # which of two is the right one is not known
            (Found(images=[SAVING, evolve(SAVING, id="i2")], **server), Begin(tidy=True)),
            # the former bake was killed while it removed the rest
            (Found(images=[FINISHED], **server), Tidy("i1")),
            (Found(images=[FINISHED], keypair="k"), Tidy("i1")),
        ):
            self.check(now, expected)

    def test_what_is_no_work_of_another_bake(self) -> None:
        """The cloud goes on with what a killed bake has begun, or deletes it; a build beats not."""
        before = Found(servers=[SERVER], keypair="k")
        self.check(Found(keypair="k"), Begin(tidy=True), before=before)
        self.assertFalse(Found(keypair="k").rests(before))
        building = Found(servers=[evolve(SERVER, status="BUILD")])
        self.assertFalse(building.rests(building))
        saved = evolve(SAVING, status="ACTIVE")
        before = Found(images=[SAVING], servers=[evolve(SERVER, status="SHUTOFF")])
        self.check(Found(images=[saved], servers=[SERVER]), Continue("i1"), before=before)

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


WANTED = Wanted(name="v", base="debian-12", flavor="small", tree=Path("/t"))
BASE = Image(id="b", name="debian-12", status="ACTIVE", size_bytes=400 << 20)
SMALL = Flavor(id="2", name="small", ram_mib=2048, vcpus=1, disk_gib=20)
TINY = Flavor(id="1", name="tiny", ram_mib=512, vcpus=1, disk_gib=1)
INNER = Network(id="n", name="net")
OUTER = Network(id="e", name="public", external=True)


class ChoiceTests(SynchronousTestCase):
    def chosen(self, wanted: Wanted = WANTED, *, base: Image = BASE) -> Choice:
        return choice(wanted, [base], [TINY, SMALL], [INNER, OUTER], 421)

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

    def test_refusals(self) -> None:
        """Each with what there is, or what to do."""
        more = {"wanted": WANTED, "images": [BASE], "flavors": [TINY, SMALL],
                "networks": [INNER, OUTER]}  # fmt: skip

        def wanted(**given: str) -> dict[str, Any]:
            return {"wanted": evolve(WANTED, **given)}

        twin, second = evolve(BASE, id="c"), Network(id="n0", name="net0")
        for given, code, text in (
            (wanted(base="debian-13"), NOT_FOUND,
             "the cloud has no base image debian-13 (--base); did you mean debian-12?"),
            (wanted(flavor="x"), NOT_FOUND,
             "the cloud has no flavor x (--flavor); the cloud has tiny, small"),
            (wanted(network="public"), NOT_FOUND,
             "the cloud has no network public (--network); the cloud has net"),
            (wanted(pool="net"), NOT_FOUND,
             "the cloud has no external network net (--floating-network); the cloud has public"),
            # 1 GiB of system, 421 MiB of software, 700 MiB of packages, 450 MiB of class data
            (wanted(flavor="tiny"), 1,
             "the flavor tiny has a disk of 1 GiB, and the base image with the software needs"
             " 3 GiB; large enough: small"),
            ({"images": [evolve(BASE, min_ram_mib=4096)]}, 1,
             "the flavor small has 2048 MiB of memory, and 4096 MiB are needed; large enough:"
             " none"),
            ({"networks": [INNER, OUTER, second]}, 1,
             "the project has several networks: choose one with --network: net, net0"),
            ({"images": [BASE, twin]}, USAGE,
             "the cloud has several base images of the name debian-12: give the id with --base:"
             " b, c"),
            ({"images": [evolve(BASE, status="QUEUED")]}, 1,
             "the base image debian-12 is queued, not active: wait, or choose another --base"),
        ):  # fmt: skip
            arguments: tuple[Any, ...] = tuple({**more, **given}.values())
            error = self.assertRaises(CommandError, choice, *arguments, 421)
            self.assertEqual((str(error), error.code), (text, code))


class WordTests(SynchronousTestCase):
    def test_names_of_objects(self) -> None:
        """Letters, digits and dashes only; different images have different names."""
        self.assertEqual(object_name("vanilla-3.5.0"), "svcd-bake-vanilla-3-5-0-b272c8b6")
        self.assertNotEqual(object_name("a.b"), object_name("a-b"))
        self.assertEqual(len(object_name("x" * 255)), 59)

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
