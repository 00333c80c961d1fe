"""Configuration hints of the job types. They are advice only. Pure."""

from __future__ import annotations

from typing import Final

from svcd.errors import NotFound
from svcd.model.choices import listed
from svcd.model.job import JobType
from svcd.model.wire_jobs import ConfigHint, JobConfig
from svcd.ports.engine import Engines
from svcd.workflow.decide.job_types import traits_of

JAR: Final = (
    ("mapred.reducer.new-api", "true", "Whether the reducer is of the new API."),
    ("mapred.mapper.new-api", "true", "Whether the mapper is of the new API."),
    ("mapred.input.dir", "", "Input folder; the input data source is used when empty."),
    ("mapred.output.dir", "", "Output folder; the output data source is used when empty."),
    ("mapred.mapoutput.key.class", "", "Class of the keys that mappers put out."),
    ("mapred.mapoutput.value.class", "", "Class of the values that mappers put out."),
    ("mapred.output.key.class", "", "Class of the keys of the output."),
    ("mapred.output.value.class", "", "Class of the values of the output."),
    ("mapreduce.map.class", "", "Mapper of the new API."),
    ("mapreduce.reduce.class", "", "Reducer of the new API."),
    ("mapred.mapper.class", "", "Mapper of the old API."),
    ("mapred.reducer.class", "", "Reducer of the old API."),
)
"""Name, default and description. Source: interface, "Job configuration hints"."""


def job_config(type_name: str, engines: Engines) -> JobConfig:
    """The answer's `job_config` for the type in the path.

    Raises NotFound for a type that does not exist.
    """
    try:
        job_type = JobType(type_name)
    except ValueError:
        raise NotFound(
            f"job type {type_name!r} not found; there are {listed([t.value for t in JobType])}"
        ) from None
    own = JAR if traits_of(job_type).is_map_reduce else ()
    configs = {n: ConfigHint(name=n, value=v, description=d) for n, v, d in own}
    for hint in engines.hints(job_type):
        shown = ConfigHint(name=hint.name, value=hint.value, description=hint.description)
        configs.setdefault(hint.name, shown)
    return JobConfig(configs=list(configs.values()), args={})
