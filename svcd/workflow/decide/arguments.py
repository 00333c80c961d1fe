"""Decides how the values of a job reach its program: names of files, variables, arguments. Pure.

Between the API and a program stand the grammars of Oozie's definition, of Hadoop's configuration
and of YARN's shell. Each of them changes texts: it trims, splits or replaces. So the values of
Shell, Java, Pig and Spark jobs do not pass through them. svcd writes them into a file of the
execution's folder, and the engine knows only the names of that file and of the staged files, which
svcd chooses. `spark_values` has the ways of Spark.

Note: Java. A class of svcd reads the file, gives the job's files their own names, and calls the
main class with the arguments and an empty standard input. The class travels with the job, because
the machines of older images do not have it. The name of the main class is a configuration, in
which the engine may replace expressions, so it stays an argument of the action. The program shares
its folder with the launcher.

Note: the script. It makes a folder, puts the files there under their own names, and becomes the
program (`exec`): the process, its group, its signals and its exit code are the program's. The
program's `$0` is `./NAME`. Its standard input is empty. The folder also has links to the other
files of the container's folder, unless a file of the job has the name. A file is a second link to
YARN's copy, so that its real path is in this folder, too; on another file system it is a copy.

Note: the last words of the script. `env` sets the variables, because a shell has variables of its
own, and refuses names like `A.B`. `env` would take a program `./a=b.sh` for a variable; `nice -n 0`
does nothing but run its operand.

Note: secrets. The script is in a folder that only the user of HDFS may read. The definition,
which all users of the engine may read, has none of the values. The launcher prints the script of
an action in its log, unless the program of the action is not in the container's folder. So it is
`sh`, and the script is its argument.

Source: Oozie 5.2.1 `ShellMain`, `ShellContentWriter`; POSIX.1-2017; Linux `execve(2)`.
"""

from __future__ import annotations

import codecs
import functools
import io
import re
import shlex
import zipfile
from collections.abc import Iterator, Mapping, Sequence
from importlib import resources
from pathlib import PurePath
from typing import Final
from urllib.parse import quote

from svcd.model.ids import JobBinaryId
from svcd.model.job import JobBinary, JobConfigs, JobType
from svcd.model.names import is_data_name
from svcd.model.template import ConfigValue

START: Final = "svcd-start.sh"
"""The script that starts the program of a Shell job."""
LIB: Final = "lib/"
"""The folder whose files the engine hands to a program, and puts on its class path."""
START_CLASS: Final = "org.svcd.jobs.StartMain"
"""The class that starts the main class of a Java job; its source is in svcd.workflow.runner."""
_PACKAGE: Final = "org/svcd/jobs/"
START_JAR: Final = "svcd-start.jar"
START_PYTHON: Final = "svcd-start.py"
"""The program of Spark that becomes the Python program of a job."""
VALUES: Final = "svcd-values"
"""The file from which `START_CLASS` reads its values."""
SEARCHED: Final = frozenset({".jar", ".zip", ".egg", ".whl"})
"""Endings of libraries in which Spark's programs search for classes or modules."""
HEAD: Final = 65_536
"""The first bytes of a file that `script_fault` reads at most."""

_LINKED: Final = frozenset({JobType.JAR, JobType.MAP_REDUCE, JobType.PIG})
"""Job types whose tasks have the files: by `links`, or because they are in `LIB`."""
_FILE: Final = "svcd-file-"
_MOST_TEXT: Final = 131_071
"""Bytes of one argument, or of a variable with its name, that Linux hands to a program."""
_MOST_TEXTS: Final = 1_900_000
"""The same for all texts together: a quarter of the usual stack, less the machine's variables."""
_END_AND_POINTER: Final = 9
"""Bytes that Linux needs for each text beside its own: its end and its pointer."""
_FOLDER: Final = frozenset(
    {
        *("container_tokens", "tmp", "launch_container.sh", "default_container_executor.sh"),
        *("default_container_executor_session.sh", VALUES, START_JAR),
    }
)
_LAUNCHER_FOLDER: Final = _FOLDER | {
    *("action.xml", "launcher.xml", "job.xml", "job.jar", "propagation-conf.xml")
}
_OWN: Final[Mapping[JobType, frozenset[str]]] = {
    JobType.JAVA: _LAUNCHER_FOLDER,
    **dict.fromkeys(_LINKED, _LAUNCHER_FOLDER | {"jobSubmitDir"}),
    JobType.SPARK: _FOLDER
    | {"__app__.jar", "__pyfiles__", "__spark_conf__", "__spark_libs__", START_PYTHON},
}
"""Names in the folder of a program that YARN, the engine, Spark or svcd itself has there."""
_MARKS: Final = re.compile("[,:*\x00-\x08\x0b-\x1f\x7f-\x9f\ufffe\uffff]")
"""Marks in the names of Hadoop's and Spark's lists and paths, and of YARN's links, and characters
that the XML of Hadoop's configuration loses."""
_MOST_NAME: Final = 255
"""Bytes of a file's name in Linux."""
_SAFE_NAME: Final = re.compile(r"[A-Za-z0-9._-]+\Z")
_NOT_A_TEXT: Final = re.compile("[\x00\ud800-\udfff]")
_SURROGATE: Final = re.compile("[\ud800-\udfff]")


def ending(name: str) -> str:
    """The ending of a file's name in small letters, such as `.jar`; "" without one."""
    return PurePath(name).suffix.lower()


def path(job_type: JobType, name: str, number: int, main: bool) -> str:
    """The path of a file in the execution's folder. number: see `staged`. main: not a library."""
    if job_type is JobType.SHELL:
        return staged(number)
    if job_type is JobType.SPARK:
        if ending(name) not in SEARCHED:
            return staged(number)
        return name if _SAFE_NAME.match(name) else f"{staged(number)}{ending(name)}"
    is_jar = name.endswith(".jar") or "." not in name  # Java ignores a .jar that is no archive
    if job_type is JobType.JAVA:
        return f"{LIB}{staged(number)}{'.jar' if is_jar else ''}"
    folder = "" if job_type is JobType.PIG and main else LIB
    return f"{folder}{name}" if is_data_name(name) else staged(number)


def staged(number: int) -> str:
    """The name of a file in the execution's folder, without a letter that a grammar could change.

    number: its place among the mains and then the libraries of a job.
    """
    return f"{_FILE}{number}"


def links(files: Sequence[str]) -> Sequence[str]:
    """The files of a MapReduce or Pig job that its definition names: path, and name for the tasks.

    Oozie itself finds the files in `lib`. Hadoop decodes the other names from URLs, and YARN puts
    them between double quotes of a shell. A name that ends in .jar is on the class path.
    """
    return [
        f"{staged(number)}#{fragment(name).replace('.', '%2E')}"  # Oozie would add a name to .so
        for number, name in enumerate(files)
        if path(JobType.MAP_REDUCE, name, number, False) == staged(number)
    ]


def fragment(name: str) -> str:
    """The fragment of a URL that makes YARN give a file the name.

    YARN writes it between double quotes of a shell.
    """
    text = re.sub(r'([\\"$`])', r"\\\1", name)
    return quote(_MARKS.sub(_printed, text), safe="")


def _printed(mark: re.Match[str]) -> str:
    """Words of a shell that stand for a character."""
    octal = "".join(f"\\{byte:o}" for byte in mark.group().encode())
    return f"$(printf '{octal}')"


def start_script(files: Sequence[str], args: Sequence[str], variables: Mapping[str, str]) -> bytes:
    """The script that starts a program. files: names, in the order of `staged`; first the program.

    The texts hold no U+0000 (see `svcd.model.shapes`), and a variable's name no `=`.
    """
    program = f"./{files[0]}"
    words = [
        *("exec", "env", "--"),
        *(shlex.quote(f"{name}={value}") for name, value in variables.items()),
        *(("nice", "-n", "0") if "=" in program else ()),
        *(shlex.quote(argument) for argument in (program, *args)),
        "</dev/null",
    ]
    lines = [
        "set -e",
        "mkdir job",
        "cd job",
        "ln -s ../* .",
        f"rm job {START} {_FILE}*",
        'put() { rm -f "./$2"; ln -L "../$1" "./$2" 2>/dev/null || cp -p "../$1" "./$2"; }',
        *(f"put {staged(number)} {shlex.quote(name)}" for number, name in enumerate(files)),
        "unset OLDPWD",
        " ".join(words),
    ]
    return "".join(f"{line}\n" for line in lines).encode()


def java_values(files: Sequence[str], args: Sequence[str]) -> bytes:
    """The values for `START_CLASS`. files: names, in the order of `staged`."""
    places = [path(JobType.JAVA, name, n, False).removeprefix(LIB) for n, name in enumerate(files)]
    return values([*zip(places, files, strict=True)], args)


def values(places: Sequence[tuple[str, str]], args: Sequence[str]) -> bytes:
    """The content of `VALUES`. places: of files in the program's folder, with their own names."""
    words = [str(len(places)), *(word for place in places for word in place), *args]
    return "".join(f"{word}\0" for word in words).encode()


@functools.cache
def start_jar() -> bytes:
    """The jar with the classes that start programs."""
    jar = io.BytesIO()
    with zipfile.ZipFile(jar, "w") as opened:
        for file in sorted(resources.files("svcd.workflow").joinpath("runner").iterdir(), key=str):
            if file.name.endswith((".class", ".type")):
                name = f"{_PACKAGE}{file.name}"
                opened.writestr(zipfile.ZipInfo(name), file.read_bytes())
    return jar.getvalue()


# ---- faults -------------------------------------------------------------------------------------


def file_name_fault(name: str) -> str:
    """The reason why no file can have the name; "" when a file can."""
    if _SURROGATE.search(name):
        return "the name is not UTF-8: rename the file"
    if name in (".", "..") or "/" in name or "\0" in name:
        return "no file can have this name: give one without / and U+0000, and not . or .."
    size = len(name.encode())
    return f"has {size} bytes; a name has at most 255" if size > _MOST_NAME else ""


def file_faults(
    job_type: JobType, mains: Sequence[JobBinary], libs: Sequence[JobBinary]
) -> Iterator[str]:
    """Faults of the names of a job's files, with their JSON paths."""
    places: dict[str, tuple[str, JobBinaryId]] = {}
    for key, binaries in (("mains", mains), ("libs", libs)):
        for index, binary in enumerate(binaries):
            place = f"$.{key}[{index}]"
            other, id_ = places.setdefault(binary.file, (place, binary.id))
            if id_ != binary.id:
                yield f"{place}: its file has the same name as that of {other}: give one another"
            if wrong := taken(job_type, binary.file):
                yield f"{place}: {wrong}"


def taken(job_type: JobType, name: str) -> str:
    """The reason why no file of such a job can have the name; "" when a file can."""
    is_staged = job_type in (JobType.JAVA, JobType.SPARK) and name.startswith(_FILE)
    if is_staged or name in _OWN.get(job_type, ()):
        return (
            f"YARN, Spark or svcd has a file {name} of its own in the program's folder: give the"
            " job's file another name"
        )
    if job_type in _LINKED and name == "*":
        return "with a file named * Java finds no class: give it another name"
    return ""


def script_fault(job_type: JobType, head: bytes, main: bool) -> str:
    """The reason why no machine can start a file as a script; "" when it can, or for no script.

    It is for the files that `job_configs.starts` names. head: the first bytes of the file, of which
    it reads `HEAD`. main: the program of the job.
    """
    program = main or job_type is not JobType.SHELL
    wide = head.startswith((b"#\0!\0", b"\0#\0!", b"\xff\xfe#\0!\0", b"\xfe\xff\0#\0!"))
    if wide or (program and head.startswith((codecs.BOM_UTF16_LE, codecs.BOM_UTF16_BE))):
        return "it is a script in UTF-16, which no machine can start: save it as UTF-8"
    if head.startswith(codecs.BOM_UTF8 if program else codecs.BOM_UTF8 + b"#!"):
        return (
            "a byte order mark stands before its first line, so no machine reads this line: save"
            " it as UTF-8 without the mark"
        )
    if head.startswith(b"#!") and b"\r" in head[:HEAD].partition(b"\n")[0]:
        return (
            "its #! line ends with a carriage return, so no machine finds its program: save it"
            " with line feeds only (dos2unix)"
        )
    return ""


def is_process(job_type: JobType, main: str) -> bool:
    """Whether Linux starts the program, and limits its texts. The JVM starts a main class."""
    return job_type is JobType.SHELL or (job_type is JobType.SPARK and ending(main) == ".py")


def program_fault(text: str, limited: bool) -> str:
    """The reason why no program can get `text` as an argument or variable; "" when it can.

    limited: see `is_process`.
    """
    wrong = _NOT_A_TEXT.search(text)
    if wrong is not None:
        return f"contains U+{ord(wrong.group()):04X}, which no program can get: put it into a file"
    if limited and len(text) * 4 > _MOST_TEXT and len(text.encode()) > _MOST_TEXT:
        return f"has more than {_MOST_TEXT:,} bytes, the limit of Linux; put it into a file"
    return ""


def total_fault(configs: JobConfigs) -> str:
    """The reason why Linux does not hand all arguments and variables to a program, or ""."""
    given = [*args_of(configs), *(f"{n}={v}" for n, v in texts(configs.params).items())]
    sizes = (len(text.encode("utf-8", "surrogatepass")) + _END_AND_POINTER for text in given)
    if sum(sizes) <= _MOST_TEXTS:
        return ""
    return (
        f"$.job_configs: args and params have more than {_MOST_TEXTS:,} bytes, the limit of Linux"
        " for one program; put them into a file"
    )


# ---- the texts of a job -------------------------------------------------------------------------


def args_of(configs: JobConfigs) -> Sequence[str]:
    """The arguments of a program, in their order."""
    if isinstance(configs.args, Mapping):
        return [f"{name}={value}" for name, value in texts(configs.args).items()]
    return configs.args


def texts(values: Mapping[str, ConfigValue]) -> dict[str, str]:
    """`values` as texts."""
    return {name: text(value) for name, value in values.items()}


def text(value: ConfigValue) -> str:
    """`value` as a text."""
    return str(value).lower() if isinstance(value, bool) else str(value)
