-- Counts the words of a text: svcd run count.pig --on CLUSTER --input TEXT --output hdfs:///out
words = FOREACH (LOAD '$INPUT' AS (line:chararray)) GENERATE FLATTEN(TOKENIZE(line)) AS word;
STORE (FOREACH (GROUP words BY word) GENERATE group, COUNT(words)) INTO '$OUTPUT';
