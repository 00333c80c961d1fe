"""The objects of `svcd image bake` in the cloud: finds and removes them. It makes none."""

from __future__ import annotations

from collections.abc import Awaitable, Callable

from attrs import frozen
from twisted.internet.defer import CancelledError
from twisted.internet.interfaces import IReactorTime

from svcd.cli.image_bake_plan import MARK, Found, left_over, object_name
from svcd.clients.cloud import remove_security_group
from svcd.clients.compute import Compute
from svcd.clients.image import Images
from svcd.clients.network import Networks
from svcd.ports.cloud import CloudError
from svcd.ports.faults import Fault
from svcd.runtime.tasks import sleep


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
            addresses=[each.id for each in addresses if each.description == self.name],
        )

    async def remove(self, unfinished: bool, limit_s: float, every_s: float) -> str:
        """Remove the objects; a text about those that are left after `limit_s`, "" for none.

        unfinished: also the image that is not registered. Two looks must find nothing, because a
        list may lack a new object.
        """
        end = self._clock.seconds() + limit_s
        unseen = ("server", self.name)
        reasons: dict[tuple[str, str], str] = {}
        empty = 0
        try:
            while empty < 2 and self._clock.seconds() < end:
                try:
                    found = (await self.look()).leftovers
                except CloudError as error:
                    reasons = reasons or {unseen: f"the cloud cannot be asked: {error.text}"}
                else:
                    doomed = [each for each in found if unfinished or each[0] != "image"]
                    empty = 0 if doomed else empty + 1
                    reasons = {each: await self._delete(*each) for each in doomed}
                if empty < 2:
                    await sleep(self._clock, every_s)
        except CancelledError:
            reasons = reasons or {unseen: "interrupted"}
        if empty >= 2:
            return ""
        return left_over({each: why or "it still exists" for each, why in reasons.items()})

    async def remove_keypair(self, public: str) -> str:
        """Remove the key pair if it is that of `public`; a text about it if it is left, else ""."""
        pair = "key pair", self.name
        try:
            found = await self._cloud.compute.keypair(self.name)
            is_ours = found.public_key.split()[:2] == public.split()[:2]
            why = await self._delete(*pair) if is_ours else ""
        except CloudError as error:
            why = "" if error.kind is Fault.NOT_FOUND else error.text
        except CancelledError:
            why = "interrupted"
        return left_over({pair: why}) if why else ""

    async def _delete(self, kind: str, id_: str) -> str:
        """Delete one object; why the cloud refuses, "" when it does not."""
        cloud = self._cloud
        delete: dict[str, Callable[[str], Awaitable[None]]] = {
            "server": cloud.compute.delete_server,
            "floating IP": cloud.networks.delete_floating_ip,
            "security group": self._delete_group,
            "key pair": cloud.compute.delete_keypair,
            "image": cloud.images.delete,
        }
        try:
            await delete[kind](id_)
        except CloudError as error:
            return error.text
        return ""

    async def _delete_group(self, group_id: str) -> None:
        await remove_security_group(self._cloud.networks, self._cloud.compute, group_id)
