"""The folders of a machine, and the memory of each daemon and container.

Everything is below `<home>/svcd` or below the machine's storage folders. Sizes are MiB.

Note: sizes. Machines that are folders (`root` is set) share one host, so their heaps are the
smallest that work. On servers a daemon's heap is a share of the flavor's memory, between bounds.
The node manager offers the memory that the system and the other daemons of the machine do not use.
"""

from __future__ import annotations

from collections.abc import Sequence
from urllib.parse import quote

from attrs import frozen

from svcd.provisioning.distributions.spi import Machine
from svcd.provisioning.distributions.vanilla.daemons import (
    DAEMONS,
    NODEMANAGER,
    OOZIE,
)

_BESIDE_HEAP = 96
"""MiB that a daemon uses beside its heap."""
_LEAST_FOR_CONTAINERS = 1024
"""MiB that a node manager offers at least."""
_MOST_FOR_CONTAINERS_SHARED = 2048
"""MiB that a node manager offers at most on a machine that is a folder."""
_STEP = 64
"""Sizes of containers are multiples of this many MiB."""
_MASTERS_OWN = 80
"""MiB of heap that a master of MapReduce uses beside the tasks that it runs."""


@frozen
class Layout:
    """The folders of a machine, absolute. storage: one or more folders for data."""

    base: str
    storage: tuple[str, ...]

    @property
    def conf(self) -> str:
        return f"{self.base}/conf"

    @property
    def oozie_conf(self) -> str:
        return f"{self.base}/conf/oozie"

    @property
    def spark_log4j(self) -> str:
        return f"{self.base}/conf/log4j2-daemons.properties"

    @property
    def connect_conf(self) -> str:
        return f"{self.base}/conf/spark-connect.conf"

    @property
    def connect_token(self) -> str:
        """Not in `conf`: Spark packs that folder, for HDFS and for all node managers."""
        return f"{self.base}/spark-connect.token"

    @property
    def logs(self) -> str:
        return f"{self.base}/logs"

    @property
    def run(self) -> str:
        return f"{self.base}/run"

    @property
    def tmp(self) -> str:
        return f"{self.base}/tmp"

    @property
    def daemon(self) -> str:
        return f"{self.base}/bin/daemon"

    def log(self, process: str) -> str:
        """The log of a daemon; its last lines have the reason when the daemon does not run."""
        return f"{self.logs}/{process}.{'out' if process == OOZIE else 'log'}"

    def data(self, what: str) -> tuple[str, ...]:
        """A folder named `what` on each storage."""
        return tuple(f"{folder}/{what}" for folder in self.storage)

    def urls(self, what: str) -> str:
        """The folders of `data(what)`, as a comma-separated list of file URLs."""
        return ",".join(f"file://{quote(path)}" for path in self.data(what))


def layout(machine: Machine) -> Layout:
    """The folders of `machine`."""
    return Layout(base=f"{machine.home}/svcd", storage=machine.storage)


def holder(machines: Sequence[Machine], process: str) -> Machine | None:
    """The first machine that runs `process`."""
    return next((m for m in machines if process in m.processes), None)


def holders(machines: Sequence[Machine], process: str) -> tuple[Machine, ...]:
    """All machines that run `process`."""
    return tuple(m for m in machines if process in m.processes)


def web_url(machine: Machine, process: str) -> str:
    """The base of the web pages of a daemon, for svcd and people, without a slash at the end."""
    return f"http://{machine.public}:{DAEMONS[process].web}"


def heap_mib(machine: Machine, process: str) -> int:
    """The heap of a daemon: the group's option, or a share of the machine's memory."""
    daemon = DAEMONS[process]
    asked = machine.configs.get(daemon.service, {}).get(daemon.heap_option, 0)
    if isinstance(asked, int) and not isinstance(asked, bool) and asked > 0:
        return asked
    least, share, most = daemon.heap
    if machine.root:
        return least
    return min(most, max(least, machine.ram_mib * share // 32))


def containers_mib(machine: Machine) -> int:
    """The memory in MiB that the node manager of a machine offers to containers."""
    system = min(2048, max(256, machine.ram_mib // 8))
    if machine.root:
        free = machine.ram_mib - system
        return min(_MOST_FOR_CONTAINERS_SHARED, max(_LEAST_FOR_CONTAINERS, _step(free)))
    daemons = sum(heap_mib(machine, p) + _BESIDE_HEAP for p in machine.processes if p in DAEMONS)
    return max(_LEAST_FOR_CONTAINERS, _step(machine.ram_mib - system - daemons))


def vcores(machine: Machine) -> int:
    """The cores that a node manager offers.

    The scheduler counts memory only, so this number just limits single requests.
    """
    return max(8 if machine.root else 4, 2 * machine.vcpus)


@frozen(kw_only=True)
class TaskSizes:
    """The memory of containers and of the heaps in them, in MiB."""

    task: int
    task_heap: int
    master: int
    master_heap: int
    launcher: int
    launcher_heap: int
    sort: int


SHARED_SIZES = TaskSizes(
    task=192, task_heap=128, master=320, master_heap=208, launcher=384, launcher_heap=256, sort=16
)


def task_sizes(machines: Sequence[Machine]) -> TaskSizes:
    """The sizes for the whole cluster, which follow from its smallest node manager."""
    offers = [containers_mib(m) for m in holders(machines, NODEMANAGER)]
    if not offers or any(m.root for m in machines):
        return SHARED_SIZES
    unit = min(2048, max(SHARED_SIZES.task, _step(min(offers) // 8)))
    heap = unit * 2 // 3
    # a master that runs a small job's tasks needs the heap of a task beside its own; it is at most
    # as large as the smallest driver of Spark (see `hadoop`, the note on progress)
    master = max(SHARED_SIZES.launcher, unit, min(_SPARK_LEAST, unit + 2 * _STEP))
    launcher = max(SHARED_SIZES.launcher, min(1024, unit))
    return TaskSizes(
        task=unit,
        task_heap=heap,
        master=master,
        master_heap=max(master * 2 // 3, heap + _MASTERS_OWN),
        launcher=launcher,
        launcher_heap=launcher * 2 // 3,
        sort=max(SHARED_SIZES.sort, min(256, unit // 8)),
    )


@frozen(kw_only=True)
class SparkSizes:
    """The memory of Spark's containers and of the heaps in them, in MiB.

    cores: tasks that an executor runs at once. most: executors of one job.
    """

    driver: int
    driver_heap: int
    executor: int
    executor_heap: int
    cores: int
    most: int


_SPARK_LEAST, _SPARK_BESIDE_HEAP = 704, 192
"""MiB of the smallest container of Spark, and the part of it that is no heap."""
_LARGEST_DRIVER, _LARGEST_EXECUTOR = 4096, 8192


def spark_sizes(machines: Sequence[Machine]) -> SparkSizes:
    """The sizes for the whole cluster. On servers four executors fill its smallest node manager.

    One job leaves a quarter of the cluster to others.
    """
    workers = holders(machines, NODEMANAGER)
    if not workers or any(m.root for m in machines):
        return SparkSizes(
            driver=_SPARK_LEAST, driver_heap=512, executor=_SPARK_LEAST, executor_heap=512,
            cores=2, most=1,
        )  # fmt: skip
    least = min(workers, key=containers_mib)
    offer = containers_mib(least)
    driver = min(_LARGEST_DRIVER, max(_SPARK_LEAST, _step(offer // 8)))
    executor = min(_LARGEST_EXECUTOR, max(_SPARK_LEAST, _step(offer // 4)))
    places = sum(containers_mib(m) // executor for m in workers)
    return SparkSizes(
        driver=driver,
        driver_heap=_spark_heap(driver),
        executor=executor,
        executor_heap=_spark_heap(executor),
        cores=max(1, least.vcpus * executor // offer),
        most=max(1, places * 3 // 4),
    )


def _spark_heap(container: int) -> int:
    return container - max(_SPARK_BESIDE_HEAP, _step(container // 8))


def _step(mib: int) -> int:
    return mib // _STEP * _STEP
