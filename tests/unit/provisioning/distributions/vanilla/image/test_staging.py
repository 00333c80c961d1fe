"""The folder in which a tree is made."""

from __future__ import annotations

import errno
from contextlib import ExitStack
from pathlib import Path

from twisted.trial.unittest import SynchronousTestCase

from svcd.provisioning.distributions.vanilla.image import staging
from svcd.provisioning.distributions.vanilla.image.errors import ImageError
from svcd.provisioning.distributions.vanilla.image.staging import (
    carry_over,
    exchange,
    explained,
    locked,
    removed_unless_told,
    room_problem,
)


class RoomTest(SynchronousTestCase):
    """What a build needs of the disk."""

    def test_room_that_a_build_needs(self) -> None:
        """A build without Spark is offered when it fits."""
        few = "/x has {} MiB left and a build needs {}: free some, or name another prefix"
        for left, spark, said in (
            (950, True, ""),
            (949, True, few.format(949, 950) + ", or leave Spark out (--without spark)"),
            (499, True, few.format(499, 950)),
            (500, False, ""),
            (499, False, few.format(499, 500)),
        ):
            self.assertEqual(room_problem(Path("/x"), left * 2**20, spark=spark), said)

    def test_errors_of_the_system_are_told_with_a_remedy(self) -> None:
        """The prefix stands for a file without a name."""
        for error, told in (
            (OSError(errno.ENOSPC, "No space left on device"),
             "/x/vanilla: No space left on device: free some, or name another prefix"),
            (PermissionError(errno.EACCES, "Permission denied", "/x/.vanilla.lock"),
             "/x/.vanilla.lock: Permission denied: name a prefix that you can write to"),
        ):  # fmt: skip
            self.assertEqual(explained(error, Path("/x/vanilla")), told)


class StageTest(SynchronousTestCase):
    """From the stage to the prefix."""

    def setUp(self) -> None:
        self.base = Path(self.mktemp()).absolute()
        self.stage, self.prefix = self.base / "stage", self.base / "vanilla"
        self.stage.mkdir(parents=True)
        (self.stage / "new").touch()

    def test_exchange_replaces_the_old_tree(self) -> None:
        """The staged tree is at the prefix, and nothing of the old one is left."""
        self.prefix.mkdir()
        (self.prefix / "old").touch()
        exchange(self.stage, self.prefix)
        self.assertTrue((self.prefix / "new").exists())
        self.assertEqual([path.name for path in self.base.iterdir()], ["vanilla"])
        self.assertFalse((self.prefix / "old").exists())

    def test_other_build_is_waited_for_and_not_for_ever(self) -> None:
        said: list[str] = []
        first = ExitStack()
        first.enter_context(locked(self.prefix, said.append))
        with locked(self.prefix, lambda line: (said.append(line), first.close())):  # type: ignore[func-returns-value]
            self.assertEqual(said, [f"waiting for another build of {self.prefix}"])
        said.clear()
        self.patch(staging, "MOST_WAIT_S", 0.0)

        def second() -> None:
            with locked(self.prefix, said.append):
                self.fail("two builds at once")

        with locked(self.prefix, said.append):
            error = self.assertRaises(ImageError, second)
        self.assertEqual(said, [f"waiting for another build of {self.prefix}"])
        self.assertEqual(
            str(error),
            f"another build of {self.prefix} has not ended in 0 s: end it, or name another prefix",
        )

    def test_packages_of_the_operator_are_kept(self) -> None:
        """Files, folders and links; what is not there costs nothing."""
        own = self.prefix / "spark/python/packages"
        carry_over(self.prefix, self.stage, "spark/python/packages")
        (own / "pandas").mkdir(parents=True)
        (own / "pandas/core.py").write_text("x = 1\n")
        (own / "link").symlink_to("pandas")
        carry_over(self.prefix, self.stage, "spark/python/packages")
        kept = self.stage / "spark/python/packages"
        self.assertEqual((kept / "link/core.py").read_text(), "x = 1\n")
        self.assertTrue((kept / "link").is_symlink())

    def broken(self, error: BaseException) -> None:
        with removed_unless_told(self.stage):
            raise error

    def test_failed_download_leaves_nothing(self) -> None:
        """Half a download is of no use to anybody. An error that names a log keeps it."""
        for error in (ImageError("https://x: no"), OSError("disk"), KeyboardInterrupt()):
            self.stage.mkdir(exist_ok=True)
            self.assertRaises(type(error), self.broken, error)
            self.assertFalse(self.stage.exists())
        self.stage.mkdir()
        told = ImageError(f"javac failed, see {self.stage}/log")
        self.assertRaises(ImageError, self.broken, told)
        self.assertTrue(self.stage.exists())
