package org.svcd.objstore;

import static org.apache.hadoop.mapreduce.lib.output.FileOutputCommitter.FILEOUTPUTCOMMITTER_ALGORITHM_VERSION;
import static org.apache.hadoop.mapreduce.lib.output.FileOutputCommitter.FILEOUTPUTCOMMITTER_ALGORITHM_VERSION_DEFAULT;

import java.io.IOException;
import org.apache.hadoop.fs.Path;
import org.apache.hadoop.mapred.FileOutputCommitter;
import org.apache.hadoop.mapred.FileOutputFormat;
import org.apache.hadoop.mapred.TaskAttemptContext;

/**
 * {@link ObjStoreCommitter} for programs of the old API (streaming, RDDs of Spark): {@code mapred.output.committer.class}.
 * Outputs on other file systems are committed as ever, and so are all outputs with algorithm 1.
 */
public final class ObjStoreOldCommitter extends FileOutputCommitter {
  private static final int DEFAULT = FILEOUTPUTCOMMITTER_ALGORITHM_VERSION_DEFAULT;

  @Override
  public void commitTask(TaskAttemptContext context) throws IOException {
    Path output = FileOutputFormat.getOutputPath(context.getJobConf());
    if (output != null
        && context.getConfiguration().getInt(FILEOUTPUTCOMMITTER_ALGORITHM_VERSION, DEFAULT) == 2
        && output.getFileSystem(context.getConfiguration()) instanceof ObjStoreFileSystem store) {
      context.progress();
      store.moveBelow(getTaskAttemptPath(context), output, context);
    } else {
      super.commitTask(context);
    }
  }
}
