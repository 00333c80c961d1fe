"""Counts the words of a text: svcd run count.py --on CLUSTER --input TEXT --output hdfs:///out"""

import sys

from pyspark import SparkContext

words = SparkContext().textFile(sys.argv[1]).flatMap(str.split)
counts = words.map(lambda word: (word, 1)).reduceByKey(lambda left, right: left + right)
counts.map(lambda pair: f"{pair[0]}\t{pair[1]}").saveAsTextFile(sys.argv[2])
print("different words:", counts.count())
