"""Swift: reading one object with somebody's credentials."""

from __future__ import annotations

from svcd.model.job import Credentials
from svcd.ports.faults import Fault
from tests.contract.cloud import CloudCase

NAMES = (
    "with blank",
    " blanks at both ends ",
    "a/deep er/path",
    "per%41cent%2Fslash",
    "plus+and&=;",
    "hash#and?question",
    "a\"quote'and`back\\slash",
    "<tag>&amp;${variable}",
    "grüße/日本語 ☃/😀",
    "very/" + "long/" * 100 + "ü" * 200,
)


class ObjectStoreContract(CloudCase):
    async def put_object(self, container: str, name: str, content: bytes) -> None:
        """Store an object as the user."""
        raise NotImplementedError

    async def check_an_object_is_read(self) -> None:
        """Size first, then all of it, whatever its name."""
        name = self.unique("folder/with space é")
        content = bytes(range(256)) * 2000
        await self.put_object("contract", name, content)
        mine = Credentials(user=self.user, password=self.password)
        size, pieces = await self.cloud.read(self.tenant, mine, "contract", name)
        self.assertEqual(size, len(content))
        self.assertEqual(b"".join([piece async for piece in pieces]), content)

    async def check_any_name_is_read(self) -> None:
        """Blanks, escapes, what means something in a URL, quotes, other scripts, very long ones."""
        mine = Credentials(user=self.user, password=self.password)
        for name in NAMES:
            await self.put_object("contract", name, name.encode())
            size, pieces = await self.cloud.read(self.tenant, mine, "contract", name)
            self.assertEqual(b"".join([piece async for piece in pieces]), name.encode())
            self.assertEqual(size, len(name.encode()))

    async def check_faults(self) -> None:
        """A wrong password or user is UNAUTHORIZED; what is missing is told: container, object."""
        mine = Credentials(user=self.user, password=self.password)
        error = await self.refused(self.cloud.read(self.tenant, mine, "no-such-container", "x"))
        self.assertEqual(error.kind, Fault.NOT_FOUND)
        self.assertIn("container 'no-such-container' does not exist", error.text)
        await self.put_object("contract", "there", b"")
        error = await self.refused(self.cloud.read(self.tenant, mine, "contract", "no such"))
        self.assertEqual(error.kind, Fault.NOT_FOUND)
        self.assertIn("object 'no such' does not exist in container 'contract'", error.text)
        for user, password in ((self.user, "wrong"), ("nobody-here", self.password)):
            wrong = Credentials(user=user, password=password)
            error = await self.refused(self.cloud.read(self.tenant, wrong, "contract", "there"))
            self.assertEqual(error.kind, Fault.UNAUTHORIZED)
            self.assertIn(f"refuses user '{user}' in project", error.text)
            self.assertNotIn("wrong'", error.text)
