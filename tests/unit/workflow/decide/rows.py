"""Rows for the tests of deciding, with defaults: an execution of a minute ago on cluster `c1`."""

from __future__ import annotations

from typing import Any

from svcd.model.cluster import Cluster, ClusterStatus
from svcd.model.ids import (
    ClusterId,
    DataSourceId,
    ExecutionId,
    JobId,
    TenantId,
    Timestamp,
    timestamp,
)
from svcd.model.job import Credentials, DataSource, Execution

NOW_S = 1_767_268_800.0
NOW = Timestamp("2026-01-01 12:00:00.000000")
C1 = ClusterId("c1")


def ago(seconds: float) -> Timestamp:
    return timestamp(NOW_S - seconds)


def execution(id_: str = "e", **fields: Any) -> Execution:
    return Execution(
        id=ExecutionId(id_),
        tenant_id=TenantId("t"),
        job_id=JobId("j"),
        **{"cluster_id": C1, "created_at": ago(100), **fields},
    )


def cluster(status: ClusterStatus = ClusterStatus.ACTIVE, **fields: Any) -> Cluster:
    return Cluster(
        id=C1,
        tenant_id=TenantId("t"),
        name="c1",
        plugin_name="fake",
        engine_version="1",
        default_image_id="i",
        status=status,
        status_since=ago(50),
        created_at=ago(1000),
        **fields,
    )


def source(url: str, account: Credentials | None = None, type_: str = "hdfs") -> DataSource:
    return DataSource(
        id=DataSourceId("s"),
        tenant_id=TenantId("t"),
        name="words",
        type=type_,
        url=url,
        credentials=account,
        created_at=ago(0),
    )
