package org.svcd.pig;

import java.util.List;
import org.apache.hadoop.mapred.JobConf;
import org.apache.pig.backend.executionengine.ExecException;
import org.apache.pig.backend.hadoop.executionengine.mapReduceLayer.MRExecutionEngine;
import org.apache.pig.impl.PigContext;

/** Pig's engine for MapReduce with {@link SmallSteps} as its launcher of steps. */
final class SmallStepsEngine extends MRExecutionEngine {
  private final SmallSteps steps = new SmallSteps();

  SmallStepsEngine(PigContext context) {
    super(context);
    launcher = steps;
  }

  @Override
  public void init() throws ExecException {
    super.init();
    steps.begin(pigContext.getProperties());
  }

  /**
   * The options that replace those of a step that runs within this JVM: only what is needed for it.
   *
   * <p>Pig's own method returns all defaults of Hadoop, so that options of the script and of the
   * site were lost. Files of the step lie in the container, which YARN deletes whatever happens.
   * The files of the job are there already: no copy of them is made.
   */
  @Override
  public JobConf getLocalConf() {
    JobConf conf = new JobConf(false);
    conf.set("mapreduce.framework.name", "local");
    conf.set("mapreduce.jobtracker.address", "local");
    conf.set("mapreduce.cluster.local.dir", "${user.dir}/steps/local");
    conf.set("mapreduce.jobtracker.staging.root.dir", "${user.dir}/steps/staging");
    conf.set("mapreduce.task.io.sort.mb", "16");
    for (String kind : List.of("cache", "classpath")) {
      conf.set("mapreduce.job." + kind + ".files", "");
      conf.set("mapreduce.job." + kind + ".archives", "");
    }
    return conf;
  }
}
