-- Counts the words of a text: svcd run count.sql --on CLUSTER --input TEXT --output hdfs:///out
CREATE TEMPORARY VIEW lines USING text OPTIONS (path '${INPUT}');
CREATE TEMPORARY VIEW counts AS
  SELECT word, count(*) AS number FROM (SELECT explode(split(value, '\\s+')) AS word FROM lines)
  WHERE word <> '' GROUP BY word;
INSERT OVERWRITE DIRECTORY '${OUTPUT}' USING csv OPTIONS (sep '\t') SELECT word, number FROM counts;
SELECT count(*) AS different_words FROM counts;
