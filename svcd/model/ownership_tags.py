"""The ownership tags of svcd's resources in a tenant's cloud: writes and reads them. Pure.

| Thing | Ownership tag |
|---|---|
| server, volume | metadata `svcd_cluster_id`, `svcd_instance_id`, `svcd_installation` |
| floating IP | description `svcd:CLUSTER:INSTALLATION:INSTANCE` |
| security group | name `svcd-CLUSTER`, description `cluster NAME of svcd INSTALLATION` |
| server group | name `svcd-CLUSTER` (the service stores no other field that svcd could set) |
| application credential of a job | name `svcd:CLUSTER:INSTALLATION:EXECUTION:NUMBER` |
| trust | its expiry time, a second between the years 2100 and 2200 (as above) |

The expiry times of one user's trusts in one project differ: the service refuses a second trust with
the same expiry time.

INSTALLATION distinguishes daemons that share a tenant, each with a database of its own. It is
derived from the key that seals the secrets of the database, so it moves with that key.
"""

from __future__ import annotations

import datetime
import hashlib
import re
from collections.abc import Mapping
from typing import Final

from attrs import frozen

CLUSTER: Final = "svcd_cluster_id"
INSTANCE: Final = "svcd_instance_id"
INSTALLATION: Final = "svcd_installation"

_ID: Final = r"[0-9a-f]{8}(?:-[0-9a-f]{4}){3}-[0-9a-f]{12}"
_CLUSTER_ID: Final = re.compile(_ID)
_GROUP: Final = re.compile(rf"svcd-({_ID})")
_GROUP_TEXT: Final = re.compile(r"cluster \S+ of svcd(?: ([0-9a-f]{16}))?")
_ADDRESS: Final = re.compile(rf"svcd:({_ID}):(?:([0-9a-f]{{16}}):)?{_ID}")
_CREDENTIAL: Final = re.compile(rf"svcd:({_ID}):([0-9a-f]{{16}}):{_ID}:[0-9]{{1,2}}")
_FAR: Final = datetime.datetime(2100, 1, 1, tzinfo=datetime.UTC)
_CENTURY_S: Final = 36_524 * 86_400
"""The expiry times of trusts are within this time after 2100."""
_TRUST_END: Final = re.compile(r"21\d\d-\d\d-\d\dT\d\d:\d\d:\d\d\.000000Z")


@frozen
class Tag:
    """The owner of a resource: its cluster, and the installation ("" when the tag has none)."""

    cluster_id: str
    installation: str = ""


def metadata(cluster_id: str, instance_id: str, installation: str) -> dict[str, str]:
    """The metadata of a server or a volume."""
    made = {CLUSTER: cluster_id, INSTANCE: instance_id}
    return {**made, INSTALLATION: installation} if installation else made


def group_name(cluster_id: str) -> str:
    """The name of a security group or a server group."""
    return f"svcd-{cluster_id}"


def group_text(cluster_name: str, installation: str) -> str:
    """The description of a security group."""
    return f"cluster {cluster_name} of svcd {installation}".rstrip()


def address_text(cluster_id: str, instance_id: str, installation: str) -> str:
    """The description of a floating IP."""
    middle = f"{installation}:" if installation else ""
    return f"svcd:{cluster_id}:{middle}{instance_id}"


def credential_name(cluster_id: str, installation: str, execution_id: str, number: int) -> str:
    """The name of an application credential. number: of the account, from 1, in its execution."""
    return f"svcd:{cluster_id}:{installation}:{execution_id}:{number}"


def of_credential(name: str) -> Tag | None:
    """The tag of an application credential; None when svcd did not create it."""
    match = _CREDENTIAL.fullmatch(name)
    return None if match is None else Tag(match[1], match[2])


def of_metadata(found: Mapping[str, str]) -> Tag | None:
    """The tag of a server or a volume; None when svcd did not create it."""
    cluster_id = found.get(CLUSTER, "")
    if not _CLUSTER_ID.fullmatch(cluster_id) or not found.get(INSTANCE):
        return None
    return Tag(cluster_id, found.get(INSTALLATION, ""))


def of_address(description: str) -> Tag | None:
    """The tag of a floating IP; None when svcd did not create it."""
    match = _ADDRESS.fullmatch(description)
    return None if match is None else Tag(match[1], match[2] or "")


def of_security_group(name: str, description: str) -> Tag | None:
    """The tag of a security group; None when svcd did not create it."""
    match, text = _GROUP.fullmatch(name), _GROUP_TEXT.fullmatch(description)
    return None if match is None or text is None else Tag(match[1], text[1] or "")


def of_server_group(name: str) -> Tag | None:
    """The tag of a server group; None when svcd did not create it."""
    match = _GROUP.fullmatch(name)
    return None if match is None else Tag(match[1])


def trust_end(id_: str) -> str:
    """The expiry time of the trust with the LooseTrust id `id_`, too far away to have an effect.

    It is a whole second, because the service drops fractions (measured).
    """
    number = int.from_bytes(hashlib.sha256(id_.encode()).digest()[:8], "big")
    moment = _FAR + datetime.timedelta(seconds=number % _CENTURY_S)
    return moment.strftime("%Y-%m-%dT%H:%M:%S.000000Z")


def is_trust_end(expires_at: str) -> bool:
    """Whether `expires_at` is an expiry time that svcd gives to its trusts."""
    return _TRUST_END.fullmatch(expires_at) is not None
