"""An open session: session.py URL, for a Python with pyspark-client. It ends after a line."""

from __future__ import annotations

import sys

from pyspark.sql import SparkSession

spark = SparkSession.builder.remote(sys.argv[1]).create()
print(spark.range(3).count(), flush=True)
sys.stdin.readline()
spark.stop()
