"""Finds faults of `job_configs`: values that have no way to a program of the job. Pure.

The texts never contain values, because these may be secrets.
"""

from __future__ import annotations

import posixpath
import re
from collections.abc import Callable, Iterator, Mapping, Sequence
from functools import partial
from typing import TYPE_CHECKING, Final

from svcd.model.job import DataSource, JobConfigs, JobType
from svcd.model.template import ConfigValue
from svcd.workflow.decide import arguments
from svcd.workflow.decide.job_types import STREAMING_MAPPER, STREAMING_REDUCER, TYPES, traits_of

if TYPE_CHECKING:
    from svcd.ports.engine import LauncherLimits  # the commands, too, import this module

MOST_FAULTS: Final = 100
"""Faults that one answer names."""

_FORBIDDEN: Final = re.compile("[\x00-\x08\x0b\x0c\x0e-\x1f\ud800-\udfff\ufffe\uffff]")
"""Characters that XML cannot hold. To compile the complement takes seven times as long."""
_PLAIN: Final = re.compile(r"[A-Za-z_][A-Za-z0-9_-]*\Z")
_FIRST_WORD: Final = re.compile(r"""(?:"[^"]+|'[^']+|[^ "']+)""")
"""The program in a command of streaming, whose words end at blanks and at quotation marks."""
_MOST_NAME: Final = 60
"""Characters of a caller's name that a text shows."""

ATTEMPTS: Final = "oozie.launcher.max.attempts"
_SVCDS: Final = frozenset({ATTEMPTS, "oozie.action.yarn.tag"})
"""Configurations that svcd sets, or by which svcd finds the applications of a job."""
ENGINES_OWN: Final = frozenset(
    {
        "oozie.wf.application.path",
        "oozie.wf.external.id",
        "oozie.coord.application.path",
        "oozie.bundle.application.path",
        "oozie.proxysubmission",
        "oozie.jobs.api.generated.xml",
    }
)

_LAUNCHER_QUEUES: Final = (
    "oozie.launcher.queue",
    "mapreduce.job.queuename",
    "mapred.job.queue.name",
)
_LAUNCHER_MIB: Final = (
    "oozie.launcher.memory.mb",
    "yarn.app.mapreduce.am.resource.mb",
    "mapreduce.map.memory.mb",
    "mapred.job.map.memory.mb",
)
_LAUNCHER_CORES: Final = (
    "oozie.launcher.vcores",
    "yarn.app.mapreduce.am.resource.cpu-vcores",
    "mapreduce.map.cpu.vcores",
)
"""Names of which Oozie takes the first that is given for the launcher. Source: its defaults."""


def starts(job_type: JobType, configs: Mapping[str, ConfigValue], name: str) -> bool:
    """Whether a machine may start the file of this name, so that its `#!` line matters.

    configs: of the job. A command such as `python3 mapper.py` starts another program.
    Source: Hadoop 3.4.2 `PipeMapRed.configure`, `PipeMapRed.splitArgs`.
    """
    if not traits_of(job_type).is_map_reduce:
        return job_type is JobType.SHELL
    commands = (str(configs.get(name, "")) for name in (STREAMING_MAPPER, STREAMING_REDUCER))
    words = (_FIRST_WORD.search(command) for command in commands)
    return name in {posixpath.normpath(word.group().strip("'\"")) for word in words if word}


def xml_fault(text: str) -> str:
    """The reason why no definition can hold `text`; "" when it can."""
    found = _FORBIDDEN.search(text)
    return "" if found is None else f"contains U+{ord(found.group()):04X}, which XML does not allow"


def faults_of(job_type: JobType, main: str, configs: JobConfigs) -> Iterator[str]:
    """The faulty values, each with its JSON path. main: the file name of the program."""
    limited = arguments.is_process(job_type, main)
    of_program = partial(arguments.program_fault, limited=limited)
    maps = [("configs", configs.configs), ("params", configs.params)]
    if isinstance(configs.args, Mapping):
        maps.append(("args", configs.args))
    else:
        for index, argument in enumerate(configs.args):
            if wrong := of_program(argument):
                yield f"$.job_configs.args[{index}]: {wrong}"
    for key, values in maps:
        fault: Callable[[str], str] = xml_fault if key == "configs" else of_program
        for name, value in values.items():
            wrong = fault(name) or _misnamed(key, name)
            if wrong:
                yield f"$.job_configs.{key}: the name {shown(name)} {wrong}"
            elif isinstance(value, str) and (wrong := fault(_whole(key, name, value))):
                step = f".{name}" if _PLAIN.match(name) else f"[{shown(name)}]"
                yield f"$.job_configs.{key}{step}: {wrong}"
    if limited and (wrong := arguments.total_fault(configs)):
        yield wrong


def source_faults(sources: Mapping[str, DataSource | None]) -> Iterator[str]:
    """The texts that no definition can hold. sources: by the fields of the request."""
    for key, source in sources.items():
        if source is None:
            continue
        account = source.credentials
        places = {"url": source.url}
        if account is not None:
            places |= {"user": account.user, "password": account.password}
        for place, text in places.items():
            if xml_fault(text):
                yield f"$.{key}: the {place} of the data source {xml_fault(text)}"


def unusable(job_type: JobType, configs: JobConfigs) -> Iterator[str]:
    """Faults of values that jobs of this type do not take; each names those that they take."""
    traits = TYPES.get(job_type)
    if traits is None:
        return
    kind = f"{'an' if job_type.value[0] in 'AEIO' else 'a'} {job_type.value} job"
    for name, values in (("args", configs.args), ("params", configs.params)):
        if values and name not in traits.texts:
            known = ", ".join(traits.texts)
            yield f"$.job_configs.{name}: {kind} takes no {name}; it takes {known}"
    for name in configs.configs:
        if name in ENGINES_OWN:
            yield f'$.job_configs.configs["{name}"]: svcd sets this configuration itself; remove it'
        elif name.startswith("edp.") and name not in traits.settings:
            known = ", ".join(traits.settings) or "none"
            yield (
                f"$.job_configs.configs[{shown(name)}]: {kind} has no such setting; "
                f"settings of {kind} that begin with edp.: {known}"
            )


def launcher_faults(
    job_type: JobType, configs: Mapping[str, ConfigValue], limits: LauncherLimits
) -> Iterator[str]:
    """The sizes for which the cluster can never start the launcher of the job."""

    def given(names: Sequence[str]) -> tuple[str, str]:
        known = names[:1] if job_type is JobType.SPARK else names
        found = next((name for name in known if name in configs), "")
        return found, str(configs.get(found, "")).strip()

    queue = given(_LAUNCHER_QUEUES)[1].removeprefix("root.") or limits.queue
    most_mib = limits.most_mib.get(queue, 0)
    for names, most, unit in (
        (_LAUNCHER_MIB, most_mib, "MiB"),
        (_LAUNCHER_CORES, limits.most_cores, "cores"),
    ):
        name, value = given(names)
        size = _size(value)
        if name == names[0] and value and "${" not in value and (size is None or size < 1):
            yield f"$.job_configs.configs[{shown(name)}]: expected a number of {unit}, 1 or more"
        elif most and size is not None and size > most:
            way = (
                f"give at most {most}"
                if name == names[0]
                else f"add {names[0]} with at most {most}"
            )
            yield (
                f"$.job_configs.configs[{shown(name)}]: the launcher of the job would have {size}"
                f" {unit}; on this cluster it has at most {most} in YARN's queue {queue}; {way}"
            )


def _size(value: str) -> int | None:
    """The number that Hadoop reads; None when it reads none."""
    try:
        return int(value, 16 if value.lower().startswith(("0x", "-0x")) else 10)
    except ValueError:
        return None


def _whole(key: str, name: str, value: str) -> str:
    """The text in which a program or a reader gets `value`."""
    return value if key == "configs" else f"{name}={value}"


def _misnamed(key: str, name: str) -> str:
    """The fault of a name. The engine trims those of configurations."""
    if key == "args":
        return ""
    trimmed = name.strip() if key == "configs" else name
    if not trimmed:
        return "is empty"
    if name != trimmed:
        return "begins or ends with white space"
    if key == "configs" and name in _SVCDS:
        return "is reserved: svcd starts a job's program once, and finds it by its tag"
    if key == "params" and "=" in name:
        return "contains '=', which separates a name from its value"
    return ""


def shown(name: str) -> str:
    """A caller's name in quotation marks, cut to `_MOST_NAME` characters."""
    cut = "…" if len(name) > _MOST_NAME else ""
    plain = "".join(c if c.isprintable() else "?" for c in name[:_MOST_NAME])
    return '"' + plain.replace('"', "'") + cut + '"'
