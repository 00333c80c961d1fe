"""The files of the demo: the bundle of its templates, its Pig script, options of its jobs."""

from __future__ import annotations

CONTAINER = "demo"
PIG_SCRIPT = r"""
lines = LOAD '$INPUT' USING TextLoader() AS (line:chararray);
words = FOREACH lines GENERATE FLATTEN(TOKENIZE(
          REPLACE(LOWER(line), '[^\\p{L}\\p{Nd}\']', ' '), ' ')) AS word;
same = GROUP words BY word;
counts = FOREACH same GENERATE group, COUNT(words);
STORE counts INTO '$OUTPUT';
"""
TEMPLATES = """\
node_group_templates:
- name: demo-master
  plugin_name: vanilla
  engine_version: 3.5.0
  flavor_id: {flavor}
  node_processes: [namenode, resourcemanager, historyserver, oozie]
- name: demo-worker
  plugin_name: vanilla
  engine_version: 3.5.0
  flavor_id: {flavor}
  node_processes: [datanode, nodemanager]
cluster_templates:
- name: demo
  plugin_name: vanilla
  engine_version: 3.5.0
  cluster_configs: {{HDFS: {{dfs.replication: 1}}}}
  node_groups:
  - {{name: master, count: 1, node_group_template: demo-master}}
  - {{name: worker, count: 2, node_group_template: demo-worker}}
"""
_NEW_API = {"mapred.mapper.new-api": "true", "mapred.reducer.new-api": "true"}
WORD_COUNT = {
    **_NEW_API,
    "mapred.output.key.class": "org.apache.hadoop.io.Text",
    "mapred.output.value.class": "org.apache.hadoop.io.IntWritable",
    "mapreduce.map.class": "org.svcd.examples.WordCount$TokenMapper",
    "mapreduce.reduce.class": "org.svcd.examples.WordCount$SumReducer",
}
SLEEP = {
    **_NEW_API,
    "mapred.output.key.class": "org.apache.hadoop.io.LongWritable",
    "mapred.output.value.class": "org.apache.hadoop.io.Text",
    "mapreduce.map.class": "org.svcd.examples.Sleep",
    "svcd.examples.sleep.ms": "1000",
}
