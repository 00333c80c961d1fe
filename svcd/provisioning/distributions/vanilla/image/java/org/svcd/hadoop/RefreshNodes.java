package org.svcd.hadoop;

import org.apache.hadoop.hdfs.HdfsConfiguration;
import org.apache.hadoop.hdfs.tools.DFSAdmin;
import org.apache.hadoop.util.ToolRunner;
import org.apache.hadoop.yarn.client.cli.RMAdminCLI;
import org.apache.hadoop.yarn.conf.YarnConfiguration;

/**
 * Makes NameNode and ResourceManager read their exclude files again, in one JVM instead of two.
 *
 * <p>Usage: {@code hadoop org.svcd.hadoop.RefreshNodes [hdfs|yarn]...}; without an argument both. The exit code is 0
 * when each named one accepted.
 */
public final class RefreshNodes {
  private RefreshNodes() {}

  public static void main(String[] arguments) throws Exception {
    String[] parts = arguments.length == 0 ? new String[] {"hdfs", "yarn"} : arguments;
    int worst = 0;
    for (String part : parts) {
      int code = refresh(part);
      System.out.println(part + " " + (code == 0 ? "refreshed" : "refused: " + code));
      worst = Math.max(worst, code == 0 ? 0 : 1);
    }
    System.exit(worst);
  }

  private static int refresh(String part) throws Exception {
    String[] command = {"-refreshNodes"};
    switch (part) {
      case "hdfs":
        return ToolRunner.run(new DFSAdmin(new HdfsConfiguration()), command);
      case "yarn":
        return ToolRunner.run(new RMAdminCLI(new YarnConfiguration()), command);
      default:
        System.err.println("RefreshNodes: '" + part + "' is neither hdfs nor yarn");
        return 2;
    }
  }
}
