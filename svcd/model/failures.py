"""Why things did not succeed: the one closed list, the meaning of each code, and remedies. Pure.

A failure quotes the words of the service or program first. A code has a remedy only when the code
alone tells the cause, so that the remedy is right whenever svcd shows the code.

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
    SOFTWARE_MISSING = "SOFTWARE_MISSING"
    PREPARE_FAILED = "PREPARE_FAILED"
    COMMAND_FAILED = "COMMAND_FAILED"
    COMMAND_TIMEOUT = "COMMAND_TIMEOUT"
    DAEMON_DIED = "DAEMON_DIED"
    DAEMON_TIMEOUT = "DAEMON_TIMEOUT"
    DAEMON_DOWN = "DAEMON_DOWN"
    FOREIGN_DAEMON = "FOREIGN_DAEMON"
    PHASE_TIMEOUT = "PHASE_TIMEOUT"
    PLUGIN_GONE = "PLUGIN_GONE"
    # starting a job
    CLUSTER_GONE = "CLUSTER_GONE"
    CLUSTER_FAILED = "CLUSTER_FAILED"
    NO_ENGINE = "NO_ENGINE"
    BINARY_UNREADABLE = "BINARY_UNREADABLE"
    JOB_CREDENTIAL = "JOB_CREDENTIAL"
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
    WORKER_LOST = "WORKER_LOST"
    INPUT_MISSING = "INPUT_MISSING"
    OUTPUT_EXISTS = "OUTPUT_EXISTS"
    FILE_MISSING = "FILE_MISSING"
    SCHEME_UNKNOWN = "SCHEME_UNKNOWN"
    PERMISSION_DENIED = "PERMISSION_DENIED"
    SYNTAX_ERROR = "SYNTAX_ERROR"
    CLASS_MISSING = "CLASS_MISSING"
    MODULE_MISSING = "MODULE_MISSING"
    JAVA_TOO_NEW = "JAVA_TOO_NEW"
    NO_SPARK_SESSION = "NO_SPARK_SESSION"
    OBJECT_STORE_CREDENTIALS = "OBJECT_STORE_CREDENTIALS"
    OBJECT_STORE_FORBIDDEN = "OBJECT_STORE_FORBIDDEN"
    JOB_CREDENTIAL_EXPIRED = "JOB_CREDENTIAL_EXPIRED"
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
    """meaning: what has happened, one sentence. of: what can have failed with it.

    advice: the remedy, without a full stop; "": svcd does not know one.
    """

    meaning: str
    advice: str
    of: tuple[Of, ...]


def _cluster(meaning: str, advice: str = "") -> Known:
    return Known(meaning=meaning, advice=advice, of=(Of.CLUSTER,))


def _execution(meaning: str, advice: str = "") -> Known:
    return Known(meaning=meaning, advice=advice, of=(Of.EXECUTION,))


def _both(meaning: str, advice: str = "") -> Known:
    return Known(meaning=meaning, advice=advice, of=(Of.CLUSTER, Of.EXECUTION))


KNOWN: Final[Mapping[Code, Known]] = {
    Code.QUOTA: _cluster(
        "The project's quota is used up, and the cloud refused a create call.",
        "delete resources of the project, or ask for a larger quota",
    ),
    Code.CREDENTIALS_EXPIRED: _cluster(
        "The cloud no longer accepts the trust or token with which svcd acts for the user.",
        "retry or delete the cluster with a new token",
    ),
    Code.FORBIDDEN: _cluster("The cloud forbids an operation that the cluster needs."),
    Code.CLOUD_REFUSED: _cluster("The cloud rejected a request of svcd."),
    Code.CLOUD_UNAVAILABLE: _cluster(
        "A service of the cloud did not answer, or answered with errors, until the deadline.",
        "retry with an empty resize when the service answers again",
    ),
    Code.CLOUD_BUSY: _cluster(
        "Until the deadline the cloud answered that an object is in use or in a wrong state, or "
        "that the cloud is overloaded.",
        "retry with an empty resize later",
    ),
    Code.SERVER_ERROR: _cluster("A server went into ERROR, and so did its replacements."),
    Code.SERVER_VANISHED: _cluster(
        "A server of the cluster no longer exists, and svcd did not delete it.",
        "an empty resize replaces a lost worker; a cluster without its master can only be deleted",
    ),
    Code.SERVER_DOWN: _cluster("A server of an Active cluster exists and does not run."),
    Code.BOOT_TIMEOUT: _cluster(
        "Servers, addresses or volumes were not ready before the deadline of Spawning."
    ),
    Code.VOLUME_ERROR: _cluster("A volume went into error, and so did its replacements."),
    Code.LEFTOVERS: _cluster(
        "svcd could not remove an object of the cluster from the cloud before the deadline.",
        "delete the cluster again; if the named objects cannot go, use force=true",
    ),
    Code.SSH_TIMEOUT: _cluster(
        "svcd could not log in to a machine before the deadline of Preparing."
    ),
    Code.HOST_KEY_CHANGED: _cluster(
        "A machine shows another SSH host key than at its first login.",
        "find out which machine answers on this address",
    ),
    Code.MACHINE_UNREACHABLE: _cluster("svcd can no longer reach a machine."),
    Code.SOFTWARE_MISSING: _cluster(
        "The image of a machine lacks software that the processes of the cluster need."
    ),
    Code.PREPARE_FAILED: _cluster(
        "svcd could not set up host names, volumes or the user of the daemons on a machine."
    ),
    Code.COMMAND_FAILED: _cluster("A command of the distribution failed on a machine."),
    Code.COMMAND_TIMEOUT: _cluster("A command of the distribution exceeded its time on a machine."),
    Code.DAEMON_DIED: _cluster("A daemon started on a machine and then stopped by itself."),
    Code.DAEMON_TIMEOUT: _cluster("A daemon started on a machine and did not answer in its time."),
    Code.DAEMON_DOWN: _cluster(
        "A daemon of an Active cluster did not answer, or was dead, in two health checks in a row."
    ),
    Code.FOREIGN_DAEMON: _both(
        "Another program answers at the address of a daemon of the cluster. svcd gives it no job, "
        "and no cluster becomes Active on it.",
        "end the program that answers there, and start the daemon again on the machine",
    ),
    Code.PHASE_TIMEOUT: _cluster(
        "A phase exceeded its deadline; time in which svcd did not run counts too."
    ),
    Code.PLUGIN_GONE: _cluster(
        "The distribution of the cluster is not enabled.",
        "add the plugin to [plugins] enabled, then retry",
    ),
    Code.CLUSTER_GONE: _execution(
        "The cluster was deleted before the job had ended.",
        "execute the job on another cluster",
    ),
    Code.CLUSTER_FAILED: _execution("The job waited for a cluster that went into Error."),
    Code.NO_ENGINE: _execution(
        "No machine of the cluster runs the workflow engine.",
        "use a cluster with the workflow engine among its processes",
    ),
    Code.BINARY_UNREADABLE: _execution("svcd could not read a binary of the job."),
    Code.JOB_CREDENTIAL: _execution(
        "The identity service did not create (or delete) the application credential of the job."
    ),
    Code.DOCUMENT_REFUSED: _execution(
        "A value of the job has no way to the cluster: no workflow definition can hold it, or "
        "YARN has no such queue or no node of that size.",
        "correct the named value",
    ),
    Code.STAGING_FAILED: _execution(
        "svcd could not write the job's files to the cluster's file system."
    ),
    Code.ENGINE_REFUSED: _execution("The workflow engine refused the job."),
    Code.ENGINE_UNREACHABLE: _execution("The workflow engine did not answer before the deadline."),
    Code.ENGINE_LOST_JOB: _execution("The workflow engine answers, but no longer knows the job."),
    Code.STEP_WAITS: _execution(
        "The step of a running workflow has not started on the cluster: the engine has not "
        "submitted it, or YARN has no room for it."
    ),
    Code.START_GAVE_UP: _execution("The workflow engine accepted the job and could not start it."),
    Code.RESOURCES_UNREACHABLE: _execution(
        "The engine or the job could not reach the cluster's resource manager or name node."
    ),
    Code.NO_WORKERS: _execution(
        "No machine of the cluster accepts work: the resource manager knows no healthy node."
    ),
    Code.VARIABLE_UNKNOWN: _execution(
        "A script of the job in Pig or SQL, or its configuration, names a variable without a "
        "value.",
        "give the named variable of a script a value in the params of job_configs",
    ),
    Code.LAUNCHER_LOST: _execution(
        "Oozie's launcher, the program that starts the job on the cluster, died. svcd starts it "
        "only once, and kills the applications that it had started."
    ),
    Code.WORKER_LOST: _execution(
        "YARN lost the worker that ran a program of the job, and could not run it again elsewhere.",
        "remove the job's partial output and execute the job again",
    ),
    Code.INPUT_MISSING: _execution(
        "The job's input does not exist.",
        "check the named path",
    ),
    Code.OUTPUT_EXISTS: _execution(
        "The job's output already exists, and Hadoop does not overwrite it.",
        "use an output that does not exist yet",
    ),
    Code.FILE_MISSING: _execution(
        "A file that the job needs does not exist.",
        "check the named path",
    ),
    Code.SCHEME_UNKNOWN: _execution(
        "The job names a URL with a scheme that no file system of the cluster has.",
        "use hdfs:// for the cluster's own files, and objstore:// for the object store",
    ),
    Code.PERMISSION_DENIED: _execution("The user of a program may not read or write a file."),
    Code.SYNTAX_ERROR: _execution(
        "A script of the job has an error, and its interpreter refused it.",
        "correct the script",
    ),
    Code.CLASS_MISSING: _execution(
        "No library of the job contains a class or a function that the job names.",
        "correct the name, or add a library that has it to the libs of the job",
    ),
    Code.MODULE_MISSING: _execution(
        "A program or a module of Python that the job needs is not on the cluster's machines.",
        "correct its name, add it to the libs of the job, or install it in the image",
    ),
    Code.JAVA_TOO_NEW: _execution(
        "A class of the job was compiled for a newer Java than that of the cluster's machines.",
        "compile the program for the Java of the machines (javac --release): class file version 61"
        " is Java 17, 65 is Java 21",
    ),
    Code.NO_SPARK_SESSION: _execution(
        "The program of a Spark job made no SparkSession on YARN, or not within the time.",
        "begin the program with SparkSession.builder.getOrCreate() and without master(), or run a"
        " program that needs no Spark as a Shell job (with a #! line, svcd run --type Shell); Spark"
        " waits for the session for spark.yarn.am.waitTime (100s), which configs can set",
    ),
    Code.OBJECT_STORE_CREDENTIALS: _execution(
        "The identity service or the object store refused the user of a data source.",
        "give the data source a user and a password that the object store accepts",
    ),
    Code.OBJECT_STORE_FORBIDDEN: _execution(
        "The user of a data source may not do this in the object store."
    ),
    Code.JOB_CREDENTIAL_EXPIRED: _execution(
        "The job lasted longer than its application credential for the object store.",
        "split the job into shorter ones, or raise workflow.job_credential_s, and execute the job "
        "again",
    ),
    Code.CONTAINER_MISSING: _execution(
        "The container of a data source does not exist in the project's object store.",
        "create the container, or correct its name",
    ),
    Code.OBJECT_STORE_UNAVAILABLE: _execution(
        "The object store or the identity service did not answer the cluster for minutes.",
        "execute the job again when they answer",
    ),
    Code.OBJECT_STORE: _execution(
        "The object store refused a request of the cluster for another reason."
    ),
    Code.FILE_SYSTEM: _execution(
        "The cluster's file system could not read or write a file of the job."
    ),
    Code.NO_SPACE: _execution(
        "A disk of the cluster or a quota of HDFS is full, and the job or a task could not write.",
        "make room for the data, and execute the job again",
    ),
    Code.OUT_OF_MEMORY: _execution(
        "A program of the job needed more memory than its limit.",
        "give the program more memory, or let it need less",
    ),
    Code.EXIT_CODE: _execution(
        "A program of the job ended with an exit code other than 0, or before its task was done.",
        "read the last lines of the program in the log of this job execution",
    ),
    Code.EXCEPTION: _execution(
        "A program of the job ended with an error of its own, which is quoted.",
        "the log of this job execution has more",
    ),
    Code.TASK_FAILED: _execution(
        "A task of the job failed for a reason that svcd does not know.",
        "read the log of this job execution",
    ),
    Code.KILLED_ELSEWHERE: _execution(
        "The job, or a program of it, was killed at the workflow engine, in YARN or on a machine, "
        "and not by svcd."
    ),
    Code.UNKNOWN: _execution(
        "The workflow engine ended the job without a reason.",
        "read the log of this job execution",
    ),
    Code.INTERNAL: _both(
        "A defect of svcd or of a distribution stopped the work.",
        "report the defect to the operator of svcd, whose log has more",
    ),
}
"""Every code of the list, in its order."""
