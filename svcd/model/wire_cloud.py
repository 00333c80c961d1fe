"""The answer of `GET /cloud`: what the caller can make clusters of (additive, v1.1).

Names are the cloud's own.
"""

from __future__ import annotations

from svcd.model.wire import View


class CloudFlavor(View, frozen=True, kw_only=True):
    """A size of machines. disk_gib: 0 for the size of the image."""

    id: str
    name: str
    vcpus: int
    ram_mib: int
    disk_gib: int


class CloudImage(View, frozen=True, kw_only=True):
    """An image that can be registered. username: the login that it names itself, "" without."""

    id: str
    name: str
    username: str


class CloudNetwork(View, frozen=True, kw_only=True):
    """A network. external: a pool of floating IPs, and no network for machines."""

    id: str
    name: str
    external: bool


class CloudQuota(View, frozen=True, kw_only=True):
    """A quota of the project. limit: null when it is unlimited or unknown."""

    resource: str
    used: int
    limit: int | None


class CloudFailure(View, frozen=True, kw_only=True):
    """A part of the answer that svcd could not read."""

    part: str
    error_name: str
    error_message: str


class CloudOffer(View, frozen=True, kw_only=True):
    """The cloud as the caller sees it. cut: names of the lists that are longer than shown."""

    flavors: list[CloudFlavor]
    unregistered_images: list[CloudImage]
    keypairs: list[str]
    networks: list[CloudNetwork]
    quota: list[CloudQuota]
    cut: list[str]
    failed: list[CloudFailure]
