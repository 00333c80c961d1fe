"""What a cluster's row says of times, made believable again when a clock was set meanwhile. Pure.

Note: which times. A daemon's own time never goes back and never leaps (svcd.runtime.clock), so what
it has written itself needs no check. A row may be another's: of a former process, which ended while
the machine's clock was wrong, or of a daemon on another machine. Then

- what lies ahead is cut: a status began now at the latest, and a call may be under way for CALL_S
  at most. So no deadline is ever further away than its setting says, and no wait longer;
- an intent that looks old is counted from now: whether the machine's clock was set forward or the
  daemon was away for long cannot be known, and a call that was made just before the end of the
  former daemon must not be made twice.

A status that looks older than it is ends sooner; that too cannot be distinguished from a long stop.
"""

from __future__ import annotations

from collections.abc import Mapping
from typing import Any, Final

from attrs import evolve

from svcd.model.cluster import Cluster
from svcd.model.ids import InstanceId, timestamp
from svcd.provisioning.decide import lifecycle
from svcd.provisioning.decide.observed import CALL_S, VISIBLE_S

_SKEW_S: Final = 1.0
"""By so much the clocks of daemons may differ without a word."""


def believable(cluster: Cluster, now: float, alien: bool) -> Cluster:
    """`cluster` as the note says; the same object when nothing has to be changed.

    alien: another daemon than this one, or its former process, may have been at work until now.
    """
    ahead = timestamp(now + _SKEW_S)
    longest = timestamp(now + _SKEW_S + CALL_S)
    old = timestamp(now - VISIBLE_S)
    call = timestamp(now + CALL_S)
    changes: dict[InstanceId, Mapping[str, Any]] = {}
    for each in cluster.instances():
        asked = each.requested_at
        if asked is None:
            continue
        unsure = alien and each.step == lifecycle.NOTHING and asked < old
        if asked > longest or unsure:
            changes[each.instance_id] = {"requested_at": call}
    sound = lifecycle.with_instances(cluster, changes)
    if sound.status_since > ahead:
        sound = evolve(sound, status_since=timestamp(now))
    return sound
