package org.svcd.spark;

import java.io.BufferedReader;
import java.io.IOException;
import java.nio.charset.StandardCharsets;
import java.nio.file.Files;
import java.nio.file.Path;
import java.util.ArrayList;
import java.util.List;
import java.util.Map;
import java.util.concurrent.TimeUnit;
import org.apache.hadoop.conf.Configuration;

/**
 * spark-submit as a child process, for some seconds: Spark's classes never meet those of Hadoop and Oozie, and the
 * launcher has its memory back.
 */
final class SparkProcess {
  private static final long MOST_S = 600;

  private SparkProcess() {}

  /** Raises SparkFailure with the line of its output that tells why it failed. */
  static void submit(SparkHome home, Configuration action, Path options, String[] arguments) throws Exception {
    ProcessBuilder builder = new ProcessBuilder(command(home, action, options, arguments)).redirectErrorStream(true);
    Map<String, String> env = builder.environment();
    env.put("SPARK_HOME", home.folder().toString());
    env.put("PYSPARK_ARCHIVES_PATH", home.pythonArchives());
    env.put("HADOOP_USER_NAME", action.get("user.name", env.getOrDefault("HADOOP_USER_NAME", "")));
    env.put("SPARK_LOCAL_IP", env.getOrDefault("NM_HOST", "127.0.0.1"));
    env.remove("CLASSPATH");
    Process process = builder.start();
    Thread limit = new Thread(() -> endAfter(process));
    limit.setDaemon(true);
    limit.start();
    String why = shown(process);
    int code = process.waitFor();
    limit.interrupt();
    if (code != 0) {
      throw new SparkFailure("spark-submit ended with exit code " + code + ": " + why);
    }
  }

  private static List<String> command(SparkHome home, Configuration action, Path options, String[] arguments)
      throws IOException {
    String conf = System.getenv("HADOOP_CONF_DIR");
    List<String> command = new ArrayList<>();
    command.add(System.getenv("JAVA_HOME") + "/bin/java");
    // its steps would hide the program's own output; the log settings of the machine have this level
    command.addAll(List.of("-Xmx192m", "-XX:ActiveProcessorCount=1", "-Dsvcd.log.level=warn"));
    Path hosts = Path.of(conf, "hosts");
    if (Files.exists(hosts)) {
      command.add("-Djdk.net.hosts.file=" + hosts);
    }
    command.addAll(List.of("-cp", home.classPath() + ":" + conf, "org.apache.spark.deploy.SparkSubmit"));
    command.addAll(List.of("--properties-file", options.toString()));
    String mainClass = action.get("svcd.spark.class", "");
    if (!mainClass.isEmpty()) {
      command.addAll(List.of("--class", mainClass));
    }
    command.add(action.get("svcd.spark.main"));
    command.addAll(List.of(arguments));
    return command;
  }

  private static void endAfter(Process process) {
    try {
      if (!process.waitFor(MOST_S, TimeUnit.SECONDS)) {
        System.out.println("svcd: spark-submit has not ended within " + MOST_S + " s, and is killed");
        process.destroyForcibly();
      }
    } catch (InterruptedException ended) {
      return;
    }
  }

  /** Copies the process's output to this one's, and returns the last line that names an error. */
  private static String shown(Process process) throws IOException {
    String why = "it gave no reason";
    try (BufferedReader in = process.inputReader(StandardCharsets.UTF_8)) {
      for (String line = in.readLine(); line != null; line = in.readLine()) {
        System.out.println(line);
        if (line.startsWith("Exception in thread") || line.startsWith("Error:") || line.startsWith("Caused by: ")) {
          why = line.strip();
        }
      }
    }
    return why;
  }
}
