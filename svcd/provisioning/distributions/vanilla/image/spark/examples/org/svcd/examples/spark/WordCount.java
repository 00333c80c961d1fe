package org.svcd.examples.spark;

import java.util.Arrays;
import java.util.Locale;
import org.apache.spark.SparkConf;
import org.apache.spark.api.java.JavaSparkContext;
import scala.Tuple2;

/**
 * A word count with Spark: {@code WordCount INPUT OUTPUT}, two URLs. OUTPUT must not exist.
 *
 * <p>A word is a run of letters, digits and apostrophes, in lower case. Texts are UTF-8. OUTPUT holds one file with the
 * lines WORD TAB COUNT, sorted by word.
 */
public final class WordCount {
  private WordCount() {}

  public static void main(String[] arguments) {
    if (arguments.length != 2) {
      throw new IllegalArgumentException("two arguments are needed, INPUT and OUTPUT, not " + arguments.length);
    }
    try (JavaSparkContext context = new JavaSparkContext(new SparkConf().setAppName("WordCount"))) {
      context
          .textFile(arguments[0])
          .flatMap(line -> Arrays.asList(line.toLowerCase(Locale.ROOT).split("[^\\p{L}\\p{N}']+")).iterator())
          .filter(word -> !word.isEmpty())
          .mapToPair(word -> new Tuple2<>(word, 1L))
          .reduceByKey(Long::sum)
          .sortByKey(true, 1)
          .map(pair -> pair._1 + "\t" + pair._2)
          .saveAsTextFile(arguments[1]);
    }
  }
}
