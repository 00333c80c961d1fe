"""Why things did not succeed: the one closed list, what each code means and what to do. Pure.

A code appears in `status_description` and the events of a cluster, in `info.failure` of a job
execution, in the log, and is explained by `svcd why CODE`. `docs/failures.md` is made of this list
(`python -m svcd.cli.failures`). A code that no test reaches does not belong here.
"""

from __future__ import annotations

import enum
from collections.abc import Mapping
from typing import Final

from attrs import frozen


class Code(enum.StrEnum):
    """The closed list; the order is that of a cluster's life and then of a job's."""

    # the cloud
    QUOTA = "QUOTA"
    CREDENTIALS_EXPIRED = "CREDENTIALS_EXPIRED"
    FORBIDDEN = "FORBIDDEN"
    CLOUD_REFUSED = "CLOUD_REFUSED"
    CLOUD_UNAVAILABLE = "CLOUD_UNAVAILABLE"
    CLOUD_BUSY = "CLOUD_BUSY"
    SERVER_ERROR = "SERVER_ERROR"
    SERVER_VANISHED = "SERVER_VANISHED"
    SERVER_DOWN = "SERVER_DOWN"
    BOOT_TIMEOUT = "BOOT_TIMEOUT"
    VOLUME_ERROR = "VOLUME_ERROR"
    LEFTOVERS = "LEFTOVERS"
    # its machines
    SSH_TIMEOUT = "SSH_TIMEOUT"
    HOST_KEY_CHANGED = "HOST_KEY_CHANGED"
    MACHINE_UNREACHABLE = "MACHINE_UNREACHABLE"
    PREPARE_FAILED = "PREPARE_FAILED"
    COMMAND_FAILED = "COMMAND_FAILED"
    COMMAND_TIMEOUT = "COMMAND_TIMEOUT"
    DAEMON_DIED = "DAEMON_DIED"
    DAEMON_TIMEOUT = "DAEMON_TIMEOUT"
    DAEMON_DOWN = "DAEMON_DOWN"
    PHASE_TIMEOUT = "PHASE_TIMEOUT"
    PLUGIN_GONE = "PLUGIN_GONE"
    # starting a job
    CLUSTER_GONE = "CLUSTER_GONE"
    CLUSTER_FAILED = "CLUSTER_FAILED"
    NO_ENGINE = "NO_ENGINE"
    BINARY_UNREADABLE = "BINARY_UNREADABLE"
    DOCUMENT_REFUSED = "DOCUMENT_REFUSED"
    STAGING_FAILED = "STAGING_FAILED"
    ENGINE_REFUSED = "ENGINE_REFUSED"
    ENGINE_UNREACHABLE = "ENGINE_UNREACHABLE"
    ENGINE_LOST_JOB = "ENGINE_LOST_JOB"
    STEP_WAITS = "STEP_WAITS"
    START_GAVE_UP = "START_GAVE_UP"
    RESOURCES_UNREACHABLE = "RESOURCES_UNREACHABLE"
    NO_WORKERS = "NO_WORKERS"
    # running it
    VARIABLE_UNKNOWN = "VARIABLE_UNKNOWN"
    LAUNCHER_LOST = "LAUNCHER_LOST"
    INPUT_MISSING = "INPUT_MISSING"
    OUTPUT_EXISTS = "OUTPUT_EXISTS"
    FILE_MISSING = "FILE_MISSING"
    CLASS_MISSING = "CLASS_MISSING"
    OBJECT_STORE_CREDENTIALS = "OBJECT_STORE_CREDENTIALS"
    OBJECT_STORE_FORBIDDEN = "OBJECT_STORE_FORBIDDEN"
    CONTAINER_MISSING = "CONTAINER_MISSING"
    OBJECT_STORE_UNAVAILABLE = "OBJECT_STORE_UNAVAILABLE"
    OBJECT_STORE = "OBJECT_STORE"
    FILE_SYSTEM = "FILE_SYSTEM"
    NO_SPACE = "NO_SPACE"
    OUT_OF_MEMORY = "OUT_OF_MEMORY"
    EXIT_CODE = "EXIT_CODE"
    EXCEPTION = "EXCEPTION"
    TASK_FAILED = "TASK_FAILED"
    KILLED_ELSEWHERE = "KILLED_ELSEWHERE"
    UNKNOWN = "UNKNOWN"
    # anywhere
    INTERNAL = "INTERNAL"


class Of(enum.StrEnum):
    """What a code is said of."""

    CLUSTER = "cluster"
    EXECUTION = "job execution"


@frozen(kw_only=True)
class Known:
    """meaning: what has happened, one sentence. advice: what a person can do, without a full stop.

    of: what can have failed with it.
    """

    meaning: str
    advice: str
    of: tuple[Of, ...]


def _cluster(meaning: str, advice: str) -> Known:
    return Known(meaning=meaning, advice=advice, of=(Of.CLUSTER,))


def _execution(meaning: str, advice: str) -> Known:
    return Known(meaning=meaning, advice=advice, of=(Of.EXECUTION,))


KNOWN: Final[Mapping[Code, Known]] = {
    Code.QUOTA: _cluster(
        "The cloud refused to make something because the project's quota is used up.",
        "free resources of the project or have its quota raised",
    ),
    Code.CREDENTIALS_EXPIRED: _cluster(
        "The cloud no longer accepts the trust or token with which svcd acts for the user.",
        "retry or delete the cluster with a fresh token, or delete it with force=true",
    ),
    Code.FORBIDDEN: _cluster(
        "A policy of the cloud forbids the user something that the cluster needs.",
        "give the user the role in the project that the cloud demands, then retry",
    ),
    Code.CLOUD_REFUSED: _cluster(
        "The cloud says that a request itself is wrong; repeating it would not help.",
        "read the quoted message of the cloud; correct what it names and make the cluster anew",
    ),
    Code.CLOUD_UNAVAILABLE: _cluster(
        "A service of the cloud did not answer, or only with faults, until the deadline.",
        "check the cloud's services; retry with an empty resize",
    ),
    Code.CLOUD_BUSY: _cluster(
        "The cloud said until the deadline that something is in use, in a wrong state, or that it "
        "has too much to do.",
        "look at what the quoted message names; retry with an empty resize once it is free",
    ),
    Code.SERVER_ERROR: _cluster(
        "A server went into ERROR, and so did those that were made in its place.",
        "see the server's fault in the cloud; try another flavor or a smaller size",
    ),
    Code.SERVER_VANISHED: _cluster(
        "A server that was in use is not there any more, and svcd has not deleted it.",
        "ask who deleted the server; an empty resize puts a new worker in its place, a shrink "
        "takes it first; without its master a cluster can only be deleted",
    ),
    Code.SERVER_DOWN: _cluster(
        "A server of an Active cluster is there and does not run.",
        "start the server in the cloud, then the daemons on it; what cannot be started again is to "
        "be deleted in the cloud, and an empty resize puts a new worker in its place",
    ),
    Code.BOOT_TIMEOUT: _cluster(
        "Servers, addresses or volumes were not ready until the deadline of Spawning.",
        "see the server's console log; check image, network and cloud capacity",
    ),
    Code.VOLUME_ERROR: _cluster(
        "A volume went into error, and so did those that were made in its place.",
        "see the volume in the cloud; check the block storage service",
    ),
    Code.LEFTOVERS: _cluster(
        "Something of the cluster could not be removed from the cloud until the deadline.",
        "remove the named resources in the cloud, delete again, or use force=true",
    ),
    Code.SSH_TIMEOUT: _cluster(
        "A machine could not be logged in to until the deadline of Preparing.",
        "check that the image runs cloud-init and SSH, its registered username, and that svcd can "
        "reach the network (floating IPs, security groups)",
    ),
    Code.HOST_KEY_CHANGED: _cluster(
        "A machine shows another SSH host key than when it was first reached.",
        "find out which machine answers on this address; if it was made anew, delete the cluster",
    ),
    Code.MACHINE_UNREACHABLE: _cluster(
        "A machine that had been reached before could not be reached any more.",
        "check the machine and the network; retry with an empty resize",
    ),
    Code.PREPARE_FAILED: _cluster(
        "Names or volumes could not be set up on a machine.",
        "log in with the user's key pair and look; check sudo and free devices",
    ),
    Code.COMMAND_FAILED: _cluster(
        "A command of the distribution ended with an error on a machine.",
        "read the quoted output; retry with an empty resize once it is mended",
    ),
    Code.COMMAND_TIMEOUT: _cluster(
        "A command of the distribution did not end in its time on a machine.",
        "the machine may be too small or too busy; retry with an empty resize",
    ),
    Code.DAEMON_DIED: _cluster(
        "A daemon was started on a machine and ended by itself.",
        "read the quoted log; correct the configuration or the flavor's memory",
    ),
    Code.DAEMON_TIMEOUT: _cluster(
        "A daemon was started on a machine and did not answer in its time.",
        "read the quoted log; the machine may be too small or too busy",
    ),
    Code.DAEMON_DOWN: _cluster(
        "A daemon of an Active cluster is dead or silent: two looks in a row have found it so.",
        "start the daemon again on the machine; where the machine is dead, delete its server in "
        "the cloud, and an empty resize puts a new worker in its place",
    ),
    Code.PHASE_TIMEOUT: _cluster(
        "A phase took longer than it may, also counting time in which svcd could not work.",
        "raise the deadline in section [provisioning] or use larger machines",
    ),
    Code.PLUGIN_GONE: _cluster(
        "The distribution of the cluster is not on offer any more.",
        "enable the plugin again in [plugins] enabled, then retry",
    ),
    Code.CLUSTER_GONE: _execution(
        "The cluster was deleted before the job had ended.",
        "execute the job on another cluster",
    ),
    Code.CLUSTER_FAILED: _execution(
        "The cluster that the job waited for went into Error.",
        "see the cluster's status_description, mend or replace the cluster",
    ),
    Code.NO_ENGINE: _execution(
        "No machine of the cluster runs the workflow engine.",
        "use a cluster with the workflow engine among its processes",
    ),
    Code.BINARY_UNREADABLE: _execution(
        "A binary of the job could not be read.",
        "check the url and the credentials of the job binary",
    ),
    Code.DOCUMENT_REFUSED: _execution(
        "No workflow definition can be written of what was asked for.",
        "correct the named value in job_configs",
    ),
    Code.STAGING_FAILED: _execution(
        "The job's files could not be written to the cluster's file system.",
        "check the cluster's file system (name node, live data nodes, space, safe mode)",
    ),
    Code.ENGINE_REFUSED: _execution(
        "The workflow engine refused the job.",
        "correct job_configs; the engine's own message is quoted",
    ),
    Code.ENGINE_UNREACHABLE: _execution(
        "The workflow engine did not answer until the deadline.",
        "check that the cluster's workflow engine runs and can be reached",
    ),
    Code.ENGINE_LOST_JOB: _execution(
        "The workflow engine answers and does not know the job any more.",
        "execute the job again; keep the engine's database from being lost or purged",
    ),
    Code.STEP_WAITS: _execution(
        "The step of a running workflow has not begun on the cluster yet: the engine has not "
        "handed it over, or YARN has not found room for it.",
        "check that the cluster's resource manager runs and has room; end other jobs or add "
        "workers if the cluster is full",
    ),
    Code.START_GAVE_UP: _execution(
        "The workflow engine took the job and could not begin it.",
        "check the cluster's services, its resource manager above all, and execute the job again",
    ),
    Code.RESOURCES_UNREACHABLE: _execution(
        "The engine or the job could not reach the cluster's resource manager or name node.",
        "check that the cluster's resource manager and name node run",
    ),
    Code.NO_WORKERS: _execution(
        "No machine of the cluster takes work: the resource manager knows of none that is alive "
        "and well.",
        "start the node managers of the named machines again; where a server is gone, an empty "
        "resize puts a new worker in its place",
    ),
    Code.VARIABLE_UNKNOWN: _execution(
        "The job's configuration names a variable that has no value.",
        "set the named variable in job_configs, or write $ instead of ${",
    ),
    Code.LAUNCHER_LOST: _execution(
        "The program that begins the job on the cluster (Oozie's launcher) died; it is begun only "
        "once, and what it had begun is killed.",
        "remove what the job has written, and execute it again; if it dies again, give the "
        "launcher more memory (oozie.launcher.memory.mb)",
    ),
    Code.INPUT_MISSING: _execution(
        "The job's input does not exist.",
        "check the url of the input data source",
    ),
    Code.OUTPUT_EXISTS: _execution(
        "The job's output exists already, and Hadoop does not write over it.",
        "use an output data source whose url does not exist yet",
    ),
    Code.FILE_MISSING: _execution(
        "A file that the job needs is not there.",
        "check the names of the job's binaries",
    ),
    Code.CLASS_MISSING: _execution(
        "A class that the job names is in none of its libraries.",
        "check the class names in job_configs and that a library holds the class",
    ),
    Code.OBJECT_STORE_CREDENTIALS: _execution(
        "The identity service or the object store refused the user of a data source.",
        "correct user and password of the data source",
    ),
    Code.OBJECT_STORE_FORBIDDEN: _execution(
        "The user of a data source is known, and may not do this in the object store.",
        "give the user a role or the container rights for this user",
    ),
    Code.CONTAINER_MISSING: _execution(
        "The container of a data source does not exist in the project's object store.",
        "make the container, or correct the url of the data source",
    ),
    Code.OBJECT_STORE_UNAVAILABLE: _execution(
        "The object store or the identity service did not answer the cluster for minutes.",
        "check that both answer from the cluster's machines, and execute the job again",
    ),
    Code.OBJECT_STORE: _execution(
        "The object store refused a request of the cluster for another reason.",
        "see the quoted message; check urls, quotas and configuration",
    ),
    Code.FILE_SYSTEM: _execution(
        "The cluster's file system could not take or give what the job needs.",
        "check that the cluster's data nodes run and have room, and execute the job again",
    ),
    Code.NO_SPACE: _execution(
        "A disk of the cluster is full: what the job or a task wrote found no room.",
        "free space in HDFS and on the workers, or add workers, and execute the job again",
    ),
    Code.OUT_OF_MEMORY: _execution(
        "A program of the job needed more memory than it may use.",
        "give the job more memory in job_configs, or take larger flavors",
    ),
    Code.EXIT_CODE: _execution(
        "A program of the job ended with an error and said nothing else.",
        "read the last lines of the program in the job's log: GET the path of this job execution "
        "with /log at its end",
    ),
    Code.EXCEPTION: _execution(
        "The job ended with an error that svcd knows no name for; it is quoted.",
        "read the job's log: GET the path of this job execution with /log at its end",
    ),
    Code.TASK_FAILED: _execution(
        "A task of the job failed, and neither the engine nor the history told why.",
        "read the job's log: GET the path of this job execution with /log at its end",
    ),
    Code.KILLED_ELSEWHERE: _execution(
        "The job was killed at the workflow engine and not by svcd.",
        "ask those who can reach the engine who killed it; execute the job again",
    ),
    Code.UNKNOWN: _execution(
        "The workflow engine ended the job and gave no reason.",
        "read the job's log: GET the path of this job execution with /log at its end",
    ),
    Code.INTERNAL: Known(
        meaning="A defect of svcd or of a distribution kept the work from going on.",
        advice="tell the operator the incident, which is in the daemon's log too; it is a defect "
        "to be reported",
        of=(Of.CLUSTER, Of.EXECUTION),
    ),
}
"""Every code of the list, in its order."""


def advice(code: Code) -> str:
    """What a person can do."""
    return KNOWN[code].advice
