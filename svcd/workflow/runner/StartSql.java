package org.svcd.jobs;

import java.lang.reflect.InvocationTargetException;
import java.nio.charset.StandardCharsets;
import java.nio.file.Files;
import java.nio.file.Paths;

/**
 * Starts a script in SQL with the variables that were given, in the driver of a Spark job.
 *
 * <p>The file svcd-values lies in the working folder: texts in UTF-8 with U+0000 after each, a name and a value in turn.
 * The class of the image that runs a script takes its variables from options of Spark, and a session takes its options
 * from the properties of the system.
 *
 * <p>svcd keeps this class compiled beside its source, as StartMain.
 */
public final class StartSql {
  private StartSql() {}

  /** Runs the script that the only argument names. */
  public static void main(String[] script) throws Throwable {
    String text = new String(Files.readAllBytes(Paths.get("svcd-values")), StandardCharsets.UTF_8);
    String[] values = text.split("\0", -1);
    for (int index = 0; index + 1 < values.length; index += 2) {
      System.setProperty("spark.svcd.variable." + values[index], values[index + 1]);
    }
    try {
      Class.forName("org.svcd.spark.RunSql").getMethod("main", String[].class).invoke(null, (Object) script);
    } catch (InvocationTargetException thrown) {
      throw thrown.getCause();
    }
  }
}
