"""A word count with PySpark: wordcount.py INPUT OUTPUT, two URLs. OUTPUT must not exist.

A word is a run of letters, digits and apostrophes, in lower case. Texts are UTF-8. OUTPUT holds one
file with the lines WORD TAB COUNT, sorted by word.
"""

import re
import sys

from pyspark import SparkConf, SparkContext

if len(sys.argv) != 3:
    sys.exit(f"two arguments are needed, INPUT and OUTPUT, not {len(sys.argv) - 1}")

with SparkContext(conf=SparkConf().setAppName("wordcount.py")) as context:
    (
        context.textFile(sys.argv[1])
        .flatMap(lambda line: re.findall(r"(?:[^\W_]|')+", line.lower()))
        .map(lambda word: (word, 1))
        .reduceByKey(lambda left, right: left + right)
        .sortByKey(numPartitions=1)
        .map(lambda pair: f"{pair[0]}\t{pair[1]}")
        .saveAsTextFile(sys.argv[2])
    )
