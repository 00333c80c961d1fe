"""Nova v2.1 without servers: versions, flavors, key pairs, limits. Source: its API."""

from __future__ import annotations

import hashlib
import re
from typing import Any

import msgspec
from cryptography.exceptions import UnsupportedAlgorithm
from cryptography.hazmat.primitives.serialization import load_ssh_public_key
from klein import Klein

from svcd.embedded.cloud.core import DEMO_KEYPAIR, FLAVORS, new_ssh_key
from svcd.embedded.cloud.openstack import Call, Service, page, text_of
from svcd.embedded.cloud.quotas import quota_set
from svcd.embedded.cloud.records import KeyPair
from svcd.embedded.cloud.servers import asked_version, flavor_body, microversion
from svcd.embedded.services import Refusal, Reply
from svcd.web.routing import route

_ENVELOPES = {
    400: "badRequest",
    403: "forbidden",
    404: "itemNotFound",
    405: "badMethod",
    406: "computeFault",
    409: "conflictingRequest",
    413: "overLimit",
    429: "overLimit",
    503: "serviceUnavailable",
}


_FIXED_LIMITS = {
    "key_pairs": 100,
    "metadata_items": 128,
    "server_group_members": 1000,
    "server_groups": 1000,
}


class _NewKeyPair(msgspec.Struct):
    name: str
    public_key: str | None = None
    type: str = "ssh"


class NovaService(Service):
    """Nova, and Cinder with the same error envelope."""

    def envelope(self, refusal: Refusal) -> Reply:
        """{"badRequest": {code, message}} and the like; for 401 that of the token middleware."""
        if refusal.status == 401:
            return self.unauthorized(refusal)
        name = _ENVELOPES.get(refusal.status, "computeFault")
        error = {"code": refusal.status, "message": refusal.message}
        if refusal.status in (413, 429):
            error["retryAfter"] = refusal.headers.get("Retry-After", "0")
        return Reply(status=refusal.status, body={name: error}, headers=self.headers(refusal))


class ComputeBasics(NovaService):
    """The operations that need no server."""

    app = Klein()
    where = "compute"

    def authorize(self, call: Call, segments: list[str]) -> None:
        """Version documents are open. Every answer names its microversion."""
        super().authorize(call, segments)
        asked, spoken = asked_version(call), ""
        try:
            spoken = "{}.{}".format(*self.version_of(call))
        finally:
            call.set_answer_header("OpenStack-API-Version", f"compute {spoken or asked}")
            call.set_answer_header("X-OpenStack-Nova-API-Version", spoken or asked)
            call.set_answer_header("Vary", "X-OpenStack-Nova-API-Version")

    def version_of(self, call: Call) -> tuple[int, int]:
        """The microversion of the answer. Raises Refusal 400 or 406."""
        return microversion(call, self._core.newest_compute)

    # ---- versions ----

    def _version(self) -> dict[str, Any]:
        return {
            "id": "v2.1",
            "status": "CURRENT",
            "version": "{}.{}".format(*self._core.newest_compute),
            "min_version": "2.1",
            "updated": "2013-07-23T11:33:21Z",
            "links": [{"rel": "self", "href": f"{self._core.public_url}/compute/v2.1/"}],
            "media-types": [
                {
                    "base": "application/json",
                    "type": "application/vnd.openstack.compute+json;version=2.1",
                }
            ],
        }

    @route(app, ["GET"], "/")
    def versions(self, call: Call) -> Reply:
        return Reply(body={"versions": [self._version()]})

    @route(app, ["GET"], "/v2.1")
    def version(self, call: Call) -> Reply:
        return Reply(body={"version": self._version()})

    @route(app, ["GET"], "/v2.1/extensions")
    def extensions(self, call: Call) -> Reply:
        return Reply(body={"extensions": []})

    # ---- flavors ----

    @route(app, ["GET"], "/v2.1/flavors")
    @route(app, ["GET"], "/v2.1/flavors/detail")
    def flavors(self, call: Call) -> Reply:
        rows, _ = page(call, list(FLAVORS.values()), lambda flavor: flavor.id)
        version = self.version_of(call)
        return Reply(body={"flavors": [flavor_body(self._core, row, version) for row in rows]})

    @route(app, ["GET"], "/v2.1/flavors/<flavor_id>")
    def flavor(self, call: Call, flavor_id: str) -> Reply:
        found = FLAVORS.get(flavor_id)
        if found is None:
            raise Refusal(404, f"Flavor {flavor_id} could not be found.")
        return Reply(body={"flavor": flavor_body(self._core, found, self.version_of(call))})

    @route(app, ["GET"], "/v2.1/flavors/<flavor_id>/os-extra_specs")
    def extra_specs(self, call: Call, flavor_id: str) -> Reply:
        return Reply(body={"extra_specs": {}})

    # ---- key pairs ----

    def _keypair(self, pair: KeyPair) -> dict[str, Any]:
        digest = hashlib.md5(pair.public_key.encode(), usedforsecurity=False).hexdigest()
        return {
            "name": pair.name,
            "public_key": pair.public_key,
            "fingerprint": ":".join(re.findall("..", digest)),
            "user_id": pair.user_id,
            "type": "ssh",
        }

    @route(app, ["GET"], "/v2.1/os-keypairs")
    def keypairs(self, call: Call) -> Reply:
        me = call.me.user_id
        mine = self._core.state.keypairs.having("user", me)
        demo = self._core.keypair(me, DEMO_KEYPAIR)
        if demo is not None and demo not in mine:
            mine.insert(0, demo)
        return Reply(body={"keypairs": [{"keypair": self._keypair(k)} for k in mine]})

    @route(app, ["POST"], "/v2.1/os-keypairs")
    def create_keypair(self, call: Call) -> Reply:
        new = call.read_in("keypair", _NewKeyPair)
        me = call.me.user_id
        if self._core.keypair(me, new.name) is not None:
            raise Refusal(409, f"Key pair '{new.name}' already exists.")
        public, private = new.public_key, ""
        if public is None:
            public, private = new_ssh_key()
        else:
            try:
                load_ssh_public_key(public.encode("utf-8"))
            except (ValueError, UnsupportedAlgorithm):
                raise Refusal(400, "Keypair data is invalid: failed to generate key") from None
        pair = KeyPair(
            id=f"{me}/{new.name}",
            user_id=me,
            name=new.name,
            public_key=public.strip(),
            created_at=self._core.now(),
        )
        self._core.state.keypairs.put(pair)
        body = self._keypair(pair)
        if private:
            body["private_key"] = private
        status = 201 if self.version_of(call) >= (2, 2) else 200
        return Reply(status=status, body={"keypair": body})

    @route(app, ["GET"], "/v2.1/os-keypairs/<name>")
    def keypair(self, call: Call, name: str) -> Reply:
        pair = self._core.keypair(call.me.user_id, name)
        if pair is None:
            raise Refusal(404, f"Keypair {name} not found for user {call.me.user_id}")
        created = text_of(pair.created_at, "bare")
        changed = {"created_at": created, "updated_at": None, "deleted_at": None}
        more = {"id": 1, "deleted": False, **changed}
        return Reply(body={"keypair": self._keypair(pair) | more})

    @route(app, ["DELETE"], "/v2.1/os-keypairs/<name>")
    def delete_keypair(self, call: Call, name: str) -> Reply:
        id_ = f"{call.me.user_id}/{name}"
        if self._core.state.keypairs.get(id_) is None:
            raise Refusal(404, f"Keypair {name} not found for user {call.me.user_id}")
        self._core.state.keypairs.remove(id_)
        return Reply(status=204 if self.version_of(call) >= (2, 2) else 202)

    # ---- limits and quotas ----

    def _used(self, project_id: str) -> dict[str, int]:
        """The resources that a project uses, by Nova's names."""
        used = self._core.used(project_id)
        return {
            "instances": used["instances"],
            "cores": used["cores"],
            "ram": used["ram_mib"],
            "server_groups": self._core.state.server_groups.count("project", project_id),
        }

    def _limits(self, project_id: str) -> dict[str, int]:
        core = self._core
        return {
            "instances": core.limit(project_id, "instances"),
            "cores": core.limit(project_id, "cores"),
            "ram": core.limit(project_id, "ram_mib"),
            **_FIXED_LIMITS,
        }

    @route(app, ["GET"], "/v2.1/limits")
    def limits(self, call: Call) -> Reply:
        most, used = self._limits(call.project), self._used(call.project)
        absolute = {
            "maxTotalInstances": most["instances"],
            "maxTotalCores": most["cores"],
            "maxTotalRAMSize": most["ram"],
            "maxServerMeta": most["metadata_items"],
            "maxTotalKeypairs": most["key_pairs"],
            "maxServerGroups": most["server_groups"],
            "maxServerGroupMembers": most["server_group_members"],
            "totalInstancesUsed": used["instances"],
            "totalCoresUsed": used["cores"],
            "totalRAMUsed": used["ram"],
            "totalServerGroupsUsed": used["server_groups"],
        }
        return Reply(body={"limits": {"rate": [], "absolute": absolute}})

    @route(app, ["GET"], "/v2.1/os-quota-sets/<project_id>")
    @route(app, ["GET"], "/v2.1/os-quota-sets/<project_id>/defaults")
    @route(app, ["GET"], "/v2.1/os-quota-sets/<project_id>/detail")
    def quota(self, call: Call, project_id: str) -> Reply:
        last = call.request.path.rstrip(b"/").rpartition(b"/")[2]
        limits = self._limits("" if last == b"defaults" else project_id)
        used = self._used(project_id) if last == b"detail" else None
        return Reply(body={"quota_set": quota_set(call, project_id, limits, used)})

    @route(app, ["GET"], "/v2.1/os-availability-zone")
    def zones(self, call: Call) -> Reply:
        zone = {"zoneName": "nova", "zoneState": {"available": True}, "hosts": None}
        return Reply(body={"availabilityZoneInfo": [zone]})
