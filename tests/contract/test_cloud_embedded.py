"""The cloud's contract suites against the embedded cloud, in memory and on a virtual clock."""

from __future__ import annotations

from collections.abc import Coroutine
from typing import Any
from urllib.parse import quote

from twisted.trial.unittest import SynchronousTestCase

from svcd.model.ids import TenantId
from svcd.runtime.tasks import sleep
from svcd.settings import Embedded
from tests.contract.compute import ComputeContract
from tests.contract.identity import IdentityContract
from tests.contract.image import ImageContract
from tests.contract.network import NetworkContract
from tests.contract.object_store import ObjectStoreContract
from tests.contract.volume import VolumeContract
from tests.unit.embedded.cloud.rig import ORIGIN, PLAIN_IMAGE_ID, Rig


class EmbeddedCase(SynchronousTestCase):
    """Hooks for a cloud of its own in each test."""

    embedded = Embedded(boot_s=3.0, delete_s=1.0, volume_s=0.7, list_lag_s=0.4)

    def setUp(self) -> None:
        self.rig = Rig(self.embedded)
        self.auth_url = ORIGIN + "/identity/v3"
        self.agent, self.http, self.clock = self.rig.agent, self.rig.http, self.rig.clock
        self.cloud = self.rig.client("svcd", "svcd", "service")
        self.identity = self.rig.identity(self.cloud)
        self.user = self.password = "alice"
        self.tenant = TenantId("alpha")
        self.token = self.rig.token("alice", "alice", "alpha")
        self.image_id = PLAIN_IMAGE_ID
        self.flavor_id = "1"
        self.keypair = "demo"
        self.pool = "public"
        self.count = 0

    def drive(self, work: Coroutine[Any, Any, None]) -> None:
        self.rig.run(work)

    async def pause(self, seconds: float) -> None:
        await sleep(self.rig.clock, seconds)

    def unique(self, prefix: str) -> str:
        self.count += 1
        return f"{prefix}-{self.count}"


class EmbeddedIdentity(EmbeddedCase, IdentityContract):
    pass


class EmbeddedCompute(EmbeddedCase, ComputeContract):
    pass


class EmbeddedImage(EmbeddedCase, ImageContract):
    pass


class EmbeddedNetwork(EmbeddedCase, NetworkContract):
    pass


class EmbeddedVolume(EmbeddedCase, VolumeContract):
    pass


class EmbeddedObjectStore(EmbeddedCase, ObjectStoreContract):
    async def put_object(self, container: str, name: str, content: bytes) -> None:
        base = f"/object-store/v1/AUTH_{self.tenant}/{container}"
        self.rig.raw("PUT", base, token=self.token.reveal())
        self.rig.raw("PUT", f"{base}/{quote(name)}", content, token=self.token.reveal())
