"""Failure codes of clusters and jobs: the one closed list, with meanings and remedies. Pure.

A failure quotes the words of the service or program first. A code has a remedy only when the code
alone tells the cause, so that the remedy is right whenever svcd shows the code.

A code appears in `status_description` and the events of a cluster, in `info.failure` of a job
execution, in the log, and is explained by `svcd why CODE`. `docs/failures.md` is made of this list
(`python -m svcd.cli.failures`). A code that no test reaches does not belong here.
"""

from __future__ import annotations

import enum
from typing import Final, Self


class Of(enum.StrEnum):
    """The subject of a code."""

    CLUSTER = "cluster"
    EXECUTION = "job execution"


EMPTY_RESIZE: Final = "an empty resize (svcd cluster retry CLUSTER, or PUT with {})"
"""The request that does again what a cluster lacks, in words for all callers of the API."""
_CLUSTER: Final = (Of.CLUSTER,)
_EXECUTION: Final = (Of.EXECUTION,)
_BOTH: Final = (Of.CLUSTER, Of.EXECUTION)


class Code(enum.StrEnum):
    """The closed list, in the order of a cluster's life and then of a job's.

    of: what can have failed with it. meaning: the event, one sentence. advice: the remedy, without
    a full stop; "": svcd does not know one.
    """

    of: tuple[Of, ...]
    meaning: str
    advice: str

    def __new__(
        cls, value: str, of: tuple[Of, ...] = (), meaning: str = "", advice: str = ""
    ) -> Self:
        code = str.__new__(cls, value)
        code._value_ = value
        code.of, code.meaning, code.advice = of, meaning, advice
        return code

    def without_advice(self, text: str) -> str:
        """A text of the API without the advice at its end."""
        if not self.advice:
            return text
        return text.removesuffix(f" ({self.advice})").removesuffix(f"; {self.advice}")

    # fmt: off
    # the cloud
    QUOTA = ("QUOTA", _CLUSTER,
        "The project's quota is used up, and the cloud refused a create call.",
        "delete resources of the project, or ask for a larger quota")
    CREDENTIALS_EXPIRED = ("CREDENTIALS_EXPIRED", _CLUSTER,
        "The cloud no longer accepts the trust or token with which svcd acts for the user.",
        "retry or delete the cluster with a new token")
    FORBIDDEN = ("FORBIDDEN", _CLUSTER, "The cloud forbids an operation that the cluster needs.")
    CLOUD_REFUSED = ("CLOUD_REFUSED", _CLUSTER, "The cloud rejected a request of svcd.")
    CLOUD_UNAVAILABLE = ("CLOUD_UNAVAILABLE", _CLUSTER,
        "A service of the cloud did not answer, or answered with errors, until the deadline.",
        f"retry with {EMPTY_RESIZE} when the service answers again")
    CLOUD_BUSY = ("CLOUD_BUSY", _CLUSTER,
        "Until the deadline the cloud answered that an object is in use or in a wrong state, or "
        "that the cloud is overloaded.",
        f"retry with {EMPTY_RESIZE} later")
    SERVER_ERROR = ("SERVER_ERROR", _CLUSTER,
        "A server went into ERROR, and so did its replacements.")
    SERVER_VANISHED = ("SERVER_VANISHED", _CLUSTER,
        "A server of the cluster no longer exists, and svcd did not delete it.",
        f"{EMPTY_RESIZE} replaces a lost worker; a cluster without its master can only be deleted")
    SERVER_DOWN = ("SERVER_DOWN", _CLUSTER,
        "A server of an Active cluster exists and does not run.")
    BOOT_TIMEOUT = ("BOOT_TIMEOUT", _CLUSTER,
        "Servers, addresses or volumes were not ready before the deadline of Spawning.")
    VOLUME_ERROR = ("VOLUME_ERROR", _CLUSTER,
        "A volume went into error, and so did its replacements.")
    LEFTOVERS = ("LEFTOVERS", _CLUSTER,
        "svcd could not remove an object of the cluster from the cloud before the deadline.",
        "delete the cluster again; if the named objects cannot go, use force=true")
    # the machines of a cluster
    SSH_TIMEOUT = ("SSH_TIMEOUT", _CLUSTER,
        "svcd could not log in to a machine before the deadline of Preparing.")
    HOST_KEY_CHANGED = ("HOST_KEY_CHANGED", _CLUSTER,
        "A machine shows another SSH host key than at its first login.",
        "find out which machine answers on this address")
    MACHINE_UNREACHABLE = ("MACHINE_UNREACHABLE", _CLUSTER, "svcd can no longer reach a machine.")
    SOFTWARE_MISSING = ("SOFTWARE_MISSING", _CLUSTER,
        "The image of a machine lacks software that the processes of the cluster need.")
    PREPARE_FAILED = ("PREPARE_FAILED", _CLUSTER,
        "svcd could not set up host names, volumes or the user of the daemons on a machine.")
    COMMAND_FAILED = ("COMMAND_FAILED", _CLUSTER,
        "A command of the distribution failed on a machine.")
    COMMAND_TIMEOUT = ("COMMAND_TIMEOUT", _CLUSTER,
        "A command of the distribution exceeded its time on a machine.")
    SCRIPT_FAILED = ("SCRIPT_FAILED", _CLUSTER,
        "A first-boot script of a node group failed on a machine, or exceeded its time.",
        "repeat the request if the cause has passed; for a corrected script delete a cluster in "
        "Error and create it with that script, or add a node group with it to an Active one")
    DAEMON_DIED = ("DAEMON_DIED", _CLUSTER,
        "A daemon started on a machine and then stopped by itself.")
    DAEMON_TIMEOUT = ("DAEMON_TIMEOUT", _CLUSTER,
        "A daemon started on a machine and did not answer in its time.")
    DAEMON_DOWN = ("DAEMON_DOWN", _CLUSTER,
        "A daemon of an Active cluster did not answer, or was dead, in two health checks in a row.")
    FOREIGN_DAEMON = ("FOREIGN_DAEMON", _BOTH,
        "Another program answers at the address of a daemon of the cluster. svcd gives it no job, "
        "and no cluster becomes Active on it.",
        "end the program that answers there, and start the daemon again on the machine")
    PHASE_TIMEOUT = ("PHASE_TIMEOUT", _CLUSTER,
        "A phase exceeded its deadline; time in which svcd did not run counts too.")
    PLUGIN_GONE = ("PLUGIN_GONE", _CLUSTER,
        "The distribution of the cluster is not enabled.",
        "add the plugin to [plugins] enabled, then retry")
    # starting a job
    CLUSTER_GONE = ("CLUSTER_GONE", _EXECUTION,
        "The cluster was deleted before the job had ended.",
        "execute the job on another cluster")
    CLUSTER_FAILED = ("CLUSTER_FAILED", _EXECUTION,
        "The job waited for a cluster that went into Error.")
    NO_ENGINE = ("NO_ENGINE", _EXECUTION,
        "No machine of the cluster runs the workflow engine.",
        "use a cluster with the workflow engine among its processes")
    START_WAITS = ("START_WAITS", _EXECUTION,
        "svcd starts only some executions of a cluster and of a tenant in parallel, and the job "
        "got no place before the deadline.",
        "see what the other executions of the tenant wait for")
    BINARY_UNREADABLE = ("BINARY_UNREADABLE", _EXECUTION,
        "svcd could not read a binary of the job.")
    JOB_CREDENTIAL = ("JOB_CREDENTIAL", _EXECUTION,
        "The identity service did not create (or delete) the application credential of the job.")
    DOCUMENT_REFUSED = ("DOCUMENT_REFUSED", _EXECUTION,
        "A value of the job has no way to the cluster: no workflow definition can hold it, or "
        "YARN has no such queue or no node of that size.",
        "correct the named value")
    STAGING_FAILED = ("STAGING_FAILED", _EXECUTION,
        "svcd could not write the job's files to the cluster's file system.")
    ENGINE_REFUSED = ("ENGINE_REFUSED", _EXECUTION, "The workflow engine refused the job.")
    ENGINE_UNREACHABLE = ("ENGINE_UNREACHABLE", _EXECUTION,
        "The workflow engine did not answer before the deadline.")
    ENGINE_LOST_JOB = ("ENGINE_LOST_JOB", _EXECUTION,
        "The workflow engine answers, but no longer knows the job.")
    STEP_WAITS = ("STEP_WAITS", _EXECUTION,
        "The step of a running workflow has not started on the cluster: the engine has not "
        "submitted it, or YARN has no room for it.")
    START_GAVE_UP = ("START_GAVE_UP", _EXECUTION,
        "The workflow engine accepted the job and could not start it.")
    RESOURCES_UNREACHABLE = ("RESOURCES_UNREACHABLE", _EXECUTION,
        "The engine or the job could not reach the cluster's resource manager or name node.")
    NO_WORKERS = ("NO_WORKERS", _EXECUTION,
        "No machine of the cluster accepts work: the resource manager knows no healthy node.")
    # running a job
    VARIABLE_UNKNOWN = ("VARIABLE_UNKNOWN", _EXECUTION,
        "A script of the job in Pig or SQL, or its configuration, names a variable without a "
        "value.",
        "give the named variable of a script a value in the params of job_configs")
    LAUNCHER_LOST = ("LAUNCHER_LOST", _EXECUTION,
        "Oozie's launcher, the program that starts the job on the cluster, died. svcd starts it "
        "only once, and kills the applications that it had started.")
    WORKER_LOST = ("WORKER_LOST", _EXECUTION,
        "YARN lost the worker that ran a program of the job, and could not run it again elsewhere.",
        "remove the job's partial output and execute the job again")
    INPUT_MISSING = ("INPUT_MISSING", _EXECUTION,
        "The job's input does not exist.",
        "check the named path")
    OUTPUT_EXISTS = ("OUTPUT_EXISTS", _EXECUTION,
        "The job's output already exists, and Hadoop does not overwrite it.",
        "use an output that does not exist yet")
    FILE_MISSING = ("FILE_MISSING", _EXECUTION,
        "A file that the job needs does not exist.",
        "check the named path")
    SCHEME_UNKNOWN = ("SCHEME_UNKNOWN", _EXECUTION,
        "The job names a URL with a scheme that no file system of the cluster has.",
        "use hdfs:// for the cluster's own files, and objstore:// for the object store")
    PERMISSION_DENIED = ("PERMISSION_DENIED", _EXECUTION,
        "The user of a program may not read or write a file.")
    SYNTAX_ERROR = ("SYNTAX_ERROR", _EXECUTION,
        "A script of the job has an error, and its interpreter refused it.",
        "correct the script")
    CLASS_MISSING = ("CLASS_MISSING", _EXECUTION,
        "No library of the job contains a class or a function that the job names.",
        "correct the name, or add a library that has it to the libs of the job")
    MODULE_MISSING = ("MODULE_MISSING", _EXECUTION,
        "A program or a module of Python that the job needs is not on the cluster's machines.",
        "correct its name, add it to the libs of the job, or install it in the image")
    JAVA_TOO_NEW = ("JAVA_TOO_NEW", _EXECUTION,
        "A class of the job was compiled for a newer Java than that of the cluster's machines.",
        "compile the program for the Java of the machines (javac --release): class file version 61"
        " is Java 17, 65 is Java 21")
    NO_SPARK_SESSION = ("NO_SPARK_SESSION", _EXECUTION,
        "The program of a Spark job made no SparkSession on YARN, or not within the time.",
        "begin the program with SparkSession.builder.getOrCreate() and without master(), or run a"
        " program that needs no Spark as a Shell job (with a #! line, svcd run --type Shell); Spark"
        " waits for the session for spark.yarn.am.waitTime (100s), which configs can set")
    OBJECT_STORE_CREDENTIALS = ("OBJECT_STORE_CREDENTIALS", _EXECUTION,
        "The identity service or the object store refused the user of a data source.",
        "give the data source a user and a password that the object store accepts")
    OBJECT_STORE_FORBIDDEN = ("OBJECT_STORE_FORBIDDEN", _EXECUTION,
        "The user of a data source may not do this in the object store.")
    JOB_CREDENTIAL_EXPIRED = ("JOB_CREDENTIAL_EXPIRED", _EXECUTION,
        "The job lasted longer than its application credential for the object store.",
        "split the job into shorter ones, or raise workflow.job_credential_s, and execute the job "
        "again")
    CONTAINER_MISSING = ("CONTAINER_MISSING", _EXECUTION,
        "The container of a data source does not exist in the project's object store.",
        "create the container, or correct its name")
    OBJECT_STORE_UNAVAILABLE = ("OBJECT_STORE_UNAVAILABLE", _EXECUTION,
        "The object store or the identity service did not answer the cluster for minutes.",
        "execute the job again when they answer")
    OBJECT_STORE = ("OBJECT_STORE", _EXECUTION,
        "The object store refused a request of the cluster for another reason.")
    FILE_SYSTEM = ("FILE_SYSTEM", _EXECUTION,
        "The cluster's file system could not read or write a file of the job.")
    NO_SPACE = ("NO_SPACE", _EXECUTION,
        "A disk of the cluster or a quota of HDFS is full, and the job or a task could not write.",
        "make room for the data, and execute the job again")
    OUT_OF_MEMORY = ("OUT_OF_MEMORY", _EXECUTION,
        "A program of the job needed more memory than its limit.",
        "give the program more memory, or let it need less")
    EXIT_CODE = ("EXIT_CODE", _EXECUTION,
        "A program of the job ended with an exit code other than 0, or before its task was done.",
        "read the last lines of the program in the log of this job execution")
    EXCEPTION = ("EXCEPTION", _EXECUTION,
        "A program of the job ended with an error of its own, which is quoted.",
        "the log of this job execution has more")
    TASK_FAILED = ("TASK_FAILED", _EXECUTION,
        "A task of the job failed for a reason that svcd does not know.",
        "read the log of this job execution")
    KILLED_ELSEWHERE = ("KILLED_ELSEWHERE", _EXECUTION,
        "The job, or a program of it, was killed at the workflow engine, in YARN or on a machine, "
        "and not by svcd.")
    UNKNOWN = ("UNKNOWN", _EXECUTION,
        "The workflow engine ended the job without a reason.",
        "read the log of this job execution")
    # faults of svcd itself
    INTERNAL = ("INTERNAL", _BOTH,
        "A defect of svcd or of a distribution stopped the work.",
        "report the defect to the operator of svcd, whose log has more")
    # fmt: on


def explained(code: str, text: str) -> dict[str, str]:
    """A failure for a story: `text` without its advice, and meaning and advice of `code`.

    Both are empty for a code that is not in the list.
    """
    if code not in Code.__members__:
        return {"text": text, "meaning": "", "advice": ""}
    known = Code(code)
    return {
        "text": known.without_advice(text),
        "meaning": known.meaning,
        "advice": known.advice,
    }
