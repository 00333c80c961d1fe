"""The access of a job to the object store of its project. Pure."""

from __future__ import annotations

from collections.abc import Collection, Iterable
from typing import Final

from attrs import field, frozen

from svcd.model.job import DataSource
from svcd.model.redaction import url_repr
from svcd.workflow.decide.engine_text import quoted
from svcd.workflow.decide.job_credentials import Logins, keys_of

OBJECT_STORE_CLASS: Final = "org.svcd.objstore.ObjStoreFileSystem"
CONTAINER_SUFFIX: Final = ".svc"
_USERNAME: Final = ".username"


@frozen(kw_only=True)
class ObjectStoreAccess:
    """The object store as the cluster's machines reach it. auth_url ends in /v3."""

    auth_url: str = field(repr=url_repr)
    region: str = ""
    interface: str = "public"


def container_of(url: str) -> str:
    """The container of an `objstore://` URL, without the provider's suffix."""
    name = url.partition("://")[2].split("/", 1)[0]
    return name.removesuffix(CONTAINER_SUFFIX)


def options(
    access: ObjectStoreAccess,
    project: str,
    sources: Iterable[DataSource | None],
    given: Collection[str],
    logins: Logins,
) -> dict[str, str]:
    """The configurations for access to the object store of every data source.

    given: the names of the caller's configurations.

    Each container has its login. The first login is also used for any other container that the
    job's program names. Where the caller names a user, that user is used instead.
    """
    used = [
        source for source in sources if source is not None and source.url.startswith("objstore://")
    ]
    if not used:
        return {}
    configs = {
        "fs.objstore.impl": OBJECT_STORE_CLASS,
        "fs.objstore.auth.url": quoted(access.auth_url),
        "fs.objstore.project": quoted(project),
        "fs.objstore.interface": quoted(access.interface),
    }
    if access.region:
        configs["fs.objstore.region"] = quoted(access.region)
    done = {name for name in given if name.endswith(_USERNAME)}
    for source in used:
        if source.credentials is None:
            continue
        own = f"fs.objstore.container.{container_of(source.url)}"
        for place in ("fs.objstore", own):
            if f"{place}{_USERNAME}" in done:
                continue
            done.add(f"{place}{_USERNAME}")
            keys = keys_of(source.credentials, logins)
            configs |= {f"{place}.{key}": quoted(value) for key, value in keys.items()}
        configs[f"{own}.project"] = quoted(project)
    return configs
