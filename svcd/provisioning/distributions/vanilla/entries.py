"""The configuration options of vanilla: default files of Hadoop, Oozie and Spark, and own options.

`site_of` says to which file of a machine svcd writes an option. This module leaves out the options
that svcd sets itself, and the options of parts that a cluster of svcd does not have (other file
systems, Kerberos, high availability, federation, timeline server).
"""

from __future__ import annotations

import enum
import functools
import json
from collections.abc import Iterator, Mapping
from importlib import resources

from attrs import frozen

from svcd.model import small_jobs
from svcd.model.template import ConfigValue
from svcd.provisioning.distributions.spi import ConfigEntry, Scope
from svcd.provisioning.distributions.vanilla.daemons import (
    DAEMONS,
    GENERAL,
    HDFS,
    JOBFLOW,
    MAPREDUCE,
    SPARK,
    YARN,
)
from svcd.provisioning.distributions.vanilla.topology import (
    REPLICATION,
)


class Site(enum.StrEnum):
    """The configuration files: for each a default file, and a site file that overrides it."""

    CORE = "core"
    HDFS = "hdfs"
    YARN = "yarn"
    MAPRED = "mapred"
    OOZIE = "oozie"
    SPARK = "spark"


TARGETS: Mapping[Site, str] = {
    Site.CORE: HDFS,
    Site.HDFS: HDFS,
    Site.YARN: YARN,
    Site.MAPRED: MAPREDUCE,
    Site.OOZIE: JOBFLOW,
    Site.SPARK: SPARK,
}

JVM_OPTIONS = "Daemon JVM Options"

CLUSTER_WIDE = frozenset(
    (
        REPLICATION,
        "dfs.blocksize",
        "dfs.permissions.enabled",
        "dfs.namenode.replication.min",
        "dfs.replication.max",
        "fs.trash.interval",
        "io.file.buffer.size",
        "io.compression.codecs",
        "mapreduce.job.counters.max",
        "mapreduce.job.ubertask.enable",
        "mapreduce.job.reduces",
        "mapreduce.job.maps",
        "mapreduce.map.memory.mb",
        "mapreduce.reduce.memory.mb",
        "mapreduce.map.java.opts",
        "mapreduce.reduce.java.opts",
        "mapreduce.task.io.sort.mb",
        "mapreduce.map.output.compress",
        "mapreduce.map.output.compress.codec",
        "mapreduce.output.fileoutputformat.compress",
        "mapreduce.output.fileoutputformat.compress.codec",
        "mapreduce.output.fileoutputformat.compress.type",
        "yarn.app.mapreduce.am.resource.mb",
        "yarn.app.mapreduce.am.command-opts",
        "yarn.scheduler.maximum-allocation-mb",
        "yarn.scheduler.minimum-allocation-mb",
    )
)
FIRST = CLUSTER_WIDE | frozenset(
    (
        "dfs.datanode.du.reserved",
        "dfs.datanode.failed.volumes.tolerated",
        "dfs.datanode.max.transfer.threads",
        "dfs.datanode.handler.count",
        "dfs.namenode.handler.count",
        "yarn.nodemanager.resource.memory-mb",
        "yarn.nodemanager.resource.cpu-vcores",
        "yarn.nodemanager.vmem-check-enabled",
        "yarn.nodemanager.pmem-check-enabled",
        "oozie.service.PurgeService.older.than",
        "oozie.launcher.default.memory.mb",
    )
)

# svcd sets these: another value would break the cluster, or svcd could not watch the cluster
HIDDEN = frozenset(
    (
        "fs.defaultFS",
        "fs.default.name",
        "hadoop.tmp.dir",
        "hadoop.http.staticuser.user",
        "hadoop.rpc.socket.factory.class.default",
        "hadoop.security.authentication",
        "hadoop.security.authorization",
        "dfs.namenode.name.dir",
        "dfs.namenode.edits.dir",
        "dfs.namenode.checkpoint.dir",
        "dfs.namenode.checkpoint.edits.dir",
        "dfs.datanode.data.dir",
        "dfs.datanode.address",
        "dfs.datanode.http.address",
        "dfs.datanode.ipc.address",
        "dfs.datanode.hostname",
        "dfs.hosts",
        "dfs.hosts.exclude",
        "dfs.namenode.rpc-address",
        "dfs.namenode.http-address",
        "dfs.namenode.https-address",
        "dfs.namenode.secondary.http-address",
        "dfs.namenode.secondary.https-address",
        "dfs.namenode.datanode.registration.ip-hostname-check",
        "dfs.http.policy",
        "dfs.webhdfs.enabled",
        "yarn.resourcemanager.hostname",
        "yarn.resourcemanager.address",
        "yarn.resourcemanager.scheduler.address",
        "yarn.resourcemanager.resource-tracker.address",
        "yarn.resourcemanager.admin.address",
        "yarn.resourcemanager.webapp.address",
        "yarn.resourcemanager.nodes.exclude-path",
        "yarn.resourcemanager.nodes.include-path",
        "yarn.resourcemanager.bind-host",
        "yarn.nodemanager.hostname",
        "yarn.nodemanager.bind-host",
        "yarn.nodemanager.address",
        "yarn.nodemanager.localizer.address",
        "yarn.nodemanager.webapp.address",
        "yarn.nodemanager.aux-services",
        "yarn.nodemanager.local-dirs",
        "yarn.nodemanager.log-dirs",
        "yarn.nodemanager.env-whitelist",
        "yarn.application.classpath",
        "yarn.node-labels.fs-store.root-dir",
        "yarn.node-attribute.fs-store.root-dir",
        "yarn.http.policy",
        "mapreduce.framework.name",
        "mapreduce.application.classpath",
        "mapreduce.application.framework.path",
        "mapreduce.cluster.local.dir",
        "mapreduce.jobhistory.address",
        "mapreduce.jobhistory.webapp.address",
        "mapreduce.jobhistory.admin.address",
        "mapreduce.jobhistory.bind-host",
        "mapreduce.shuffle.port",
        "yarn.app.mapreduce.am.staging-dir",
        "oozie.base.url",
        "oozie.home.dir",
        "oozie.config.dir",
        "oozie.data.dir",
        "oozie.log.dir",
        "oozie.jsp.tmp.dir",
        "oozie.http.hostname",
        "oozie.http.port",
        "oozie.authentication.type",
        "oozie.service.HadoopAccessorService.hadoop.configurations",
        "oozie.service.HadoopAccessorService.action.configurations",
        "oozie.service.WorkflowAppService.system.libpath",
        "oozie.service.JPAService.create.db.schema",
        "oozie.service.JPAService.jdbc.driver",
        "oozie.service.JPAService.jdbc.url",
        "oozie.service.JPAService.jdbc.username",
        "oozie.service.JPAService.jdbc.password",
    )
)
# options of parts of Hadoop that no cluster of svcd has
ABSENT_PREFIXES = (
    "fs.s3a.",
    "fs.gs.",
    "fs.azure",
    "fs.abfs",
    "fs.adl.",
    "fs.wasb",
    "fs.ftp",
    "fs.sftp",
    "fs.swift",
    "fs.viewfs.",
    "fs.AbstractFileSystem.",
    "ipc.[",
    "ha.",
    "hadoop.registry.",
    "hadoop.zk.",
    "hadoop.ssl.",
    "hadoop.kerberos.",
    "hadoop.security.",
    "hadoop.http.authentication.",
    "hadoop.prometheus.",
    "hadoop.domainname",
    "dfs.ha.",
    "dfs.journalnode.",
    "dfs.qjournal.",
    "dfs.provided.",
    "dfs.nameservice",
    "dfs.internal.nameservices",
    "dfs.encrypt",
    "dfs.namenode.shared.edits",
    "dfs.namenode.backup.",
    "dfs.client.failover.",
    "dfs.federation.",
    "nfs.",
    "ssl.",
    "yarn.federation.",
    "yarn.router.",
    "yarn.sharedcache.",
    "yarn.timeline-service.",
    "yarn.minicluster.",
    "yarn.web-proxy.",
    "yarn.resourcemanager.ha.",
    "yarn.resourcemanager.zk-",
    "yarn.nodemanager.linux-container-executor.",
    "yarn.nodemanager.resource-plugins.",
    "yarn.nodemanager.runtime.",
    "yarn.nodemanager.amrmproxy.",
    "mapreduce.jobhistory.webapp.https",
    "oozie.zookeeper.",
    "oozie.https.",
    "oozie.authentication.",
    "oozie.external_monitoring.",
    "oozie.jmx_monitoring.",
)
ABSENT_PARTS = ("kerberos", "keytab", ".https.", ".https-", "keystore", "truststore", "proxyuser")

_OURS: Mapping[str, str] = {small_jobs.ENABLED: "true"}
"""Defaults of svcd for which people look here, in place of those of Hadoop."""


@frozen
class Default:
    """One option of a default file."""

    name: str
    value: str
    description: str


@functools.cache
def defaults(site: Site) -> tuple[Default, ...]:
    """All options of a default file, in the order of the file."""
    folder = resources.files("svcd.provisioning.distributions.vanilla") / "defaults"
    rows = json.loads((folder / f"{site}-default.json").read_text(encoding="utf-8"))
    return tuple(Default(name, value, description) for name, value, description in rows)


@functools.cache
def entries() -> tuple[ConfigEntry, ...]:
    """All options, in a stable order: first the options of svcd, then file by file."""
    seen: set[tuple[str, str]] = set()
    all_entries: list[ConfigEntry] = []
    for entry in (*_own(), *(e for site in Site for e in _of_file(site))):
        key = (entry.applicable_target, entry.name)
        if key not in seen:
            seen.add(key)
            all_entries.append(entry)
    return tuple(all_entries)


@functools.cache
def site_of() -> Mapping[tuple[str, str], Site]:
    """(target, name) -> the file to which svcd writes the option."""
    sites: dict[tuple[str, str], Site] = {}
    for site in Site:
        for entry in _of_file(site):
            sites.setdefault((entry.applicable_target, entry.name), site)
    for task in ("map", "reduce"):
        sites[MAPREDUCE, f"mapreduce.{task}.java.opts"] = Site.MAPRED
    return sites


def _own() -> Iterator[ConfigEntry]:
    yield ConfigEntry(
        name=JVM_OPTIONS,
        description="More options for the Java virtual machines of all daemons of the node.",
        default_value="",
        config_type="string",
        applicable_target=GENERAL,
    )
    for process, daemon in DAEMONS.items():
        yield ConfigEntry(
            name=daemon.heap_option,
            description=f"Heap of the {process} in MiB; 0: svcd derives it from the node's memory.",
            default_value=0,
            config_type="int",
            applicable_target=daemon.service,
            priority=1,
        )
    for task in ("map", "reduce"):
        yield ConfigEntry(
            name=f"mapreduce.{task}.java.opts",
            description=f"Options of the Java virtual machines of {task} tasks, with the heap.",
            default_value="",
            config_type="string",
            applicable_target=MAPREDUCE,
            scope=Scope.CLUSTER,
            priority=1,
        )


def _of_file(site: Site) -> Iterator[ConfigEntry]:
    # each job brings the settings of Spark along, from the machine that submits it
    travels = site is Site.SPARK
    for default in defaults(site):
        if _usable(default.name):
            kind, value = _typed(_OURS.get(default.name, default.value))
            yield ConfigEntry(
                name=default.name,
                description=default.description,
                default_value=value,
                config_type=kind,
                applicable_target=TARGETS[site],
                scope=Scope.CLUSTER if travels or default.name in CLUSTER_WIDE else Scope.NODE,
                priority=1 if travels or default.name in FIRST else 2,
            )


def _usable(name: str) -> bool:
    return not (
        name in HIDDEN
        or name.startswith(ABSENT_PREFIXES)
        or any(part in name for part in ABSENT_PARTS)
    )


def _typed(text: str) -> tuple[str, ConfigValue]:
    value = text.strip()
    if value in ("true", "false"):
        return "bool", value == "true"
    if value.lstrip("-").isdecimal() and value.count("-") <= 1:
        return "int", int(value)
    return "string", value
