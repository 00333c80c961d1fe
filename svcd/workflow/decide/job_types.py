"""The table of the job types: what a job of each type has. Pure.

A type that is not in the table has no definition for the engine, so svcd refuses its jobs.
"""

from __future__ import annotations

from collections.abc import Mapping
from typing import Final

from attrs import evolve, frozen

from svcd.model.job import JobType

MAIN_CLASS: Final = "edp.java.main_class"
JAVA_OPTS: Final = "edp.java.java_opts"
STREAMING_MAPPER: Final = "edp.streaming.mapper"
STREAMING_REDUCER: Final = "edp.streaming.reducer"
SPARK_ARGUMENTS: Final = "edp.spark.arguments"


@frozen(kw_only=True)
class Traits:
    """What a job of one type has.

    mains, libs: least numbers of binaries. takes_mains: False: mains must be empty. either: mains
    or libs is enough. texts: the parts of `job_configs` that it takes; settings: its
    configurations that begin with `edp.`. needs_data: it needs both data sources. reads_urls:
    svcd tells its program their URLs; other programs get their own arguments. is_map_reduce: its
    action may be one of streaming.
    """

    texts: tuple[str, ...]
    settings: tuple[str, ...] = ()
    mains: int = 0
    libs: int = 0
    takes_mains: bool = True
    either: bool = False
    needs_data: bool = False
    reads_urls: bool = False
    is_map_reduce: bool = False


_MAP_REDUCE: Final = Traits(
    texts=("configs",),
    settings=(STREAMING_MAPPER, STREAMING_REDUCER),
    libs=1,
    takes_mains=False,
    needs_data=True,
    reads_urls=True,
    is_map_reduce=True,
)
_ALL: Final = ("configs", "args", "params")

TYPES: Final[Mapping[JobType, Traits]] = {
    JobType.PIG: Traits(texts=_ALL, mains=1, needs_data=True, reads_urls=True),
    JobType.JAR: evolve(_MAP_REDUCE, libs=0, takes_mains=True, either=True),
    JobType.MAP_REDUCE: _MAP_REDUCE,
    JobType.JAVA: Traits(
        texts=("configs", "args"), settings=(MAIN_CLASS, JAVA_OPTS), libs=1, takes_mains=False
    ),
    JobType.SHELL: Traits(texts=_ALL, mains=1),
    JobType.SPARK: Traits(
        texts=_ALL, settings=(MAIN_CLASS, SPARK_ARGUMENTS), mains=1, reads_urls=True
    ),
}

_NO_TRAITS: Final = Traits(texts=())


def traits_of(job_type: JobType) -> Traits:
    """The traits of a type; those of a type without a definition are empty."""
    return TYPES.get(job_type, _NO_TRAITS)
