# mypy: allow-untyped-calls
"""Swift v1: accounts, containers, objects, static and dynamic large objects. Source: its API."""

from __future__ import annotations

import hashlib
from collections.abc import Callable, Sequence
from itertools import islice
from typing import Any
from urllib.parse import quote, unquote

import msgspec
from attrs import evolve
from klein import Klein
from twisted.web.http import datetimeToString

from svcd.embedded.cloud.core import Core
from svcd.embedded.cloud.objects import Bodies, Names, byte_range, pieces_of, selected
from svcd.embedded.cloud.openstack import OpenStackService, project_of, text_of
from svcd.embedded.cloud.records import Container, Segment, StoredObject
from svcd.embedded.services import Call, Refusal, Reply
from svcd.web.routing import route

_MOST_NAMES = 10_000
"""Names in one page of a listing."""
_TEXT = "text/plain; charset=utf-8"
_CONTAINER_SEGMENTS = 3  # /v1/account/container
_TITLES = {
    400: ("Bad Request", "The server could not comply with the request."),
    401: ("Unauthorized", "This server could not verify that you are authorized."),
    403: ("Forbidden", "Access was denied to this resource."),
    404: ("Not Found", "The resource could not be home."),
    405: ("Method Not Allowed", "The method is not allowed for this resource."),
    409: ("Conflict", "There was a conflict when trying to complete your request."),
    412: ("Precondition Failed", "A precondition for this request was not met."),
    416: ("Requested Range Not Satisfiable", "The Range requested is not available."),
    422: ("Unprocessable Entity", "Unable to process the contained instructions."),
}


class _ManifestEntry(msgspec.Struct):
    path: str
    etag: str | None = None
    size_bytes: int | None = None


class ObjectStoreService(OpenStackService):
    """Mounted at /object-store."""

    app = Klein()
    where = "object-store"

    def __init__(self, core: Core, bodies: Bodies) -> None:
        super().__init__(core)
        self._bodies = bodies
        objects = core.state.objects
        self._names = Names(lambda id_: (o.name for o in objects.having("container", id_)))

    def segments(self, path: Sequence[bytes]) -> list[bytes]:
        """Keep a slash at the end of an object's name, because it is a part of the name."""
        inside = len(path) > _CONTAINER_SEGMENTS + 1
        return list(path) if inside else super().segments(path)

    def authorize(self, call: Call, segments: list[str]) -> None:
        """The account must be the token's project; `/info` is open.

        Slashes separate the parts of an object's key, so accounts and containers have none.
        """
        if segments == ["info"] or len(segments) < 2:
            return
        self.authenticate(call, "")
        if segments[1] != f"AUTH_{project_of(call)}":
            raise Refusal(403, "")
        if any("/" in name for name in segments[1:_CONTAINER_SEGMENTS]):
            raise Refusal(400, "The name of an account or container must not contain a slash")

    def envelope(self, refusal: Refusal) -> Reply:
        """An HTML page."""
        title, text = _TITLES.get(refusal.status, ("Internal Error", "The server has erred."))
        page = f"<html><h1>{title}</h1><p>{refusal.message or text}</p></html>"
        return Reply(
            status=refusal.status,
            body=page.encode("utf-8"),
            headers=self.headers(refusal),
            content_type="text/html; charset=UTF-8",
        )

    @route(app, ["GET"], "/info")
    def info(self, call: Call) -> Reply:
        limits = {"max_file_size": 5_368_709_122, "container_listing_limit": _MOST_NAMES}
        return Reply(
            body={"swift": limits, "slo": {"max_manifest_segments": 1000, "min_segment_size": 1}}
        )

    # ---- accounts ----

    def _count(self, container: Container) -> int:
        return self._core.state.objects.count("container", container.id)

    @route(app, ["GET"], "/v1/<account>")
    def account(self, call: Call, account: str) -> Reply:
        containers = self._core.state.containers.having("account", account)
        rows = {
            container.name: {
                "name": container.name,
                "count": self._count(container),
                "bytes": container.bytes,
                "last_modified": text_of(container.created_at, "bare"),
            }
            for container in containers
        }
        headers = {
            "X-Account-Container-Count": str(len(rows)),
            "X-Account-Object-Count": str(sum(map(self._count, containers))),
            "X-Account-Bytes-Used": str(sum(home.bytes for home in containers)),
            "X-Timestamp": f"{1_767_225_600:.5f}",
        }
        return self._listing(call, sorted(rows), rows.__getitem__, headers)

    def _listing(
        self,
        call: Call,
        names: Sequence[str],
        row_of: Callable[[str], dict[str, Any]],
        headers: dict[str, str],
    ) -> Reply:
        """The listing by prefix, delimiter, marker and limit: JSON or lines of text."""
        if call.method == "HEAD":
            return Reply(status=204, headers=headers, content_type=_TEXT)
        limit = call.one("limit")
        most = int(limit) if limit.isdigit() else _MOST_NAMES
        if most > _MOST_NAMES:
            raise Refusal(412, f"Maximum limit is {_MOST_NAMES}")
        parts = (call.one(name) for name in ("prefix", "marker", "delimiter"))
        entries = list(islice(selected(names, *parts), most))
        if call.one("format") == "json" or "application/json" in call.header("Accept"):
            rows = [{"subdir": name} if folder else row_of(name) for name, folder in entries]
            return Reply(body=rows, headers=headers)
        lines = "".join(f"{name}\n" for name, _ in entries).encode("utf-8")
        status = 200 if lines else 204
        return Reply(status=status, body=lines, headers=headers, content_type=_TEXT)

    # ---- containers ----

    def _container(self, account: str, name: str) -> Container:
        home = self._core.state.containers.get(f"{account}/{name}")
        if home is None:
            raise Refusal(404, "")
        return home

    @route(app, ["PUT"], "/v1/<account>/<container>")
    def create_container(self, call: Call, account: str, container: str) -> Reply:
        state = self._core.state
        _check_name(container)
        if len(container.encode()) > 256:
            raise Refusal(400, "Container name length is longer than 256")
        home = state.containers.get(f"{account}/{container}")
        if home is None:
            id_, now = f"{account}/{container}", self._core.now()
            state.containers.put(Container(id=id_, account=account, name=container, created_at=now))
        return Reply(status=201 if home is None else 202)

    @route(app, ["GET"], "/v1/<account>/<container>")
    def container(self, call: Call, account: str, container: str) -> Reply:
        home = self._container(account, container)
        headers = {
            "X-Container-Object-Count": str(self._count(home)),
            "X-Container-Bytes-Used": str(home.bytes),
            "X-Timestamp": f"{home.created_at:.5f}",
        }

        def row_of(name: str) -> dict[str, Any]:
            return _listed(self._object(account, container, name))

        return self._listing(call, self._names.of(home.id), row_of, headers)

    @route(app, ["DELETE"], "/v1/<account>/<container>")
    def delete_container(self, call: Call, account: str, container: str) -> Reply:
        home = self._container(account, container)
        if self._core.state.objects.count("container", home.id):
            raise Refusal(409, "")
        self._core.state.containers.remove(home.id)
        self._names.forget(home.id)
        return Reply(status=204)

    # ---- objects ----

    def _object(self, account: str, container: str, name: str) -> StoredObject:
        stored = self._core.state.objects.get(f"{account}/{container}/{name}")
        if stored is None:
            raise Refusal(404, "")
        return stored

    def _shape(self, stored: StoredObject) -> tuple[list[tuple[str, int]], str]:
        """The (key, size) of the parts in order, and the value of the ETag header."""
        if stored.segments is not None:
            parts = []
            for segment in stored.segments:
                part = self._object(stored.account, segment.container, segment.name)
                inner, _ = self._shape(part)
                parts += inner
            return parts, f'"{stored.etag}"'
        if stored.manifest is not None:
            container, _, prefix = stored.manifest.partition("/")
            names = selected(self._names.of(f"{stored.account}/{container}"), prefix, "", "")
            rows = [self._object(stored.account, container, name) for name, _ in names]
            rows = [row for row in rows if row.manifest is None]
            digest = hashlib.md5("".join(o.etag for o in rows).encode(), usedforsecurity=False)
            return [(o.blob, o.size) for o in rows], f'"{digest.hexdigest()}"'
        return [(stored.blob, stored.size)], stored.etag

    @route(app, ["GET"], "/v1/<account>/<container>/<path:name>")
    def get_object(self, call: Call, account: str, container: str, name: str) -> Reply:
        stored = self._object(account, container, name)
        headers = {
            "Last-Modified": datetimeToString(stored.created_at).decode("ascii"),
            "X-Timestamp": f"{stored.created_at:.5f}",
            "Accept-Ranges": "bytes",
        }
        if stored.manifest is not None:
            headers["X-Object-Manifest"] = quote(stored.manifest)
        if stored.segments is not None:
            headers["X-Static-Large-Object"] = "True"
        parts, etag = self._shape(stored)
        size = sum(part_size for _, part_size in parts)
        headers["ETag"] = etag
        status, start, end = 200, 0, size
        if call.header("Range") and (part := byte_range(call.header("Range"), size)):
            status, (start, end) = 206, part
            headers["Content-Range"] = f"bytes {start}-{end - 1}/{size}"
        headers["Content-Length"] = str(end - start)
        return Reply(
            status=status,
            headers=headers,
            content_type=stored.content_type,
            pieces=self._bodies.pieces(parts, start, end),
        )

    @route(app, ["PUT"], "/v1/<account>/<container>/<path:name>")
    async def put_object(self, call: Call, account: str, container: str, name: str) -> Reply:
        self._container(account, container)
        _check_name(name)
        if len(name.encode()) > 1024:
            raise Refusal(400, "Object name length of 1024 exceeded")
        before = self._core.state.objects.get(f"{account}/{container}/{name}")
        if before is not None and call.header("If-None-Match") == "*":
            raise Refusal(412, "")
        source = call.header("X-Copy-From")
        if source:
            return await self._copy(call, account, _split(source), (container, name))
        if call.one("multipart-manifest") == "put":
            return self._put_static(call, account, container, name)
        blob, size, etag = await self._bodies.write(pieces_of(call.content))
        declared = call.header("ETag").strip('"').lower()
        if declared and declared != etag:
            self._bodies.remove(blob)
            raise Refusal(422, "")
        manifest = unquote(call.header("X-Object-Manifest")) or None
        return self._store(
            account,
            container,
            name,
            blob=blob,
            size=size,
            etag=etag,
            content_type=call.header("Content-Type") or "application/octet-stream",
            manifest=manifest,
        )

    def _store(self, account: str, container: str, name: str, **more: Any) -> Reply:
        """Write the record, drop the content that it replaces, and answer."""
        state = self._core.state
        id_ = f"{account}/{container}/{name}"
        before = state.objects.get(id_)
        home = self._container(account, container)
        new = StoredObject(
            id=id_,
            account=account,
            container=container,
            name=name,
            created_at=self._core.now(),
            **more,
        )
        former_size = 0 if before is None else before.size
        with state.transaction():
            state.objects.put(new)
            state.containers.put(evolve(home, bytes=home.bytes + new.size - former_size))
        if before is None:
            self._names.add(home.id, name)
        elif before.blob != new.blob:
            self._bodies.remove(before.blob)
        modified = datetimeToString(new.created_at).decode("ascii")
        return Reply(
            status=201,
            headers={"ETag": new.etag, "Last-Modified": modified},
            content_type="text/html; charset=UTF-8",
        )

    def _put_static(self, call: Call, account: str, container: str, name: str) -> Reply:
        entries = call.read(list[_ManifestEntry], "Manifest must be valid JSON")
        segments, faults = [], []
        for entry in entries:
            in_container, in_name = _split(entry.path)
            part = self._core.state.objects.get(f"{account}/{in_container}/{in_name}")
            if part is None:
                faults.append(f"{quote(entry.path)}, 404 Not Found")
                continue
            if entry.etag and entry.etag.strip('"') != part.etag:
                faults.append(f"{quote(entry.path)}, Etag Mismatch")
            if entry.size_bytes is not None and entry.size_bytes != part.size:
                faults.append(f"{quote(entry.path)}, Size Mismatch")
            segments.append(
                Segment(container=in_container, name=in_name, etag=part.etag, size=part.size)
            )
        if faults or not segments:
            raise Refusal(400, "Errors:\n" + "\n".join(faults or ["the manifest is empty"]))
        digest = hashlib.md5("".join(s.etag for s in segments).encode(), usedforsecurity=False)
        reply = self._store(
            account,
            container,
            name,
            blob="",
            size=sum(s.size for s in segments),
            etag=digest.hexdigest(),
            content_type=call.header("Content-Type") or "application/octet-stream",
            segments=tuple(segments),
        )
        return evolve(reply, headers={**reply.headers, "ETag": f'"{digest.hexdigest()}"'})

    async def _copy(
        self, call: Call, account: str, source: tuple[str, str], target: tuple[str, str]
    ) -> Reply:
        """Copy the content, or the manifest of a static large object when the query asks for it."""
        stored = self._object(account, *source)
        self._container(account, target[0])
        if stored.segments is not None and call.one("multipart-manifest") == "get":
            more: dict[str, Any] = {"blob": "", "size": stored.size, "etag": stored.etag}
            more["segments"] = stored.segments
        else:
            parts, _ = self._shape(stored)
            size = sum(part_size for _, part_size in parts)
            blob, size, etag = await self._bodies.write(self._bodies.pieces(parts, 0, size))
            more = {"blob": blob, "size": size, "etag": etag}
        reply = self._store(account, *target, content_type=stored.content_type, **more)
        copied = {"X-Copied-From": quote("/".join(source))}
        return evolve(reply, headers={**reply.headers, **copied})

    @route(app, ["DELETE"], "/v1/<account>/<container>/<path:name>")
    def delete_object(self, call: Call, account: str, container: str, name: str) -> Reply:
        stored = self._object(account, container, name)
        if call.one("multipart-manifest") == "delete" and stored.segments is not None:
            deleted = missing = 0
            for segment in stored.segments:
                id_ = f"{account}/{segment.container}/{segment.name}"
                part = self._core.state.objects.get(id_)
                if part is None:
                    missing += 1
                else:
                    self._remove(part)
                    deleted += 1
            self._remove(stored)
            return Reply(
                body={
                    "Response Status": "200 OK",
                    "Response Body": "",
                    "Number Deleted": deleted + 1,
                    "Number Not Found": missing,
                    "Errors": [],
                }
            )
        self._remove(stored)
        return Reply(status=204)

    def _remove(self, stored: StoredObject) -> None:
        home = self._container(stored.account, stored.container)
        self._core.state.containers.put(evolve(home, bytes=home.bytes - stored.size))
        self._core.state.objects.remove(stored.id)
        self._names.remove(f"{stored.account}/{stored.container}", stored.name)
        self._bodies.remove(stored.blob)


def _listed(stored: StoredObject) -> dict[str, Any]:
    """The row of an object in the listing of its container."""
    row = {
        "name": stored.name,
        "bytes": stored.size,
        "hash": stored.etag,
        "content_type": stored.content_type,
        "last_modified": _exact(stored.created_at),
    }
    if stored.segments is not None:
        row["slo_etag"] = f'"{stored.etag}"'
    return row


def _check_name(name: str) -> None:
    """Check a new container's or object's name: safe as lines of a listing and as a file's path.

    Raises Refusal 412 for NUL, as Swift does, and 400 for line ends and the segments `.` and `..`,
    as its filter `name_check` does.
    """
    if "\0" in name:
        raise Refusal(412, "Invalid UTF8 or contains NULL")
    if "\r" in name or "\n" in name:
        raise Refusal(400, "The name must not contain the end of a line")
    if not {".", ".."}.isdisjoint(name.split("/")):
        raise Refusal(400, "The name must not contain a segment '.' or '..'")


def _split(path: str) -> tuple[str, str]:
    """Container and name of `/container/name`, percent-encoded. Raises Refusal 412."""
    container, slash, name = unquote(path).lstrip("/").partition("/")
    if not slash or not container or not name:
        raise Refusal(412, "X-Copy-From header must be of the form <container name>/<object name>")
    return container, name


def _exact(seconds: float) -> str:
    """A listing's `last_modified`, to the microsecond."""
    return text_of(seconds, "bare")[:-6] + f"{int(seconds % 1 * 1_000_000):06d}"
