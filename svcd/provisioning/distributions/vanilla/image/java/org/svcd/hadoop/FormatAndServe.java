package org.svcd.hadoop;

import java.nio.file.Files;
import java.nio.file.Path;
import java.nio.file.Paths;
import org.apache.hadoop.hdfs.HdfsConfiguration;
import org.apache.hadoop.hdfs.server.common.HdfsServerConstants.StartupOption;
import org.apache.hadoop.hdfs.server.namenode.NameNode;
import org.apache.hadoop.metrics2.lib.DefaultMetricsSystem;

/**
 * The first start of a NameNode: formats it, then serves, in one JVM instead of two.
 *
 * <p>Usage: {@code hdfs org.svcd.hadoop.FormatAndServe CLUSTER_ID MARKER [NAMENODE ARGUMENT...]}. MARKER is a file that
 * is made once the NameNode is formatted; where it exists nothing is formatted. Whoever calls sees to it that no
 * NameNode with data lacks its marker: what lies in the name folders is overwritten.
 */
public final class FormatAndServe {
  private FormatAndServe() {}

  public static void main(String[] arguments) throws Exception {
    if (arguments.length < 2) {
      System.err.println("usage: FormatAndServe CLUSTER_ID MARKER [NAMENODE ARGUMENT...]");
      System.exit(2);
    }
    Path marker = Paths.get(arguments[1]);
    if (!Files.exists(marker)) {
      StartupOption.FORMAT.setClusterId(arguments[0]);
      NameNode.format(new HdfsConfiguration());
      DefaultMetricsSystem.shutdown(); // forgets the names that formatting has taken
      Files.createFile(marker);
    }
    String[] left = new String[arguments.length - 2];
    System.arraycopy(arguments, 2, left, 0, left.length);
    NameNode.main(left);
  }
}
