package org.svcd.jobs;

import java.io.ByteArrayInputStream;
import java.io.IOException;
import java.lang.reflect.InvocationTargetException;
import java.nio.charset.StandardCharsets;
import java.nio.file.Files;
import java.nio.file.Path;
import java.nio.file.Paths;

/**
 * Starts the main class of a Java job with the values that were given, in the launcher of the engine.
 *
 * <p>The file svcd-values lies in the working folder: texts in UTF-8 with U+0000 after each. The first is the number of
 * the job's files, then come the staged name and the own name of each, then the arguments.
 *
 * <p>svcd keeps this class compiled beside its source, because a cluster need not have a compiler:
 * {@code javac --release 8 -d . StartMain.java}.
 */
public final class StartMain {
  private static final Path HERE = Paths.get("").toAbsolutePath();

  private StartMain() {}

  /** Runs the class that the only argument names. */
  public static void main(String[] mainClass) throws Throwable {
    String[] arguments = given();
    Class<?> program;
    try {
      program = Class.forName(mainClass[0]);
    } catch (ClassNotFoundException missing) {
      throw new ClassNotFoundException("Class " + mainClass[0] + " not found");
    }
    try {
      program.getMethod("main", String[].class).invoke(null, (Object) arguments);
    } catch (InvocationTargetException thrown) {
      throw thrown.getCause();
    }
  }

  /** Gives the files their own names, ends the standard input, and returns the arguments. */
  static String[] given() throws IOException {
    String text = new String(Files.readAllBytes(HERE.resolve("svcd-values")), StandardCharsets.UTF_8);
    String[] values = text.split("\0", -1);
    int first = 1 + 2 * Integer.parseInt(values[0]);
    for (int index = 1; index < first; index += 2) {
      put(values[index], values[index + 1]);
    }
    System.setIn(new ByteArrayInputStream(new byte[0]));
    String[] arguments = new String[values.length - 1 - first];
    System.arraycopy(values, first, arguments, 0, arguments.length);
    return arguments;
  }

  /** Gives a file its own name: as a second link to YARN's copy, or on another file system as a copy. */
  private static void put(String staged, String name) throws IOException {
    Path file = HERE.resolve(staged).toRealPath();
    Path link = HERE.resolve(name);
    try {
      Files.createLink(link, file);
    } catch (java.nio.file.FileAlreadyExistsException taken) {
      throw taken;
    } catch (IOException | UnsupportedOperationException apart) {
      Files.copy(file, link);
    }
  }
}
