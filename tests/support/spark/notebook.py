"""Cells of a notebook: notebook.py URL, for a Python with pyspark-client. Prints JSON."""

from __future__ import annotations

import json
import sys
import time
import warnings

warnings.simplefilter("ignore")

from pyspark.errors import PySparkException  # noqa: E402
from pyspark.sql import SparkSession  # noqa: E402
from pyspark.sql import functions as F  # noqa: E402

url = sys.argv[1]
base = url.partition(";")[0]
found: dict[str, object] = {}

began = time.monotonic()
spark = SparkSession.builder.remote(url).create()
words = spark.createDataFrame([("one",), ("two",), ("one",)], "word string")
counts = words.groupBy("word").count().orderBy("word").collect()
found["counts"] = [[row["word"], row["count"]] for row in counts]
found["first_s"] = round(time.monotonic() - began, 1)

began = time.monotonic()
double = F.udf(lambda number: 2 * number, "long")
found["doubled"] = [row[0] for row in spark.range(4).select(double("id")).collect()]
found["function_s"] = round(time.monotonic() - began, 1)


def needs_a_module(number: int) -> int:
    import not_on_the_workers

    return int(not_on_the_workers.double(number))


try:
    spark.range(1).select(F.udf(needs_a_module, "long")("id")).collect()
except PySparkException as error:
    found["missing"] = str(error)
spark.stop()

# Last, because pyspark takes a refused session for the current one.
for name, address in (("without", base), ("wrong", f"{base};token=wrong")):
    try:
        SparkSession.builder.remote(address).create().range(1).collect()
        found[name] = "let in"
    except PySparkException as error:
        found[name] = str(error)
print(json.dumps(found))
