"""The objects of `svcd image bake` in the cloud: finds and removes them. It makes none."""

from __future__ import annotations

from collections.abc import Awaitable, Callable, Sequence
from typing import Final

from attrs import frozen
from twisted.internet.interfaces import IReactorTime

from svcd.cli.image_bake_plan import MARK, Found, left_over, object_name
from svcd.clients.cloud import remove_security_group
from svcd.clients.compute import Compute
from svcd.clients.image import Images
from svcd.clients.network import Networks
from svcd.ports.cloud import CloudError
from svcd.ports.faults import Fault
from svcd.runtime.tasks import sleep

_REMOVE_S: Final = 300.0
"""Time for the removal of all objects."""
_POLL_S: Final = 2.0


@frozen
class Services:
    """The clients of the project's cloud."""

    compute: Compute
    images: Images
    networks: Networks


class Objects:
    """The objects of the bakes of one image. name: that of the image."""

    def __init__(self, cloud: Services, clock: IReactorTime, name: str) -> None:
        self._cloud = cloud
        self._clock = clock
        self._image = name
        self.name = object_name(name)

    async def look(self) -> Found:
        """All objects, and all images of the name. Raises CloudError."""
        cloud = self._cloud
        try:
            keypair = (await cloud.compute.keypair(self.name)).name
        except CloudError as error:
            if error.kind is not Fault.NOT_FOUND:
                raise
            keypair = ""
        addresses = await cloud.networks.floating_ips()
        return Found(
            images=await cloud.images.images(self._image),
            servers=await cloud.compute.servers({MARK: self._image}, self.name),
            keypair=keypair,
            groups=await cloud.networks.find_security_groups(self.name),
            addresses=[address.id for address in addresses if address.description == self.name],
        )

    async def remove(self, unfinished: bool) -> str:
        """Remove the objects; a text about those that are left after a while, "" for none.

        unfinished: also the image that is not registered.
        """

        async def doomed() -> Sequence[tuple[str, str]]:
            found = (await self.look()).leftovers
            return [thing for thing in found if unfinished or thing[0] != "image"]

        return await self._remove("server", doomed)

    async def remove_keypair(self, public_key: str) -> str:
        """Remove the key pair if it has this public key; see `remove`."""

        async def doomed() -> Sequence[tuple[str, str]]:
            try:
                keypair = await self._cloud.compute.keypair(self.name)
            except CloudError as error:
                if error.kind is not Fault.NOT_FOUND:
                    raise
                return []
            is_ours = keypair.public_key.split()[:2] == public_key.split()[:2]
            return [("key pair", self.name)] if is_ours else []

        return await self._remove("key pair", doomed)

    async def _remove(
        self, kind: str, look: Callable[[], Awaitable[Sequence[tuple[str, str]]]]
    ) -> str:
        """Remove the objects of `look` until two looks in a row are empty: lists lack new objects.

        kind: of the objects, for the text when no look succeeds.
        """
        end = self._clock.seconds() + _REMOVE_S
        reasons: dict[tuple[str, str], str] = {}
        empty = 0
        while empty < 2 and self._clock.seconds() < end:
            try:
                doomed = await look()
            except CloudError as error:
                why = f"the cloud cannot be asked: {error.text}"
                reasons = reasons or {(kind, self.name): why}
            else:
                empty = 0 if doomed else empty + 1
                reasons = {thing: await self._delete(*thing) for thing in doomed}
            if empty < 2:
                await sleep(self._clock, _POLL_S)
        return left_over(reasons)

    async def _delete(self, kind: str, id_: str) -> str:
        """Delete one object; the reason why it still exists, or ""."""
        compute, networks = self._cloud.compute, self._cloud.networks
        try:
            match kind:
                case "server":
                    await compute.delete_server(id_)
                case "floating IP":
                    await networks.delete_floating_ip(id_)
                case "security group":
                    await remove_security_group(networks, compute, id_)
                case "key pair":
                    await compute.delete_keypair(id_)
                case _:
                    await self._cloud.images.delete(id_)
        except CloudError as error:
            return error.text
        return "it still exists"
