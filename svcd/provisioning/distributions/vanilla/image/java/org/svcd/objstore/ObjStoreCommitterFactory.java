package org.svcd.objstore;

import java.io.IOException;
import org.apache.hadoop.fs.Path;
import org.apache.hadoop.mapreduce.TaskAttemptContext;
import org.apache.hadoop.mapreduce.lib.output.PathOutputCommitter;
import org.apache.hadoop.mapreduce.lib.output.PathOutputCommitterFactory;

/** Makes the committers of outputs on {@code objstore://}: {@code mapreduce.outputcommitter.factory.scheme.objstore}. */
public final class ObjStoreCommitterFactory extends PathOutputCommitterFactory {
  @Override
  public PathOutputCommitter createOutputCommitter(Path output, TaskAttemptContext context) throws IOException {
    return output == null ? super.createOutputCommitter(null, context) : new ObjStoreCommitter(output, context);
  }
}
