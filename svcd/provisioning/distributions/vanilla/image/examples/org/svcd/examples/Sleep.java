package org.svcd.examples;

import java.io.IOException;
import org.apache.hadoop.io.LongWritable;
import org.apache.hadoop.io.Text;
import org.apache.hadoop.mapreduce.Mapper;

/**
 * A mapper that takes its time: it passes each line on after {@code svcd.examples.sleep.ms} (1000) milliseconds.
 * The output is (offset, line).
 */
public class Sleep extends Mapper<LongWritable, Text, LongWritable, Text> {
  private long pause;

  @Override
  protected void setup(Context context) {
    pause = context.getConfiguration().getLong("svcd.examples.sleep.ms", 1000);
  }

  @Override
  protected void map(LongWritable offset, Text line, Context context) throws IOException, InterruptedException {
    Thread.sleep(pause);
    context.progress();
    context.write(offset, line);
  }
}
