"""Records as the JSON objects of the interface, unwrapped. Pure; encoding is the caller's.

Note: absent values. A text of the interface is always a text: a description that was never given is
"". What the interface calls optional, or shows only "when" or "once" something holds, is left out
until then (`floating_ip_pool`, `neutron_management_network`, `cluster_template_id`,
`node_group_template_id`, `user_keypair_id`, `internal_ip`, `management_ip`). `updated_at` and the
fields of a job execution are null until they are known, and stay in the answer.

Additive fields, beyond the interface: of a cluster `status_description`, `is_transient`,
`neutron_management_network`, `created_at`, `updated_at`; of an instance `server_id`, `status`; of
an image `description`; of a cluster template `default_image_id` when given; of an execution's info
`failure` and, while something that it needs is missing, `waiting`.

Source: interface, "Resources and their fields"; behaviour, Part I 10-14, 16, 26.
"""

from __future__ import annotations

from collections.abc import Mapping
from typing import Any, TypeAlias

from svcd.model.cloud import Image
from svcd.model.cluster import Cluster, ClusterEvent, Instance, NodeGroup
from svcd.model.ids import JobBinaryId, Timestamp, iso_seconds
from svcd.model.job import (
    Credentials,
    DataSource,
    Execution,
    Job,
    JobBinary,
    JobBinaryInternal,
)
from svcd.model.template import ClusterTemplate, NodeGroupTemplate, TemplateNodeGroup

Json: TypeAlias = dict[str, Any]

IMAGE_USERNAME = "_svc_username"
IMAGE_DESCRIPTION = "_svc_description"
IMAGE_TAG = "_svc_tag_"
IMAGE_TAG_VALUE = "True"

_MASK = "***"


def image_tags(image: Image) -> list[str]:
    """The tags of a platform image, sorted."""
    return sorted(p.removeprefix(IMAGE_TAG) for p in image.properties if p.startswith(IMAGE_TAG))


def image(image: Image) -> Json:
    """An image of the registry; `metadata` shows what the registry keeps and nothing else."""
    kept = {
        key: value
        for key, value in image.properties.items()
        if key in (IMAGE_USERNAME, IMAGE_DESCRIPTION) or key.startswith(IMAGE_TAG)
    }
    return {
        "id": image.id,
        "name": image.name,
        "description": kept.get(IMAGE_DESCRIPTION, ""),
        "status": image.status.upper(),
        "username": kept.get(IMAGE_USERNAME, ""),
        "tags": image_tags(image),
        "minDisk": image.min_disk_gib,
        "minRam": image.min_ram_mib,
        "progress": 100 if image.status.upper() == "ACTIVE" else 0,
        "metadata": kept,
    }


def node_group_template(record: NodeGroupTemplate) -> Json:
    """A node group template."""
    result: Json = {
        "id": record.id,
        "name": record.name,
        "description": record.description or "",
        "plugin_name": record.plugin_name,
        "engine_version": record.engine_version,
        **_group_values(record),
    }
    return result


def _group_values(group: NodeGroupTemplate | TemplateNodeGroup | NodeGroup) -> Json:
    values: Json = {
        "node_processes": list(group.node_processes),
        "flavor_id": group.flavor_id,
        "node_configs": group.node_configs,
        "volumes_per_node": group.volumes_per_node,
        "volumes_size": group.volumes_size,
        "volume_mount_prefix": group.volume_mount_prefix,
    }
    if group.floating_ip_pool is not None:
        values["floating_ip_pool"] = group.floating_ip_pool
    return values


def _node_group(group: TemplateNodeGroup | NodeGroup) -> Json:
    values: Json = {"name": group.name, "count": group.count, **_group_values(group)}
    if group.node_group_template_id is not None:
        values["node_group_template_id"] = group.node_group_template_id
    return values


def cluster_template(record: ClusterTemplate) -> Json:
    """A cluster template."""
    result: Json = {
        "id": record.id,
        "name": record.name,
        "description": record.description or "",
        "plugin_name": record.plugin_name,
        "engine_version": record.engine_version,
        "cluster_configs": record.cluster_configs,
        "anti_affinity": list(record.anti_affinity),
        "node_groups": [_node_group(group) for group in record.node_groups],
    }
    if record.neutron_management_network is not None:
        result["neutron_management_network"] = record.neutron_management_network
    if record.default_image_id is not None:
        result["default_image_id"] = record.default_image_id
    return result


def cluster(record: Cluster) -> Json:
    """A cluster with its groups and instances. Never a key, a trust or a sealed text."""
    result: Json = {
        "id": record.id,
        "name": record.name,
        "description": record.description or "",
        "status": record.status.value,
        "status_description": record.explained(),
        "info": record.info,
        "plugin_name": record.plugin_name,
        "engine_version": record.engine_version,
        "default_image_id": record.default_image_id,
        "cluster_configs": record.cluster_configs,
        "anti_affinity": list(record.anti_affinity),
        "is_transient": record.is_transient,
        "node_groups": [
            {
                **_node_group(group),
                "created": iso_seconds(group.created_at),
                "updated": iso_seconds(group.updated_at or group.created_at),
                "instances": [_instance(each) for each in group.instances],
            }
            for group in record.node_groups
        ],
        "created_at": record.created_at,
        "updated_at": record.updated_at,
    }
    if record.cluster_template_id is not None:
        result["cluster_template_id"] = record.cluster_template_id
    if record.user_keypair_id is not None:
        result["user_keypair_id"] = record.user_keypair_id
    if record.neutron_management_network is not None:
        result["neutron_management_network"] = record.neutron_management_network
    return result


def _instance(record: Instance) -> Json:
    result: Json = {
        "instance_name": record.instance_name,
        "instance_id": record.instance_id,
        "volumes": [volume.volume_id for volume in record.volumes],
    }
    for name, value in (
        ("internal_ip", record.internal_ip),
        ("management_ip", record.management_ip),
        ("server_id", record.server_id),
        ("status", record.status),
    ):
        if value is not None:
            result[name] = value
    return result


def cluster_event(record: ClusterEvent) -> Json:
    """One line of a cluster's story (additive)."""
    return {
        "at": record.at,
        "generation": record.generation,
        "step": record.step,
        "machine": record.machine,
        "outcome": record.outcome,
        "code": record.code,
        "text": record.text,
        "attempt": record.attempt,
        "until": record.until,
    }


def _credentials(given: Credentials | None, hide: bool) -> Json:
    if given is None:
        return {}
    if hide:
        return {"user": _MASK, "password": _MASK}
    return {"user": given.user, "password": given.password}


def data_source(record: DataSource, hide: bool = False, created: bool = False) -> Json:
    """A data source. hide: mask the credentials. created: the answer of its creation."""
    result: Json = {
        "id": record.id,
        "name": record.name,
        "description": record.description or "",
        "type": record.type,
        "url": record.url,
        "credentials": _credentials(record.credentials, hide),
        "tenant_id": record.tenant_id,
        "created_at": record.created_at,
    }
    if not created:
        result["updated_at"] = record.updated_at
    return result


def job_binary_internal(record: JobBinaryInternal) -> Json:
    """An internal binary without its bytes."""
    return {
        "id": record.id,
        "name": record.name,
        "tenant_id": record.tenant_id,
        "datasize": record.datasize,
        "created_at": record.created_at,
        "updated_at": record.updated_at,
    }


def job_binary(record: JobBinary, hide: bool = False, created: bool = False) -> Json:
    """A job binary. hide: mask the credentials. created: the answer of its creation."""
    result: Json = {
        "id": record.id,
        "name": record.name,
        "description": record.description or "",
        "url": record.url,
        "extra": _credentials(record.extra, hide),
        "tenant_id": record.tenant_id,
        "created_at": record.created_at,
    }
    if not created:
        result["updated_at"] = record.updated_at
    return result


def job(record: Job, binaries: Mapping[JobBinaryId, JobBinary], hide: bool = False) -> Json:
    """A job with its binaries as full objects; `binaries` holds at least those it names."""

    def expanded(ids: tuple[JobBinaryId, ...]) -> list[Json]:
        return [job_binary(binaries[each], hide) for each in ids if each in binaries]

    return {
        "id": record.id,
        "name": record.name,
        "description": record.description or "",
        "type": record.type.value,
        "mains": expanded(record.mains),
        "libs": expanded(record.libs),
        "tenant_id": record.tenant_id,
        "created_at": record.created_at,
        "updated_at": record.updated_at,
    }


def execution(record: Execution) -> Json:
    """A job execution; `info` is the engine's record with our word for the status."""
    info: Json = {**record.record, "status": record.status.value}
    if record.failure is not None:
        info["failure"] = {
            "code": record.failure.code,
            "step": record.failure.step,
            "text": record.failure.text,
        }
    if record.waiting is not None:
        until = record.waiting.until
        info["waiting"] = {
            "code": record.waiting.code,
            "step": record.waiting.step,
            "text": record.waiting.text,
            "since": iso_seconds(record.waiting.since),
            "until": None if until is None else iso_seconds(until),
        }
    configs = record.job_configs
    return {
        "id": record.id,
        "job_id": record.job_id,
        "cluster_id": record.cluster_id,
        "input_id": record.input_id,
        "output_id": record.output_id,
        "job_configs": {}
        if configs is None
        else {"configs": configs.configs, "args": configs.args, "params": configs.params},
        "info": info,
        "workflow_job_id": record.workflow_job_id,
        "return_code": record.return_code,
        "progress": record.progress,
        "tenant_id": record.tenant_id,
        "start_time": _seconds_or_none(record.start_time),
        "end_time": _seconds_or_none(record.end_time),
        "created_at": record.created_at,
        "updated_at": record.updated_at,
    }


def _seconds_or_none(stamp: Timestamp | None) -> str | None:
    return None if stamp is None else iso_seconds(stamp)
