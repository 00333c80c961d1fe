"""The flavors, images, networks and keys for clusters in the caller's cloud, and quotas (additive).

Note: no answer is kept. A quota that is some seconds old would contradict the cluster that a user
has just made. Requests of one caller that arrive together share one reading, which begins after all
of them have arrived.
"""

from __future__ import annotations

from collections.abc import Callable, Coroutine, Mapping
from typing import Any, Final

from klein import Klein

from svcd.model.cloud import Caller, Usage
from svcd.model.wire import IMAGE_USERNAME
from svcd.model.wire_cloud import (
    CloudFailure,
    CloudFlavor,
    CloudImage,
    CloudNetwork,
    CloudOffer,
    CloudQuota,
)
from svcd.ports.cloud import Access
from svcd.resources._call import Call
from svcd.resources._faults import as_answerable
from svcd.resources._route import route
from svcd.resources.dependencies import ApiServices
from svcd.runtime.coalesce import Coalescer
from svcd.runtime.tasks import gather, with_deadline

_PART_S: Final = 15.0
"""Seconds for the read of a part. The answer names a later part in `failed`."""
_MOST: Final = 1000
"""Entries of a list in the answer."""
_LOGIN: Final = "os_admin_user"
"""The image service's name of the property with the login of an image's system."""

_Read = Callable[[], Coroutine[Any, Any, Any]]


class CloudOffers:
    """The handler of `/cloud`."""

    app = Klein()

    def __init__(self, services: ApiServices) -> None:
        self._cloud = services.cloud
        self._clock = services.clock
        self._reading = Coalescer(fresh_by=services.clock)

    @route(app, "GET", "/cloud", returns="cloud", since="1.1", operation="getCloudOffer")
    async def get(self, call: Call) -> CloudOffer:
        """Return flavors, images, networks and quotas of the project, and the caller's key pairs.

        A part that cannot be read is named in `failed`, and the others are answered. The request
        fails when no part can be read.
        """
        caller = call.caller
        key = (caller.tenant_id, caller.token.reveal() if caller.token is not None else "")
        return await self._reading.get(key, lambda: self._read(caller))

    async def _read(self, caller: Caller) -> CloudOffer:
        session = self._cloud.session(Access(tenant_id=caller.tenant_id, token=caller.token))
        parts: Mapping[str, _Read] = {
            "flavors": session.flavors,
            "images": session.images,
            "keypairs": session.keypairs,
            "networks": session.networks,
            "servers": session.server_usage,
            "volumes": session.volume_usage,
            "floating_ips": session.address_usage,
        }

        def bounded(name: str, read: _Read) -> _Read:
            return lambda: with_deadline(self._clock, _PART_S, f"reading {name}", read())

        work = [bounded(name, read) for name, read in parts.items()]
        results = dict(zip(parts, await gather(work, len(work)), strict=True))
        errors = {
            name: result for name, result in results.items() if isinstance(result, BaseException)
        }
        if len(errors) == len(parts):
            raise errors["flavors"]
        return offer({n: e for n, e in results.items() if n not in errors}, errors)


def offer(parts: Mapping[str, Any], errors: Mapping[str, BaseException]) -> CloudOffer:
    """The answer with the parts that svcd could read, and the errors of the others. Pure.

    Flavors come with the smallest memory first, networks of machines before pools. Raises an error
    that is a bug.
    """
    failed = []
    for name, error in errors.items():
        answerable = as_answerable(error)
        if answerable is None:
            raise error
        failed.append(
            CloudFailure(part=name, error_name=answerable.name, error_message=answerable.message)
        )
    flavors = sorted(parts.get("flavors", ()), key=lambda f: (f.ram_mib, f.vcpus, f.name))
    networks = sorted(parts.get("networks", ()), key=lambda n: (n.external, n.name))
    keypairs = sorted(parts.get("keypairs", ()))
    images = sorted(
        (i for i in parts.get("images", ()) if IMAGE_USERNAME not in i.properties),
        key=lambda i: (i.name, i.id),
    )
    lists = {
        "flavors": flavors,
        "unregistered_images": images,
        "keypairs": keypairs,
        "networks": networks,
    }
    usage: dict[str, Usage] = {}
    for name in ("servers", "volumes", "floating_ips"):
        usage |= parts.get(name, {})
    return CloudOffer(
        flavors=[CloudFlavor.filled(flavor) for flavor in flavors[:_MOST]],
        unregistered_images=[
            CloudImage.filled(image, username=image.properties.get(_LOGIN, ""))
            for image in images[:_MOST]
        ],
        keypairs=keypairs[:_MOST],
        networks=[CloudNetwork.filled(network) for network in networks[:_MOST]],
        quota=[CloudQuota.filled(quota, resource=name) for name, quota in usage.items()],
        cut=[name for name, rows in lists.items() if len(rows) > _MOST],
        failed=failed,
    )
