"""Swift: reading one object with somebody's credentials."""

from __future__ import annotations

from svcd.model.job import Credentials
from svcd.ports import Fault
from tests.contracts.cloud import CloudCase


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

    async def check_faults(self) -> None:
        """A missing object is NOT_FOUND, a wrong password UNAUTHORIZED."""
        mine = Credentials(user=self.user, password=self.password)
        work = self.cloud.read(self.tenant, mine, "no-such-container", "x")
        self.assertEqual((await self.refused(work)).kind, Fault.NOT_FOUND)
        wrong = Credentials(user=self.user, password="wrong")
        work = self.cloud.read(self.tenant, wrong, "contract", "x")
        self.assertEqual((await self.refused(work)).kind, Fault.UNAUTHORIZED)
