"""The answer of `GET /cloud`: what the caller can make clusters of (additive, v1.1).

Names are the cloud's own.
"""

from __future__ import annotations

from typing import Annotated

from svcd.model import fields
from svcd.model.fields import means
from svcd.model.wire import View


class CloudFlavor(View, frozen=True, kw_only=True):
    """A size of machines."""

    id: Annotated[str, means("id of the flavor, for `flavor_id`")]
    name: Annotated[str, means("name of the flavor in the cloud")]
    vcpus: Annotated[int, means("number of processors")]
    ram_mib: Annotated[int, means("memory in MiB")]
    disk_gib: Annotated[int, means("disk in GiB; 0: that of the image")]


class CloudImage(View, frozen=True, kw_only=True):
    """An image that can be registered."""

    id: fields.ImageId
    name: fields.ImageName
    username: Annotated[str, means("login that the image names in its property `os_admin_user`")]


class CloudNetwork(View, frozen=True, kw_only=True):
    """A network."""

    id: Annotated[
        str, means("id, for `neutron_management_network`, or `floating_ip_pool` if external")
    ]
    name: Annotated[str, means("name of the network in the cloud")]
    external: Annotated[
        bool, means("whether the network is a pool of floating IPs, and not for machines")
    ]


class CloudQuota(View, frozen=True, kw_only=True):
    """A quota of the project."""

    resource: fields.QuotaResource
    used: Annotated[int, means("used amount")]
    limit: Annotated[int | None, means("largest amount; null when it is unlimited or unknown")]


class CloudFailure(View, frozen=True, kw_only=True):
    """A part of the answer that svcd could not read."""

    part: Annotated[
        str, means("name of a list, or `servers`, `volumes` or `floating_ips` for quotas")
    ]
    error_name: Annotated[str, means("kind of error, without ids or names")]
    error_message: Annotated[str, means("for a person; one fault a line")]


class CloudOffer(View, frozen=True, kw_only=True):
    """The cloud as the caller sees it."""

    flavors: Annotated[list[CloudFlavor], means("sizes of machines, smallest memory first")]
    unregistered_images: Annotated[
        list[CloudImage], means("images whose login svcd does not know yet, by name")
    ]
    keypairs: Annotated[list[str], means("names of the caller's key pairs")]
    networks: Annotated[
        list[CloudNetwork], means("networks for machines, and pools of floating IPs")
    ]
    quota: Annotated[list[CloudQuota], means("quotas of the project")]
    cut: Annotated[
        list[str], means("names of the lists of which the answer has the first 1,000 entries only")
    ]
    failed: Annotated[list[CloudFailure], means("parts that svcd could not read")]
