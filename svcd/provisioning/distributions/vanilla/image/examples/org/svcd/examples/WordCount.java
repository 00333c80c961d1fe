package org.svcd.examples;

import java.io.IOException;
import java.util.Locale;
import org.apache.hadoop.io.IntWritable;
import org.apache.hadoop.io.LongWritable;
import org.apache.hadoop.io.Text;
import org.apache.hadoop.mapreduce.Mapper;
import org.apache.hadoop.mapreduce.Reducer;

/**
 * Mapper and reducer of a word count, to be named in the configuration of a job (there is no driver).
 *
 * <p>A word is a run of letters, digits and apostrophes, in lower case.
 */
public final class WordCount {
  private WordCount() {}

  /** Writes (word, 1) for each word of a line. */
  public static class TokenMapper extends Mapper<LongWritable, Text, Text, IntWritable> {
    private static final IntWritable ONE = new IntWritable(1);
    private final Text word = new Text();

    @Override
    protected void map(LongWritable offset, Text line, Context context) throws IOException, InterruptedException {
      for (String token : line.toString().toLowerCase(Locale.ROOT).split("[^\\p{L}\\p{Nd}']+")) {
        if (!token.isEmpty()) {
          word.set(token);
          context.write(word, ONE);
        }
      }
    }
  }

  /** Writes (word, sum); fit to be the combiner too. */
  public static class SumReducer extends Reducer<Text, IntWritable, Text, IntWritable> {
    private final IntWritable sum = new IntWritable();

    @Override
    protected void reduce(Text word, Iterable<IntWritable> counts, Context context)
        throws IOException, InterruptedException {
      int total = 0;
      for (IntWritable count : counts) {
        total += count.get();
      }
      sum.set(total);
      context.write(word, sum);
    }
  }
}
