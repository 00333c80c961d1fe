"""The types of identifiers, and the formats of time."""

from __future__ import annotations

import datetime
import email.utils
from typing import NewType

TenantId = NewType("TenantId", str)
ClusterId = NewType("ClusterId", str)
InstanceId = NewType("InstanceId", str)
NodeGroupTemplateId = NewType("NodeGroupTemplateId", str)
ClusterTemplateId = NewType("ClusterTemplateId", str)
DataSourceId = NewType("DataSourceId", str)
JobBinaryInternalId = NewType("JobBinaryInternalId", str)
JobBinaryId = NewType("JobBinaryId", str)
JobId = NewType("JobId", str)
ExecutionId = NewType("ExecutionId", str)

Timestamp = NewType("Timestamp", str)
"""UTC as `YYYY-MM-DD HH:MM:SS.ffffff`, as in `created_at`; the texts sort by time."""


def timestamp(seconds: float) -> Timestamp:
    """`seconds` since the epoch as the text that records and the v1.1 resources carry."""
    moment = datetime.datetime.fromtimestamp(seconds, datetime.UTC).replace(tzinfo=None)
    return Timestamp(moment.isoformat(" ", "microseconds"))


def seconds_of(stamp: Timestamp) -> float:
    """The inverse of `timestamp`: seconds since the epoch."""
    moment = datetime.datetime.fromisoformat(stamp).replace(tzinfo=datetime.UTC)
    return moment.timestamp()


def iso_seconds(stamp: Timestamp) -> str:
    """`YYYY-MM-DDTHH:MM:SS`: `start_time`, `end_time`, node group `created` and `updated`.

    Source: interface, "Timestamp formats in v1.1 resources".
    """
    return stamp[:10] + "T" + stamp[11:19]


def http_date(stamp: Timestamp) -> str:
    """`Wed, 09 Oct 2013 12:37:15 GMT`: the times in `info`, as the workflow engine writes them."""
    return email.utils.formatdate(int(seconds_of(stamp)), usegmt=True)
