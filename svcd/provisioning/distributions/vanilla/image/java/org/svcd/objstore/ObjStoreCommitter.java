package org.svcd.objstore;

import java.io.IOException;
import org.apache.hadoop.fs.FileStatus;
import org.apache.hadoop.fs.FileSystem;
import org.apache.hadoop.fs.Path;
import org.apache.hadoop.mapreduce.JobContext;
import org.apache.hadoop.mapreduce.TaskAttemptContext;
import org.apache.hadoop.mapreduce.lib.output.FileOutputCommitter;
import org.slf4j.Logger;
import org.slf4j.LoggerFactory;

/**
 * Hadoop's FileOutputCommitter, except that it moves many files at once where that one moves them one after the other.
 *
 * <p>It keeps both algorithms and their promises: with algorithm 1 a part shows in the output when all tasks are done,
 * with algorithm 2 when its task is done.
 */
public final class ObjStoreCommitter extends FileOutputCommitter {
  private static final Logger LOG = LoggerFactory.getLogger(ObjStoreCommitter.class);

  /** As Hadoop calls it. output: of the job, on any file system. */
  public ObjStoreCommitter(Path output, TaskAttemptContext context) throws IOException {
    super(output, context);
  }

  @Override
  public void commitTask(TaskAttemptContext context, Path given) throws IOException {
    Path attempt = given == null ? getTaskAttemptPath(context) : given;
    if (!isCommitJobRepeatable(context) || !(fileSystem(context) instanceof ObjStoreFileSystem store)) {
      super.commitTask(context, given); // algorithm 1 renames the folder of the attempt
      return;
    }
    context.progress();
    store.moveBelow(attempt, getOutputPath(), context);
    LOG.info("Saved output of task '{}' to {}", context.getTaskAttemptID(), getOutputPath());
  }

  @Override
  protected void commitJobInternal(JobContext context) throws IOException {
    if (!isCommitJobRepeatable(context) && fileSystem(context) instanceof ObjStoreFileSystem store) {
      for (FileStatus task : store.listStatus(getJobAttemptPath(context))) {
        if (!task.getPath().getName().equals(PENDING_DIR_NAME)) {
          store.moveBelow(task.getPath(), getOutputPath(), () -> {});
        }
      }
    }
    super.commitJobInternal(context); // finds no file any more, cleans up, and writes _SUCCESS
  }

  private FileSystem fileSystem(JobContext context) throws IOException {
    return getOutputPath().getFileSystem(context.getConfiguration());
  }
}
