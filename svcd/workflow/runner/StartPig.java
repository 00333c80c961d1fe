package org.svcd.jobs;

import java.io.IOException;
import java.io.OutputStream;
import java.lang.reflect.Field;
import java.net.URL;
import java.nio.charset.StandardCharsets;
import java.nio.file.Files;
import java.nio.file.Path;
import java.nio.file.Paths;
import java.util.ArrayList;
import java.util.Arrays;
import java.util.Collections;
import java.util.Enumeration;
import java.util.HashMap;
import java.util.Iterator;
import java.util.List;
import java.util.Map;
import java.util.Properties;
import java.util.regex.Matcher;
import java.util.regex.Pattern;
import org.apache.hadoop.conf.Configuration;
import org.apache.hadoop.mapred.JobConf;
import org.apache.hadoop.mapreduce.MRJobConfig;
import org.apache.oozie.action.hadoop.PigMain;
import org.apache.pig.ExecType;
import org.apache.pig.ExecTypeProvider;
import org.apache.pig.PigException;
import org.apache.pig.backend.executionengine.ExecutionEngine;
import org.apache.pig.impl.PigContext;
import org.apache.pig.impl.logicalLayer.FrontendException;
import org.apache.pig.impl.util.ObjectSerializer;
import org.apache.pig.tools.parameters.ParameterSubstitutionException;
import org.apache.pig.tools.parameters.PreprocessorContext;

/**
 * Starts the script of a Pig job with the values that were given, in the launcher of the engine.
 *
 * <p>The arguments of svcd-values (see StartMain) are here the name of the script, the options of Pig, the parameters
 * (names and values in turn) and the arguments of the script; the number of texts stands before options and parameters.
 *
 * <p>Pig has no way to take a parameter as it is: its readers split texts, run commands, and replace what looks like a
 * parameter in a value. So the parameters have marks for values while Pig replaces, and each mark becomes its value at
 * the end. Pig makes the object that replaces (PreprocessorContext) itself; the one place where it hands out its
 * context before is the choice of an execution type, which is a service that others may provide.
 *
 * <p>{@code javac --release 8 -cp} StartMain, Pig, Oozie's launcher and Hadoop {@code -d . StartPig.java}.
 *
 * <p>Source: Pig 0.18.0 Main, PigContext, PigMacro; Oozie 5.2.1 PigMain.
 */
public final class StartPig extends PigMain {
  private static final String ACTION = "oozie.action.conf.xml";
  private static final String SERVICE = "META-INF/services/org.apache.pig.ExecType";
  private static final Map<String, String> TASKS = new HashMap<>();

  static {
    TASKS.put(MRJobConfig.MAPRED_MAP_ADMIN_JAVA_OPTS, MRJobConfig.DEFAULT_MAPRED_ADMIN_JAVA_OPTS);
    TASKS.put(MRJobConfig.MAPRED_REDUCE_ADMIN_JAVA_OPTS, MRJobConfig.DEFAULT_MAPRED_ADMIN_JAVA_OPTS);
    TASKS.put(MRJobConfig.MR_AM_ADMIN_COMMAND_OPTS, MRJobConfig.DEFAULT_MR_AM_ADMIN_COMMAND_OPTS);
  }

  private static final int LONGEST = 255 - ".substituted".length();
  private static final ClassLoader LOADER = StartPig.class.getClassLoader();

  private static List<String> options;
  private static Map<String, String> parameters;

  /** Runs the script. */
  public static void main(String[] none) throws Exception {
    Iterator<String> given = Arrays.asList(StartMain.given()).iterator();
    String script = given.next();
    options = some(given);
    parameters = new HashMap<>();
    for (Iterator<String> texts = some(given).iterator(); texts.hasNext(); ) {
      parameters.put(texts.next(), texts.next());
    }
    List<String> arguments = new ArrayList<>();
    given.forEachRemaining(arguments::add);
    if (!arguments.isEmpty()) {
      // Hadoop's reader of Pig's command line would leave out each --
      String texts = ObjectSerializer.serialize(arguments.toArray(new String[0]));
      System.setProperty(PigContext.PIG_CMD_ARGS_REMAINDERS, texts);
    }
    describe(script);
    offer();
    run(StartPig.class, none);
  }

  private static List<String> some(Iterator<String> given) {
    List<String> found = new ArrayList<>();
    for (int left = Integer.parseInt(given.next()); left > 0; left--) {
      found.add(given.next());
    }
    return found;
  }

  /**
   * Gives Oozie's class the own name of the script, and the tasks an empty standard input: YARN keeps theirs open, and
   * the options of their Java are words of a shell.
   *
   * <p>Oozie's class does not let Pig expand the script for the log where this would fail: Pig would not have its
   * options then, and it writes files with longer names.
   */
  private static void describe(String script) throws IOException {
    Configuration action = new Configuration(false);
    action.addResource(new org.apache.hadoop.fs.Path("file:///", System.getProperty(ACTION)));
    action.set("oozie.pig.script", script);
    if (!options.isEmpty() || script.getBytes(StandardCharsets.UTF_8).length > LONGEST) {
      action.setBooleanIfUnset(LOG_EXPANDED_PIG_SCRIPT, false);
    }
    Configuration site = new JobConf();
    for (Map.Entry<String, String> each : TASKS.entrySet()) {
      String given = action.getRaw(each.getKey());
      String own = given == null ? site.get(each.getKey(), each.getValue()) : given;
      action.set(each.getKey(), own + " </dev/null");
    }
    Path described = Files.createTempFile(Paths.get("").toAbsolutePath(), "svcd-action", ".xml");
    try (OutputStream out = Files.newOutputStream(described)) {
      action.writeXml(out);
    }
    System.setProperty(ACTION, described.toString());
  }

  @Override
  protected void runPigJob(String[] arguments, String log, boolean version, boolean statistics) throws Exception {
    List<String> all = new ArrayList<>(Arrays.asList(arguments));
    if (!version) {
      all.addAll(options);
    }
    offer();
    super.runPigJob(all.toArray(new String[0]), log, version, statistics);
  }

  /** Makes Type the only execution type that Pig finds. */
  private static void offer() {
    Thread.currentThread()
        .setContextClassLoader(
            new ClassLoader(LOADER) {
              @Override
              public Enumeration<URL> getResources(String name) throws IOException {
                return SERVICE.equals(name)
                    ? Collections.enumeration(Collections.singleton(StartPig.class.getResource("StartPig.type")))
                    : super.getResources(name);
              }
            });
  }

  /** The execution type that Pig would have chosen; it gives Pig's context the parameters. */
  public static final class Type implements ExecType {
    private ExecType chosen;

    @Override
    public boolean accepts(Properties properties) {
      ClassLoader mine = Thread.currentThread().getContextClassLoader();
      Thread.currentThread().setContextClassLoader(LOADER);
      try {
        chosen = ExecTypeProvider.selectExecType(properties);
        return true;
      } catch (PigException unknown) {
        return false;
      } finally {
        Thread.currentThread().setContextClassLoader(mine);
      }
    }

    @Override
    public ExecutionEngine getExecutionEngine(PigContext context) {
      try {
        set(context, "preprocessorContext", new Parameters());
        set(context, "execType", chosen);
      } catch (ReflectiveOperationException other) {
        throw new IllegalStateException("this version of Pig has another PigContext", other);
      }
      return chosen.getExecutionEngine(context);
    }

    private static void set(PigContext context, String name, Object value) throws ReflectiveOperationException {
      Field field = PigContext.class.getDeclaredField(name);
      field.setAccessible(true);
      field.set(context, value);
    }

    @Override
    public Class<? extends ExecutionEngine> getExecutionEngineClass() {
      return chosen.getExecutionEngineClass();
    }

    @Override
    public boolean isLocal() {
      return chosen.isLocal();
    }

    @Override
    public String name() {
      return chosen.name();
    }

    @Override
    public String toString() {
      return "of svcd";
    }
  }

  /** Replaces the parameters of a script: a value that was given stays as it is. */
  private static final class Parameters extends PreprocessorContext {
    private static final Pattern MARK = Pattern.compile("\uFDD0(.)(.)\uFDD1+");

    private static final String DOLLAR = "\uFDD0\uFDD1\uFDD0";

    private static final char FIRST = '\uE000';
    private static final int BASE = 4096;

    private final List<String> values = new ArrayList<>();

    Parameters() {
      super(50);
      parameters.forEach(
          (name, value) -> {
            paramval_put(name, mark(name, values.size()));
            values.add(value);
          });
    }

    /** As long as ${NAME}, because Pig looks for an escape where it was before it replaced these. */
    private static String mark(String name, int number) {
      StringBuilder found = new StringBuilder("\uFDD0");
      found.append((char) (FIRST + number / BASE)).append((char) (FIRST + number % BASE));
      while (found.length() < name.length() + "${}".length()) {
        found.append('\uFDD1');
      }
      return found.toString();
    }

    /**
     * The text with its values; with a parent the text is the value of another parameter.
     *
     * <p>Pig would put a value in the place of the first $NAME, even when a \ is before it.
     */
    @Override
    public String substitute(String line, String parent) throws ParameterSubstitutionException {
      String replaced = super.substitute(line.replace("\\$", DOLLAR), parent).replace(DOLLAR, "$");
      return parent == null ? whole(replaced, "$") : replaced;
    }

    /** Pig replaces parameters in these values two times: as values of a macro's parameters, and in the macro. */
    @Override
    public Map<String, String> getParamVal() {
      Map<String, String> found = super.getParamVal();
      found.replaceAll((name, value) -> whole(value, "\\\\$"));
      return found;
    }

    private String whole(String text, String dollar) {
      if (text.indexOf('\uFDD0') < 0) {
        return text;
      }
      StringBuffer found = new StringBuffer();
      Matcher mark = MARK.matcher(text);
      while (mark.find()) {
        int number = (mark.group(1).charAt(0) - FIRST) * BASE + mark.group(2).charAt(0) - FIRST;
        String value = values.get(number).replace("$", dollar);
        mark.appendReplacement(found, Matcher.quoteReplacement(value));
      }
      return mark.appendTail(found).toString();
    }

    /** Pig itself would leave the standard input of the command open. */
    @Override
    public void processShellCmd(String name, String command, Boolean overwrite)
        throws ParameterSubstitutionException, FrontendException {
      super.processShellCmd(name, "`</dev/null; exec " + command.substring(1), overwrite);
    }
  }
}
