"""Hints for job configurations: the names that are worth setting, with their defaults.

Source: interface, "Job configuration hints" (the twelve names of `Jar` and their defaults).
"""

from __future__ import annotations

import functools
from collections.abc import Sequence

from svcd.model.job import JobType
from svcd.provisioning.distributions.spi import Hint
from svcd.provisioning.distributions.vanilla.entries import Site, defaults

JOB_TYPES = (
    JobType.PIG,
    JobType.JAR,
    JobType.MAP_REDUCE,
    JobType.JAVA,
    JobType.SHELL,
    JobType.SPARK,
)

_CLASSIC = (
    Hint(
        name="mapred.reducer.new-api",
        value="true",
        description="Whether the reducer is of the new API (org.apache.hadoop.mapreduce).",
    ),
    Hint(
        name="mapred.mapper.new-api",
        value="true",
        description="Whether the mapper is of the new API (org.apache.hadoop.mapreduce).",
    ),
    Hint(name="mapred.input.dir", value="", description="Input of the job; set from the source."),
    Hint(name="mapred.output.dir", value="", description="Output of the job; set from the source."),
    Hint(name="mapred.mapoutput.key.class", value="", description="Key class of the map output."),
    Hint(
        name="mapred.mapoutput.value.class", value="", description="Value class of the map output."
    ),
    Hint(name="mapred.output.key.class", value="", description="Key class of the job's output."),
    Hint(
        name="mapred.output.value.class", value="", description="Value class of the job's output."
    ),
    Hint(name="mapreduce.map.class", value="", description="Mapper of the new API."),
    Hint(name="mapreduce.reduce.class", value="", description="Reducer of the new API."),
    Hint(name="mapred.mapper.class", value="", description="Mapper of the old API."),
    Hint(name="mapred.reducer.class", value="", description="Reducer of the old API."),
)
_OF_JAVA = (
    Hint(name="edp.java.main_class", value="", description="Class with the main method."),
    Hint(
        name="edp.java.java_opts",
        value="",
        description="Options of the job's Java virtual machine.",
    ),
)
_OF_SPARK = (
    Hint(name="edp.java.main_class", value="", description="Class with the main method of a .jar."),
    Hint(
        name="edp.spark.arguments",
        value="",
        description="'explicit': the program gets its own arguments alone; else the URLs of input"
        " and output come before them.",
    ),
    Hint(name="spark.driver.memory", value="512m", description="Heap of the driver."),
    Hint(name="spark.driver.memoryOverhead", value="192m", description="Its memory beside it."),
    Hint(name="spark.executor.instances", value="1", description="Number of executors."),
    Hint(name="spark.executor.cores", value="1", description="Tasks that run at a time in each."),
    Hint(name="spark.executor.memory", value="512m", description="Heap of each executor."),
    Hint(
        name="spark.executor.memoryOverhead",
        value="192m",
        description="Memory of each executor beside its heap, for Python too.",
    ),
    Hint(
        name="spark.sql.shuffle.partitions",
        value="200",
        description="Number of partitions after a shuffle of data frames and SQL.",
    ),
    Hint(
        name="spark.default.parallelism",
        value="",
        description="Number of partitions of RDDs; by default that of the executors' cores.",
    ),
    Hint(
        name="spark.sql.adaptive.enabled",
        value="true",
        description="Whether Spark adapts a query while it runs.",
    ),
    Hint(name="spark.hadoop.dfs.replication", value="", description="Copies of each output block."),
)


@functools.cache
def hints(job_type: JobType) -> Sequence[Hint]:
    """The hints for `job_type`, the most useful first; empty for a type that cannot run."""
    match job_type:
        case JobType.JAR | JobType.MAP_REDUCE:
            return (*_CLASSIC, *_of_mapreduce())
        case JobType.PIG:
            return _of_mapreduce()
        case JobType.JAVA:
            return _OF_JAVA
        case JobType.SPARK:
            return _OF_SPARK
        case _:
            return ()


def _of_mapreduce() -> tuple[Hint, ...]:
    return tuple(
        Hint(name=d.name, value=d.value, description=d.description) for d in defaults(Site.MAPRED)
    )
