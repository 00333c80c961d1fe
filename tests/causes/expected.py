"""What svcd must say of each cell: the failure code, and the beginning of the failure's text.

A code of "" means that the job succeeds all the same, as with strange names of data.
"""

from __future__ import annotations

from collections.abc import Mapping
from typing import Final

_HEAP: Final = "java.lang.OutOfMemoryError: Java heap space"
_NO_PRICE: Final = "java.lang.IllegalStateException: row 17 has no price (Fault.java:"
_NO_SPACE: Final = "java.io.IOException: No space left on device"
_REMOTE: Final = "org.apache.hadoop.ipc.RemoteException"
_SPACE: Final = "org.apache.hadoop.hdfs.protocol.DSQuotaExceededException"
_QUOTA: Final = f"{_REMOTE}({_SPACE}): The DiskSpace quota of"
_DENIED: Final = "Permission denied: user=guest, access=EXECUTE"
_NOBODY: Final = "org.apache.hadoop.security.AccessControlException"
_REFUSED: Final = f"{_NOBODY}: {_DENIED}"
_NO_INPUT: Final = "Input path does not exist: hdfs://"
_NO_SCHEME: Final = "org.apache.hadoop.fs.UnsupportedFileSystemException: No FileSystem for scheme"
_MISSING: Final = "java.lang.NoClassDefFoundError: org/svcd/causes/Missing (Fault.java:"
_ABORTED: Final = "org.apache.spark.SparkException: Job aborted.: "
_KILLED: Final = "Application application_"
_CONTAINER: Final = "Container [pid="
_LOST: Final = "Container released on a *lost* node"
_TYPES: Final = ("Pig", "Jar", "Streaming", "Java", "Shell", "PySpark", "SparkSQL", "SparkJar")
_LARGE: Final[Mapping[str, tuple[str, str]]] = {
    "Pig/input-missing": ("INPUT_MISSING", f"java.io.IOException: {_NO_INPUT}"),
    "Pig/output-exists": (
        "OUTPUT_EXISTS",
        "ERROR 6000: <file pig-output-exists.pig, line 2, column 0> Output Location",
    ),
    "Pig/scheme-wrong": ("SCHEME_UNKNOWN", f'{_NO_SCHEME} "htfs";'),
    "Pig/permission": ("PERMISSION_DENIED", _REFUSED),
    "Pig/syntax": (
        "SYNTAX_ERROR",
        "ERROR 1200: <file pig-syntax.pig, line 2, column 0> mismatched input 'STORE'",
    ),
    "Pig/alias-unknown": (
        "SYNTAX_ERROR",
        "ERROR 1200: Pig script failed to parse: <file pig-alias-unknown.pig, line 2, column 6>"
        " Undefined alias: line;",
    ),
    "Pig/schema-wrong": (
        "SYNTAX_ERROR",
        'ERROR 1031: Incompatible schema: left is "key:NULL,value:NULL", right is'
        ' "line:chararray" (pig-schema-wrong.pig, line 2, column 8);',
    ),
    "Pig/cast-wrong": (
        "SYNTAX_ERROR",
        "ERROR 1052: Cannot cast chararray to bag with schema line:bag{:tuple()}"
        " (pig-cast-wrong.pig, line 2, column 8);",
    ),
    "Pig/variable-missing": (
        "VARIABLE_UNKNOWN",
        "org.apache.pig.tools.parameters.ParameterSubstitutionException: Undefined parameter :"
        " MOST;",
    ),
    "Pig/class-missing": (
        "CLASS_MISSING",
        "ERROR 1070: Could not resolve org.example.MyLoader using imports:",
    ),
    "Pig/exception": ("EXCEPTION", _NO_PRICE),
    "Pig/oom-container": ("OUT_OF_MEMORY", _CONTAINER),
    "Pig/oom-driver": ("OUT_OF_MEMORY", "java.lang.OutOfMemoryError: "),
    "Pig/oom-heap": ("OUT_OF_MEMORY", "Java heap space"),
    "Pig/killed": ("KILLED_ELSEWHERE", _KILLED),
    "Pig/killed-launcher": ("KILLED_ELSEWHERE", _KILLED),
    "Pig/worker-lost": ("WORKER_LOST", _LOST),
    "Pig/disk-full": ("NO_SPACE", _QUOTA),
    "Pig/disk-full-local": ("NO_SPACE", _NO_SPACE),
    "Jar/input-missing": (
        "INPUT_MISSING",
        "java.io.IOException: Input path does not exist: /causes/missing",
    ),
    "Jar/output-exists": (
        "OUTPUT_EXISTS",
        "org.apache.hadoop.mapred.FileAlreadyExistsException: Output directory",
    ),
    "Jar/scheme-wrong": (
        "SCHEME_UNKNOWN",
        "org.apache.hadoop.fs.UnsupportedFileSystemException: No FileSystem for",
    ),
    "Jar/permission": ("PERMISSION_DENIED", f"{_REMOTE}({_NOBODY}): {_DENIED}"),
    "Jar/class-missing": (
        "CLASS_MISSING",
        "java.lang.ClassNotFoundException: Class org.example.MyMapper not found",
    ),
    "Jar/class-missing-used": (
        "CLASS_MISSING",
        "java.lang.ClassNotFoundException: org.svcd.causes.Missing (Fault.java:",
    ),
    "Jar/exception": ("EXCEPTION", _NO_PRICE),
    "Jar/oom-container": ("OUT_OF_MEMORY", _CONTAINER),
    "Jar/oom-driver": ("OUT_OF_MEMORY", "java.lang.OutOfMemoryError: Java heap space"),
    "Jar/oom-heap": ("OUT_OF_MEMORY", "Java heap space"),
    "Jar/killed": ("KILLED_ELSEWHERE", _KILLED),
    "Jar/worker-lost": ("", ""),
    "Jar/disk-full": ("NO_SPACE", _QUOTA),
    "Jar/disk-full-local": ("NO_SPACE", _NO_SPACE),
    "Streaming/input-missing": (
        "INPUT_MISSING",
        "java.io.IOException: Input path does not exist: /causes/missing",
    ),
    "Streaming/output-exists": (
        "OUTPUT_EXISTS",
        "org.apache.hadoop.mapred.FileAlreadyExistsException: Output directory",
    ),
    "Streaming/syntax": ("SYNTAX_ERROR", "SyntaxError: expected ':' (streaming-syntax.py, line 2)"),
    "Streaming/class-missing": (
        "MODULE_MISSING",
        "ModuleNotFoundError: No module named 'polars' (streaming-class-missing.py, line 1);",
    ),
    "Streaming/program-missing": (
        "MODULE_MISSING",
        'java.io.IOException: Cannot run program "mapper.rb": error=2, No such file or directory',
    ),
    "Streaming/exception": ("EXCEPTION", "KeyError: 'one two two"),
    "Streaming/oom-container": ("OUT_OF_MEMORY", _CONTAINER),
    "Streaming/oom-heap": ("OUT_OF_MEMORY", "MemoryError (streaming-oom-heap.py, line 3);"),
    "Streaming/signal": (
        "KILLED_ELSEWHERE",
        "java.lang.RuntimeException: PipeMapRed.waitOutputThreads(): subprocess failed with code",
    ),
    "Streaming/disk-full-local": ("NO_SPACE", "OSError: [Errno 28] No space left on device"),
    "Java/input-missing": (
        "INPUT_MISSING",
        "java.io.IOException: Input path does not exist: hdfs://",
    ),
    "Java/output-exists": (
        "OUTPUT_EXISTS",
        "org.apache.hadoop.mapred.FileAlreadyExistsException: Output directory",
    ),
    "Java/scheme-wrong": ("SCHEME_UNKNOWN", f'{_NO_SCHEME} "htfs" (Report.java:'),
    "Java/permission": ("PERMISSION_DENIED", f"{_REMOTE}({_NOBODY}): {_DENIED}"),
    "Java/class-missing": (
        "CLASS_MISSING",
        "java.lang.ClassNotFoundException: Class org.example.Report not found;",
    ),
    "Java/class-missing-used": (
        "CLASS_MISSING",
        "org/svcd/causes/Missing: java.lang.ClassNotFoundException:",
    ),
    "Java/exception": ("EXCEPTION", _NO_PRICE),
    "Java/exception-in-task": ("EXCEPTION", _NO_PRICE),
    "Java/oom-container": ("OUT_OF_MEMORY", _CONTAINER),
    "Java/oom-driver": ("OUT_OF_MEMORY", _HEAP),
    "Java/oom-heap": ("OUT_OF_MEMORY", "Java heap space"),
    "Java/killed": ("KILLED_ELSEWHERE", _KILLED),
    "Java/killed-child": ("KILLED_ELSEWHERE", _KILLED),
    "Java/worker-lost": ("WORKER_LOST", _LOST),
    "Java/disk-full": (
        "NO_SPACE",
        "org.apache.hadoop.ipc.RemoteException(org.apache.hadoop.hdfs.protocol.DSQuo",
    ),
    "Java/disk-full-local": ("NO_SPACE", _NO_SPACE),
    "Shell/input-missing": ("FILE_MISSING", "cat: `/causes/missing': No such file or directory;"),
    "Shell/input-missing-local": (
        "FILE_MISSING",
        "sort: cannot read: words.txt: No such file or directory;",
    ),
    "Shell/output-exists": ("OUTPUT_EXISTS", "mkdir: `/causes/there': File exists;"),
    "Shell/scheme-wrong": ("SCHEME_UNKNOWN", 'cat: No FileSystem for scheme "htfs";'),
    "Shell/permission": ("PERMISSION_DENIED", f"cat: {_DENIED}"),
    "Shell/syntax": (
        "SYNTAX_ERROR",
        "./shell-syntax.sh: line 5: syntax error near unexpected token `done';",
    ),
    "Shell/syntax-python": (
        "SYNTAX_ERROR",
        "SyntaxError: expected ':' (shell-syntax-python.sh, line 2);",
    ),
    "Shell/class-missing": ("MODULE_MISSING", "./shell-class-missing.sh: line 3: csvsort: command"),
    "Shell/class-missing-python": (
        "MODULE_MISSING",
        "ModuleNotFoundError: No module named 'polars' (shell-class-missing-python.sh, line 2);",
    ),
    "Shell/exception": ("EXIT_CODE", "no rate for EUR;"),
    "Shell/exception-traced": ("EXIT_CODE", "no rate for EUR;"),
    "Shell/class-missing-first": (
        "MODULE_MISSING",
        "./shell-class-missing-first.sh: line 3: csvsort: command not found;",
    ),
    "Shell/exception-python": ("EXCEPTION", "KeyError: 'EUR' (shell-exception-python.sh, line 3);"),
    "Shell/oom-container": ("OUT_OF_MEMORY", _KILLED),
    "Shell/oom-heap": ("OUT_OF_MEMORY", "MemoryError (shell-oom-heap.sh, line 4);"),
    "Shell/signal": ("KILLED_ELSEWHERE", "./shell-signal.sh: line 4: "),
    "Shell/killed": ("KILLED_ELSEWHERE", _KILLED),
    "Shell/worker-lost": ("WORKER_LOST", _LOST),
    "Shell/disk-full": ("NO_SPACE", "put: The DiskSpace quota of"),
    "Shell/disk-full-local": ("NO_SPACE", "./shell-disk-full-local.sh: line 3: echo: write error"),
    "PySpark/input-missing": (
        "INPUT_MISSING",
        "pyspark.errors.exceptions.captured.AnalysisException: [PATH_NOT_FOUND]",
    ),
    "PySpark/output-exists": (
        "OUTPUT_EXISTS",
        "pyspark.errors.exceptions.captured.AnalysisException:",
    ),
    "PySpark/scheme-wrong": (
        "SCHEME_UNKNOWN",
        "org.apache.hadoop.fs.UnsupportedFileSystemException: No FileSystem for",
    ),
    "PySpark/syntax": ("SYNTAX_ERROR", "SyntaxError: '(' was never closed (pyspark-syntax.py"),
    "PySpark/class-missing": (
        "MODULE_MISSING",
        "ModuleNotFoundError: No module named 'polars' (pyspark-class-missing.py, line 1);",
    ),
    "PySpark/exception": ("EXCEPTION", "KeyError: 'EUR' (pyspark-exception.py, line 5);"),
    "PySpark/exception-in-task": (
        "EXCEPTION",
        "ZeroDivisionError: division by zero (pyspark-exception-in-task.py, line 5);",
    ),
    "PySpark/signal": (
        "KILLED_ELSEWHERE",
        "Container killed on request. Exit code is 137 Container exited with a non-zero exit",
    ),
    "PySpark/signal-python": (
        "KILLED_ELSEWHERE",
        "User application exited with status 137: signal",
    ),
    "PySpark/signal-executor": (
        "KILLED_ELSEWHERE",
        "org.apache.spark.SparkException: Job aborted due to stage failure: Task 0 in stage 0.0",
    ),
    "PySpark/oom-container": ("OUT_OF_MEMORY", _KILLED),
    "PySpark/oom-driver": (
        "OUT_OF_MEMORY",
        "java.lang.OutOfMemoryError: Java heap space (pyspark-oom-driver.py, line",
    ),
    "PySpark/oom-heap": (
        "OUT_OF_MEMORY",
        "java.lang.OutOfMemoryError: Java heap space (pyspark-oom-heap.py, line 5)",
    ),
    "PySpark/killed": ("KILLED_ELSEWHERE", _KILLED),
    "PySpark/worker-lost": ("WORKER_LOST", "Container released on a *lost* node"),
    "PySpark/disk-full": (
        "NO_SPACE",
        "org.apache.hadoop.hdfs.protocol.DSQuotaExceededException: The DiskSpace",
    ),
    "PySpark/disk-full-local": ("NO_SPACE", "OSError: [Errno 28] No space left on device"),
    "SparkSQL/input-missing": (
        "INPUT_MISSING",
        "statement 2, line 2: AnalysisException: [PATH_NOT_FOUND] Path does not",
    ),
    "SparkSQL/output-exists": (
        "OUTPUT_EXISTS",
        "statement 1, line 1: AnalysisException: CREATE-TABLE-AS-SELECT cannot",
    ),
    "SparkSQL/scheme-wrong": ("SCHEME_UNKNOWN", "statement 1, line 1: AnalysisException:"),
    "SparkSQL/syntax": (
        "SYNTAX_ERROR",
        "statement 2, line 3: ParseException: [PARSE_SYNTAX_ERROR] Syntax error at",
    ),
    "SparkSQL/variable-missing": (
        "VARIABLE_UNKNOWN",
        "statement 2, line 2: the variable ${größe.1} has no value: give the job a parameter",
    ),
    "SparkSQL/table-missing": (
        "SYNTAX_ERROR",
        "statement 2, line 2: ExtendedAnalysisException: [TABLE_OR_VIEW_NOT_FOUND]",
    ),
    "SparkSQL/class-missing": (
        "CLASS_MISSING",
        "statement 2, line 2: AnalysisException: [CANNOT_LOAD_FUNCTION_CLASS]",
    ),
    "SparkSQL/exception": (
        "EXCEPTION",
        "statement 2, line 2: SparkRuntimeException: [USER_RAISED_EXCEPTION] no",
    ),
    "SparkJar/input-missing": ("INPUT_MISSING", f"{_ABORTED}java.io.IOException: {_NO_INPUT}"),
    "SparkJar/output-exists": (
        "OUTPUT_EXISTS",
        "org.apache.hadoop.mapred.FileAlreadyExistsException: Output directory",
    ),
    "SparkJar/scheme-wrong": ("SCHEME_UNKNOWN", f'{_ABORTED}{_NO_SCHEME} "htfs"'),
    "SparkJar/permission": ("PERMISSION_DENIED", _REFUSED),
    "SparkJar/class-missing": (
        "CLASS_MISSING",
        "java.lang.ClassNotFoundException: org.example.Report;",
    ),
    "SparkJar/class-missing-used": (
        "CLASS_MISSING",
        "java.lang.NoClassDefFoundError: org/svcd/causes/Missing: ",
    ),
    "SparkJar/exception": ("EXCEPTION", _NO_PRICE),
    "SparkJar/exception-in-task": ("EXCEPTION", f"{_ABORTED}{_NO_PRICE}"),
    "SparkJar/oom-container": ("OUT_OF_MEMORY", _CONTAINER),
    "SparkJar/oom-driver": ("OUT_OF_MEMORY", f"{_HEAP} (Fault.java:"),
    "SparkJar/oom-heap": (
        "OUT_OF_MEMORY",
        f"{_ABORTED}org.apache.spark.SparkException: Job aborted due to stage failure",
    ),
    "SparkJar/killed": ("KILLED_ELSEWHERE", _KILLED),
    "SparkJar/disk-full": ("NO_SPACE", f"{_ABORTED}{_QUOTA}"),
    "SparkJar/disk-full-local": ("NO_SPACE", f"{_NO_SPACE} (Fault.java:"),
    **{f"{each}/names": ("", "") for each in _TYPES},
}


def _of_small(text: str) -> str:
    """`text` with the names of the small job's files."""
    return text.replace("(streaming-", "(smallstreaming-").replace("<file pig-", "<file smallpig-")


EXPECTED: Final[Mapping[str, tuple[str, str]]] = {
    **_LARGE,
    **{f"Small{name}": (code, _of_small(text)) for name, (code, text) in _LARGE.items()},
}
"""Cell -> code and beginning of the text; "" stands for any text."""
