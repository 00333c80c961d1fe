"""What forced deletions have left in the cloud: told in the log, and found by `svcd orphans`.

Nothing may be left that was not told; the finder shows exactly what there is, and what it removes
leaves nothing.
"""

from __future__ import annotations

from collections.abc import Iterator, Sequence
from typing import TYPE_CHECKING, Any

from twisted.internet.defer import Deferred
from twisted.logger import globalLogPublisher

from svcd.cli.orphan_search import Rows, Rules, judged
from svcd.clients.ownership_tags import Kind, TaggedCloud, Thing
from svcd.model.secret import Secret
from svcd.ports.cloud import CloudError
from svcd.settings import CloudSettings
from svcd.testing import CLOUD_URL

if TYPE_CHECKING:
    from tests.simulation.world import World

_TOLD = "was dropped by force; left in the cloud"
_ROUNDS = 20
_PAUSE_S = 10.0


class Told:
    """Hears what is told of forced deletions: cluster id -> what is left, as the log says it."""

    def __init__(self) -> None:
        self.left: dict[str, str] = {}
        globalLogPublisher.addObserver(self._hear)

    def close(self) -> None:
        globalLogPublisher.removeObserver(self._hear)

    def _hear(self, event: dict[str, Any]) -> None:
        if _TOLD in (event.get("log_format") or ""):
            self.left[event["id"]] = event["left"]


def _cloud(world: World, tenant: str) -> TaggedCloud:
    """As the tenant's user sees it."""
    token = world.token(tenant) if world.trusted else world.outsiders_token(tenant)
    settings = CloudSettings(auth_url=f"{CLOUD_URL}/identity/v3")
    return TaggedCloud(world.svcd._memory, world.clock, settings, Secret(token), tenant)


def _orphans(world: World, tenant: str, cloud: TaggedCloud) -> Sequence[Thing]:
    """All that the finder may remove."""
    with world.outsider():
        things: Sequence[Thing] = world.svcd.result_of(Deferred.fromCoroutine(cloud.things()))
    rows = world.rows(f"select id, record from clusters where tenant_id = '{tenant}'")
    trusts = world.rows("select json_extract(record, '$.trust_id') from clusters")
    known = Rows(
        installation=world.svcd._sealer.installation,
        clusters=frozenset(str(id_) for id_, _ in rows),
        trusts=frozenset(str(id_) for (id_,) in trusts if id_),
        job_credentials=frozenset(
            str(name) for (name,) in world.rows("select name from job_credentials")
        ),
    )
    found = judged(things, known, Rules(unmarked=True, young_s=0.0), world.clock.seconds())
    for each in found:
        if each.why:
            world.watch.breach(f"{each.thing.kind} {each.thing.name} is not removed: {each.why}")
    return [each.thing for each in found if not each.why]


def _was_told(thing: Thing, told: str) -> bool:
    """By its id, or as asked for and not seen, or with all that could not be looked at."""
    if thing.id in told or "unknown others" in told:
        return True
    match thing.kind:
        case Kind.SERVER:
            return f"server {thing.name} (" in told
        case Kind.VOLUME:
            instance = thing.name.removeprefix("volume_").rpartition("_")[0]
            return f"volumes of {instance} (" in told
        case Kind.FLOATING_IP:
            return "floating IP of " in told
        case Kind.SECURITY_GROUP | Kind.SERVER_GROUP:
            return f"groups named {thing.name}" in told
        case _:
            return False


def _there(world: World) -> set[str]:
    """Ids of what the cloud holds for clusters without a row."""
    state = world.svcd.cloud.core.state
    rows = {str(id_) for (id_,) in world.rows("select id from clusters")}
    found: set[tuple[str, str]] = set()
    for family in (state.servers, state.volumes):
        things: Any = family.values()
        found |= {(each.id, each.metadata.get("svcd_cluster_id", "nobody")) for each in things}
    found |= {(each.id, each.description.split(":")[1]) for each in state.floating_ips.values()}
    for groups in (state.security_groups, state.server_groups):
        named: Any = groups.values()
        found |= {
            (each.id, each.name.removeprefix("svcd-")) for each in named if each.name != "default"
        }
    return {id_ for id_, cluster_id in found if cluster_id not in rows}


def at_rest(world: World, excused: frozenset[str]) -> Iterator[str]:
    """What is left and was not told, or is not found."""
    found: set[str] = set()
    for tenant in world.tenants:
        for thing in _orphans(world, tenant, _cloud(world, tenant)):
            found.add(thing.id)
            cluster_id = thing.tag.cluster_id if thing.tag is not None else ""
            told = world.told.left.get(cluster_id, "")
            if cluster_id not in excused and not _was_told(thing, told):
                name = world.name(cluster_id)
                yield f"{thing.kind} {thing.name} of {name} is left, told was: {told or 'nothing'}"
    there = _there(world)
    if there - found:
        yield f"{len(there - found)} things of no cluster are not found as orphans"


def removed(world: World) -> Iterator[str]:
    """Remove what the finder finds, as its command does: kind by kind, again until it is gone."""
    for tenant in world.tenants:
        cloud = _cloud(world, tenant)
        for _ in range(_ROUNDS):
            left = _orphans(world, tenant, cloud)
            if not left:
                break
            for thing in [t for t in left if t.kind is left[0].kind]:
                with world.outsider():
                    try:
                        world.svcd.result_of(Deferred.fromCoroutine(cloud.remove(thing)))
                    except CloudError as error:
                        world.tell(f"{thing.kind} {thing.name} is not removed yet: {error.text}")
            world.advance(_PAUSE_S)
        else:
            yield f"orphans of {tenant} that cannot be removed: {[t.name for t in left]}"
