"""Corrects the times in a cluster's row after a clock was set. Pure.

Note: which times. A daemon's own time never goes back and never leaps (svcd.runtime.clock), so
times that it has written itself need no check. Another writer may have written the row: a former
process, which ended while the machine's clock was wrong, or a daemon on another machine. Then

- svcd cuts times in the future: a status began now at the latest, and a call may be under way for
  CALL_S at most. So no deadline is further away than its setting says, and no wait is longer;
- the age, a time without use and a warning of a deletion count from now at the latest: no deletion
  by itself is later than its limit says, and each comes a minute after its warning or later;
- svcd counts an intent with an old time from now. It cannot know whether the machine's clock was
  set forward or the daemon was away for long, and must not repeat a call that the former daemon
  made just before its end.

A status with a time that is too old ends sooner; svcd cannot distinguish this from a long stop. So
a clock that was set far forward while no daemon ran ends a cluster by itself a minute after the
warning. A corrected `created_at` leaves the place of the cluster in lists.
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
"""Seconds. svcd tolerates this difference between the clocks of daemons."""


def corrected(cluster: Cluster, now: float, alien: bool) -> Cluster:
    """`cluster` with the corrections of the note; the same object when no time is wrong.

    alien: another daemon, or a former process of this one, may have driven it until now.
    """
    ahead = timestamp(now + _SKEW_S)
    longest = timestamp(now + _SKEW_S + CALL_S)
    old = timestamp(now - VISIBLE_S)
    call = timestamp(now + CALL_S)
    changes: dict[InstanceId, Mapping[str, Any]] = {}
    for instance in cluster.instances():
        asked = instance.requested_at
        if asked is None:
            continue
        unsure = alien and instance.step == lifecycle.NOTHING and asked < old
        if asked > longest or unsure:
            changes[instance.instance_id] = {"requested_at": call}
    sound = lifecycle.with_instances(cluster, changes)
    if sound.status_since > ahead:
        sound = evolve(sound, status_since=timestamp(now))
    times: dict[str, Any] = {
        name: timestamp(now)
        for name in ("created_at", "idle_since", "warned_at")
        if (getattr(sound, name) or "") > ahead
    }
    return evolve(sound, **times) if times else sound
