package org.svcd.spark;

import java.io.File;
import java.io.FileNotFoundException;
import java.io.IOException;
import java.io.Writer;
import java.nio.charset.StandardCharsets;
import java.nio.file.Files;
import java.nio.file.Path;
import java.nio.file.attribute.PosixFilePermissions;
import java.util.EnumSet;
import java.util.Properties;
import java.util.Set;
import org.apache.hadoop.conf.Configuration;
import org.apache.hadoop.fs.FileSystem;
import org.apache.hadoop.yarn.api.records.ApplicationId;
import org.apache.hadoop.yarn.api.records.ApplicationReport;
import org.apache.hadoop.yarn.api.records.FinalApplicationStatus;
import org.apache.hadoop.yarn.api.records.YarnApplicationState;
import org.apache.hadoop.yarn.client.api.YarnClient;
import org.apache.hadoop.yarn.conf.YarnConfiguration;
import org.apache.hadoop.yarn.exceptions.YarnException;

/**
 * Main class of a Spark job: submits the program to YARN in cluster mode, and waits for its end.
 *
 * <p>It runs in Oozie's launcher, as a java action. The arguments are those of the main class. The action's configuration
 * names the program ({@code svcd.spark.main}, {@code svcd.spark.class}, {@code svcd.spark.folder}) and holds Spark's
 * options ({@code spark.*}).
 *
 * <p>One application at most: it carries Oozie's tag, by which a kill of the workflow finds it, and a tag of this
 * launcher, by which another attempt of the launcher finds it and waits for it. When this program fails or is killed
 * after the submit, it kills the application.
 */
public final class SubmitSpark {
  /** The name under which Oozie hands the tag of an action's children to the action. */
  private static final String TAG = "oozie.child.mapreduce.job.tags";
  private static final long QUICK_MS = 100;
  private static final long SLOW_MS = 1_000;
  private static final long QUICK_FOR_MS = 120_000;
  /** The resource manager may be silent for this long, for example while it restarts. */
  private static final long SILENT_MS = 300_000;

  private final YarnClient yarn;
  private final Configuration conf;
  private volatile ApplicationId running;
  /** The launcher's tag while spark-submit runs, which may have submitted already. */
  private volatile String submitting;

  private SubmitSpark(YarnClient yarn, Configuration conf) {
    this.yarn = yarn;
    this.conf = conf;
  }

  public static void main(String[] arguments) throws Exception {
    SparkHome home = SparkHome.ofThisTree();
    Configuration action = actionConf();
    Configuration conf = new YarnConfiguration();
    conf.addResource(action);
    try (YarnClient yarn = YarnClient.createYarnClient()) {
      yarn.init(conf);
      yarn.start();
      SubmitSpark submit = new SubmitSpark(yarn, conf);
      Runtime.getRuntime().addShutdownHook(new Thread(submit::killAll));
      submit.run(home, action, arguments);
    }
  }

  /** The action's configuration alone: what is not in it comes from the cluster's own files. */
  private static Configuration actionConf() {
    Configuration action = new Configuration(false);
    action.addResource(new org.apache.hadoop.fs.Path(new File(System.getProperty("oozie.action.conf.xml")).toURI()));
    return action;
  }

  private void run(SparkHome home, Configuration action, String[] arguments) throws Exception {
    String own = launcherTag();
    ApplicationReport found = find(own);
    if (found == null) {
      found = submitted(home, action, arguments, own);
    } else {
      System.out.println("svcd: an earlier attempt of this launcher has submitted it");
    }
    running = found.getApplicationId();
    System.out.println("svcd: Spark application " + running);
    try {
      tellOozie(running);
      found = ended(found);
      running = null;
    } finally {
      kill();
      removeStaging(found.getApplicationId());
    }
    if (found.getFinalApplicationStatus() != FinalApplicationStatus.SUCCEEDED) {
      String why = String.valueOf(found.getDiagnostics()).strip();
      throw new SparkFailure(found.getApplicationId() + " " + found.getFinalApplicationStatus() + ": " + why);
    }
  }

  private ApplicationReport submitted(SparkHome home, Configuration action, String[] arguments, String own)
      throws Exception {
    String oozies = action.get(TAG, action.get("mapreduce.job.tags", ""));
    Properties options = SparkOptions.of(action, conf, home, oozies.isEmpty() ? own : oozies + "," + own);
    Path file = written(options);
    submitting = own;
    try {
      SparkProcess.submit(home, action, file, arguments);
    } catch (Exception error) {
      lookFor(own);
      ApplicationId left = running;
      kill();
      if (left != null) {
        removeStaging(left);
      }
      throw error;
    } finally {
      Files.deleteIfExists(file);
    }
    ApplicationReport found = find(own);
    if (found == null) {
      throw new SparkFailure("spark-submit ended well and left no application with the tag " + own);
    }
    running = found.getApplicationId();
    submitting = null;
    return found;
  }

  /** Properties may hold passwords: only this user may read them, and they are on no command line. */
  private static Path written(Properties options) throws IOException {
    Path file = Path.of("svcd-spark.properties").toAbsolutePath();
    Files.deleteIfExists(file);
    Files.createFile(file, PosixFilePermissions.asFileAttribute(PosixFilePermissions.fromString("rw-------")));
    try (Writer out = Files.newBufferedWriter(file, StandardCharsets.UTF_8)) {
      options.store(out, null);
    }
    return file;
  }

  /** Another attempt of this launcher has the same tag; a rerun of the workflow has another launcher. */
  private static String launcherTag() {
    String container = System.getenv("CONTAINER_ID");
    return "svcd-launcher-" + container.replaceFirst("container_(e[0-9]+_)?([0-9]+_[0-9]+)_.*", "$2");
  }

  private ApplicationReport find(String tag) throws IOException, YarnException {
    ApplicationReport found = null;
    EnumSet<YarnApplicationState> all = EnumSet.allOf(YarnApplicationState.class);
    for (ApplicationReport each : yarn.getApplications(Set.of("SPARK"), all, Set.of(tag))) {
      if (found == null || each.getStartTime() > found.getStartTime()) {
        found = each;
      }
    }
    return found;
  }

  private static void tellOozie(ApplicationId id) throws IOException {
    String file = System.getProperty("oozie.action.externalChildIDs");
    if (file != null) {
      Files.writeString(Path.of(file), id.toString());
    }
  }

  private ApplicationReport ended(ApplicationReport found) throws Exception {
    long begun = System.nanoTime();
    long heard = begun;
    ApplicationId id = found.getApplicationId();
    while (found.getFinalApplicationStatus() == FinalApplicationStatus.UNDEFINED) {
      Thread.sleep(millisSince(begun) < QUICK_FOR_MS ? QUICK_MS : SLOW_MS);
      try {
        found = yarn.getApplicationReport(id);
        heard = System.nanoTime();
      } catch (IOException error) {
        if (millisSince(heard) > SILENT_MS) {
          throw error;
        }
      }
    }
    return found;
  }

  private static long millisSince(long nanos) {
    return (System.nanoTime() - nanos) / 1_000_000;
  }

  /** At the end of this process, in every way that lets it act. */
  private void killAll() {
    String tag = submitting;
    if (tag != null && running == null) {
      lookFor(tag);
    }
    kill();
  }

  /** Takes an application with this tag for the running one. It raises nothing, so no earlier error is lost. */
  private void lookFor(String tag) {
    try {
      ApplicationReport found = find(tag);
      if (found != null && found.getFinalApplicationStatus() == FinalApplicationStatus.UNDEFINED) {
        running = found.getApplicationId();
      }
    } catch (IOException | YarnException error) {
      System.out.println("svcd: whether an application with the tag " + tag + " runs is not known: " + error);
    }
  }

  /** Kills the application that this program has submitted and that has not ended. */
  private void kill() {
    ApplicationId id = running;
    running = null;
    if (id == null) {
      return;
    }
    try {
      yarn.killApplication(id);
      System.out.println("svcd: killed the Spark application " + id);
    } catch (IOException | YarnException error) {
      System.out.println("svcd: the Spark application " + id + " could not be killed: " + error);
    }
  }

  /** Spark leaves the folder when an application is killed; it holds the application's options. */
  private void removeStaging(ApplicationId id) {
    try {
      FileSystem files = FileSystem.get(conf);
      files.delete(new org.apache.hadoop.fs.Path(files.getHomeDirectory(), ".sparkStaging/" + id), true);
    } catch (FileNotFoundException gone) {
      return;
    } catch (IOException error) {
      System.out.println("svcd: .sparkStaging/" + id + " could not be removed: " + error);
    }
  }
}
