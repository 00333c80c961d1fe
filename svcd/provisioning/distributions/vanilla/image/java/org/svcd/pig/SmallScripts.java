package org.svcd.pig;

import java.util.Properties;
import org.apache.pig.ExecType;
import org.apache.pig.backend.executionengine.ExecutionEngine;
import org.apache.pig.impl.PigContext;

/**
 * The execution type {@code exectype=small}: MapReduce, whose small steps run within Pig's own JVM.
 *
 * <p>Pig can do so by itself ({@code pig.auto.local.enabled}). But then it sets almost all options
 * of the step back to Hadoop's defaults, it closes its own log, and each step with a small input
 * runs so, whatever code it has. See {@link SmallSteps}.
 */
public final class SmallScripts implements ExecType {
  private static final long serialVersionUID = 1L;

  @Override
  public boolean accepts(Properties properties) {
    return "small".equalsIgnoreCase(properties.getProperty("exectype"));
  }

  @Override
  public ExecutionEngine getExecutionEngine(PigContext context) {
    return new SmallStepsEngine(context);
  }

  @Override
  public Class<? extends ExecutionEngine> getExecutionEngineClass() {
    return SmallStepsEngine.class;
  }

  @Override
  public boolean isLocal() {
    return false;
  }

  /** Goes into the configuration of steps, where Pig's own classes know this name. */
  @Override
  public String name() {
    return "MAPREDUCE";
  }

  @Override
  public String toString() {
    return "MAPREDUCE (small steps within the launcher)";
  }
}
