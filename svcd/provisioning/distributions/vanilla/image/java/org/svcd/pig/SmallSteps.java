package org.svcd.pig;

import java.io.IOException;
import java.util.List;
import java.util.Map;
import java.util.Objects;
import java.util.Properties;
import java.util.TreeMap;
import java.util.regex.Pattern;
import java.util.stream.Stream;
import org.apache.commons.logging.Log;
import org.apache.commons.logging.LogFactory;
import org.apache.log4j.Level;
import org.apache.log4j.Logger;
import org.apache.pig.FuncSpec;
import org.apache.pig.backend.hadoop.executionengine.mapReduceLayer.MapReduceLauncher;
import org.apache.pig.backend.hadoop.executionengine.mapReduceLayer.MapReduceOper;
import org.apache.pig.backend.hadoop.executionengine.mapReduceLayer.NativeMapReduceOper;
import org.apache.pig.backend.hadoop.executionengine.mapReduceLayer.plans.MROperPlan;
import org.apache.pig.backend.hadoop.executionengine.physicalLayer.plans.PhysicalPlan;
import org.apache.pig.backend.hadoop.executionengine.physicalLayer.relationalOperators.POStream;
import org.apache.pig.backend.hadoop.executionengine.physicalLayer.util.PlanHelper;
import org.apache.pig.impl.PigContext;
import org.apache.pig.impl.plan.PlanException;
import org.apache.pig.impl.plan.VisitorException;
import org.apache.pig.tools.pigstats.PigStats;

/**
 * Lets Pig run the steps of a script within this JVM where nothing of the script is lost by it.
 *
 * <p>A step runs here when its input is small, which Pig finds out, and when
 *
 * <ul>
 *   <li>small jobs run within their master ({@code mapreduce.job.ubertask.enable}),
 *   <li>the heap is not smaller than that of svcd's launchers, by a word of the caller,
 *   <li>the script has set no option of tasks that has no meaning here,
 *   <li>each function of the plan is one of Pig's: other code may stop or fill the JVM, or never
 *       end, and a task is protected against all three,
 *   <li>one step comes after the other, because each takes a sort buffer out of the same heap.
 * </ul>
 *
 * <p>{@code pig.auto.local.enabled} of the caller or of the script wins over these rules.
 */
final class SmallSteps extends MapReduceLauncher {
  private static final Log LOG = LogFactory.getLog(SmallSteps.class);
  private static final String HERE = "pig.auto.local.enabled";
  private static final String SMALL = "mapreduce.job.ubertask.enable";
  /** A regular expression: names of options that need tasks in containers of their own. */
  private static final String OF_TASKS = "svcd.pig.options.of.tasks";
  private static final String LEVEL = "log4j.logger.org.apache.pig";

  /** Bytes. The heap of svcd's smallest launcher has more. */
  private static final long LEAST_HEAP = 200L << 20;

  private static final String BUILTIN = "org.apache.pig.builtin.";
  private static final String INTERNAL = "org.apache.pig.impl.builtin.";
  private static final List<String> OF_PIG =
      List.of(BUILTIN, INTERNAL, "org.apache.pig.impl.io.",
          "org.apache.pig.backend.hadoop.executionengine.");
  /** Functions of Pig that call other code, or read files that a task finds in its folder. */
  private static final List<String> FOREIGN =
      List.of(BUILTIN + "Invoke", BUILTIN + "Hive", BUILTIN + "Bloom", BUILTIN + "BuildBloom",
          INTERNAL + "Streaming");

  private Pattern ofTasks = Pattern.compile("");
  private Map<String, Object> given = Map.of();
  /** An option of tasks that the script has set; empty when there is none. */
  private String changed = "";
  private boolean isLaunching;

  /** options: those of the site and of the caller, before the script. */
  void begin(Properties options) {
    ofTasks = Pattern.compile(options.getProperty(OF_TASKS, ""));
    given = ofTasks(options);
  }

  @Override
  public PigStats launchPig(PhysicalPlan physical, String group, PigContext context)
      throws Exception {
    Properties options = context.getProperties();
    if (changed.isEmpty()) {
      changed = difference(given, ofTasks(options));
    }
    boolean isSaid = options.containsKey(HERE);
    isLaunching = !isSaid;
    Properties log = context.getLog4jProperties();
    Object level = log.get(LEVEL);
    if ("INFO".equals(level)) {
      // of no use to a task, which has this level anyway; a step in this JVM would close Pig's log
      log.remove(LEVEL);
    }
    keepLog();
    try {
      return super.launchPig(physical, group, context);
    } finally {
      isLaunching = false;
      if (!isSaid) {
        options.remove(HERE);
      }
      if (level != null) {
        log.put(LEVEL, level);
      }
      given = ofTasks(options); // Pig adds options of its own to those of tasks
    }
  }

  @Override
  public MROperPlan compile(PhysicalPlan physical, PigContext context)
      throws PlanException, IOException, VisitorException {
    MROperPlan plan = super.compile(physical, context);
    if (isLaunching) {
      String reason = reason(plan, context);
      context.getProperties().setProperty(HERE, String.valueOf(reason.isEmpty()));
      if (!reason.isEmpty()) {
        LOG.info("All steps run in containers: " + reason);
      }
    }
    return plan;
  }

  /** Keeps what a task in this JVM says only for its own log out of Pig's log. */
  private static void keepLog() {
    for (String name : List.of("mapred.MapTask", "mapred.Task")) { // splits and counters
      Logger.getLogger("org.apache.hadoop." + name).setLevel(Level.WARN);
    }
    // "already initialized", by another step
    Logger.getLogger("org.apache.hadoop.metrics2.impl.MetricsSystemImpl").setLevel(Level.ERROR);
    Logger.getLogger("org.apache.pig.data.SchemaTupleBackend").setLevel(Level.ERROR);
    for (String name : List.of("mapreduce.task.reduce", "mapred.Merger")) {
      Logger log = Logger.getLogger("org.apache.hadoop." + name); // Pig has closed its file
      log.removeAllAppenders();
      log.setAdditivity(true);
    }
  }

  /** Why the steps need containers; empty when they do not. */
  private String reason(MROperPlan plan, PigContext context) throws VisitorException {
    if (!Boolean.parseBoolean(context.getProperties().getProperty(SMALL))) {
      return SMALL + " is not true";
    }
    if (Runtime.getRuntime().maxMemory() < LEAST_HEAP) {
      return "the heap of this JVM is small";
    }
    if (!changed.isEmpty()) {
      return "the script sets an option of tasks: " + changed;
    }
    if (context.getLog4jProperties().containsKey(LEVEL)) {
      return "the level of Pig's log is not INFO";
    }
    if (!context.scriptFiles.isEmpty()) {
      return "the script has functions of its own";
    }
    if (!isOneByOne(plan)) {
      return "some steps may run at the same time";
    }
    for (MapReduceOper step : plan) {
      String code = otherCode(step);
      if (!code.isEmpty()) {
        return "code that is not of Pig: " + code;
      }
    }
    return "";
  }

  private Map<String, Object> ofTasks(Properties options) {
    Map<String, Object> found = new TreeMap<>();
    for (String name : options.stringPropertyNames()) {
      if (ofTasks.matcher(name).matches()) {
        found.put(name, options.get(name));
      }
    }
    return found;
  }

  /** The first name whose values differ; empty when there is none. */
  private static String difference(Map<String, Object> one, Map<String, Object> other) {
    return Stream.concat(one.keySet().stream(), other.keySet().stream())
        .filter(name -> !Objects.equals(one.get(name), other.get(name)))
        .findFirst()
        .orElse("");
  }

  private static boolean isOneByOne(MROperPlan plan) {
    for (MapReduceOper step : plan) {
      List<MapReduceOper> next = plan.getSuccessors(step);
      if (next != null && next.size() > 1) {
        return false;
      }
    }
    return plan.getRoots().size() == 1;
  }

  private static String otherCode(MapReduceOper step) throws VisitorException {
    if (step instanceof NativeMapReduceOper
        || hasProgram(step.mapPlan)
        || hasProgram(step.reducePlan)) {
      return "a program";
    }
    String partitioner = step.getCustomPartitioner();
    Stream<String> names = partitioner == null ? Stream.of() : Stream.of(partitioner);
    return Stream.concat(step.UDFs.stream(), names)
        .filter(name -> !isOfPig(name))
        .findFirst()
        .orElse("");
  }

  private static boolean hasProgram(PhysicalPlan plan) throws VisitorException {
    return PlanHelper.containsPhysicalOperator(plan, POStream.class);
  }

  /** function: as in the script, its class with or without the package, maybe with arguments. */
  private static boolean isOfPig(String function) {
    Class<?> found;
    try {
      found = PigContext.resolveClassName(FuncSpec.getClassNameFromSpec(function));
    } catch (IOException error) {
      return false; // Pig will tell
    }
    String name = found.getName();
    return FOREIGN.stream().noneMatch(name::startsWith)
        && OF_PIG.stream().anyMatch(name::startsWith)
        && Objects.equals(
            found.getProtectionDomain().getCodeSource(),
            PigContext.class.getProtectionDomain().getCodeSource());
  }
}
