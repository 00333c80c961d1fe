// Picks from a job's log the lines that its programs have written: the rules of svcd/cli/program_output.py, which
// explains them. A test compares both.

const oneOf = (...parts) => `(?:${parts.map((each) => each.source).join("|")})`;
// The pattern of lines that begin with one of the parts.
const beginning = (...parts) => new RegExp(`^${oneOf(...parts)}`, "s");

const NAMES = oneOf(
  /(?:[A-Za-z0-9_.-]+ )?(?:application|attempt)_[0-9a-z_]+ (?:stdout|stderr|syslog)/,
  /engine/,
  /programs/,
  /job execution [0-9A-Za-z-]+: [A-Za-z_-]+/,
);
const TITLE = new RegExp(`^==> (${NAMES}) <==\\n?$`);
const LAUNCHER = /application_\d+_\d+ stdout$/;
const JVM_ERRORS = /(?:application|attempt)_\w+ stderr$/;
const MOST_FILES = 200;

const MAIN = ">>> Invoking Main class now >>>";
const PROGRAM = /^>>> Invoking (\w+) (?:command line|class) now >>>?$/;
const ENDED = /^<<< Invocation of (?:\w+ )+completed <<<$/;
const RULE = /^[-=]{8,}$/;
const JAVA_ARGUMENTS = /^Java action arguments +:$/;
const DUMP = beginning(
  /Classpath +:$/,
  /Java System Properties:$/,
  /Environment variables$/,
  /pig\.properties:$/,
  / Pig script \[.*\] content: $/,
  /Map-Reduce job configuration:$/,
  /Full Command \.\. $/,
  /Content of script .* \(size = \d+b\):$/,
);
const ENVIRONMENT = "List of passing environment";
const STDOUT = "Stdoutput ";
const HANDED_OVER = beginning(
  /Oozie Launcher, uploading action data to HDFS sequence file: /,
  /Oozie Launcher, propagating new Hadoop job id to Oozie$/,
);
const MOMENT = /^\d{4}-\d\d-\d\d \d\d:\d\d:\d\d,\d{3} /;
const STEP = /(?:\[[^\]]{1,80}\] )?(?:INFO|DEBUG|TRACE) +(?:\[[^\]]{1,80}\] )?/;
const LOGGER = /(?:(?:SecurityLogger\.)?org\.apache\.(?:hadoop|pig)|org\.eclipse\.jetty)\./;
const SHOWN = oneOf(
  /examples\./,
  /tools\.pigstats\.\w+\.SimplePigStats/,
  /backend\.hadoop\.executionengine\.mapReduceLayer\.MapReduceLauncher/,
);
const WARNED = /WARN \[(?:main|uber-\w+)\] org\.apache\./;
const WARNINGS = oneOf(
  /hadoop\.util\.NativeCodeLoader: Unable to load native-hadoop/,
  /hadoop\.metrics2\.impl\.MetricsSystemImpl: \w+ metrics system already initialized!/,
  /hadoop\.security\.authentication\.server\.AuthenticationFilter: Unable to initialize FileSigner/,
  /hadoop\.mapred\.LocalContainerLauncher: Returning, interrupted : /,
  /pig\.data\.SchemaTupleBackend: SchemaTupleBackend has already been initialized$/,
);
const STEPS = oneOf(new RegExp(`${STEP.source}${LOGGER.source}(?!${SHOWN})`), new RegExp(`${WARNED.source}${WARNINGS}`));
const FRAMEWORK = new RegExp(`${MOMENT.source}${STEPS}`);
const SPARK_MOMENT = /^\d{4}-\d\d-\d\d \d\d:\d\d:\d\d\.\d{3} /;
const SPARK_STEP = /(?:INFO|DEBUG|TRACE) org\.(?:apache\.(?:spark|hadoop)|sparkproject)\.(?!examples\.)/;
const SPARK_WARNING = /^WARNING: Using incubator modules: jdk\.incubator\.vector$/;
const SPARK = new RegExp(`${SPARK_MOMENT.source}${SPARK_STEP.source}|${SPARK_WARNING.source}`);
const SUBMIT = /^Java action main class +: org\.svcd\.spark\.SubmitSpark$/;
const FAILED = "Failing Oozie Launcher, ";
const CONTAINER = /^\[[\d :.-]{23}\]Container exited with /;
const EXECUTORS = " org.apache.spark.deploy.yarn.ApplicationMaster: ";
const CONTEXT = "=".repeat(79);
const EXCEPTION = /^(?:Caused by: )?(?:\w+\.)+[\w$]*(?:Exception|Error)\b/;
const JVM = beginning(
  /WARNING: A terminally deprecated method in java\.lang\.System has been called$/,
  /WARNING: System::setSecurityManager has been called by org\.apache\.oozie\./,
  /WARNING: System::setSecurityManager will be removed in a future release$/,
  /WARNING: Please consider reporting this to the maintainers of org\.apache\.oozie\./,
  /log4j:WARN No appenders could be found for logger /,
  /log4j:WARN Please initialize the log4j system properly\.$/,
  /log4j:WARN See http:\/\/logging\.apache\.org\/log4j\//,
  /Error while trying to clean up previous job's temporary files/,
);
const LIBRARIES = oneOf(
  /java|javax|jdk|sun|com\.sun|scala|py4j|org\.antlr\.runtime/,
  /org\.apache\.(?:hadoop(?!\.examples\.)|oozie|pig|spark(?!\.examples\.))/,
  /org\.svcd\.(?:hadoop|jobs|objstore|spark)/,
);
const FRAME = new RegExp(
  `^[ \\t]+(?:at (?:[\\w.@-]{1,80}/)?${LIBRARIES}\\.|\\.\\.\\. \\d{1,9} (?:more|common frames omitted)$)`,
);
// Lines that a launcher prints, by the phase in which it prints them.
const KNOWN = {
  preamble: beginning(
    /Launcher AM configuration loaded$/,
    /Executing (?:Oozie Launcher|Action Main) with tokens:$/,
    /Kind: /,
    /Removing token from the Ugi: /,
    /Starting the execution of prepare actions$/,
    /Completed the execution of prepare actions successfully$/,
    /Files in current dir:/,
    / {2}(?:File|Dir): /,
    /Oozie Launcher Application Master configuration$/,
    /Workflow (?:job|action) id *: /,
    /Main class +: /,
    /Maximum output +: /,
  ),
  introduction: beginning(
    /Launcher class: class org\.(?:apache\.oozie|svcd\.jobs)\./,
    /INFO: loading log4j config file /,
    /INFO: log4j config file .* loaded successfully\.$/,
    /\{"properties":\[\{/,
    /Setting (?:\[.*\] tag|env property for .* to):/,
    /Fetching child yarn jobs$/,
    /tag id : /,
    /No child applications found$/,
    /Oozie (?:Java|Map-Reduce|Pig) action configuration$/,
    /Java action main class +: /,
    /Current working dir /,
    /Creating \/.*$/,
    /Current \(local\) dir = /,
    /Pig command arguments :$/,
    / {13}[^ ]/,
    /Submitting Oozie action Map-Reduce job$/,
  ),
  epilogue: beginning(
    /Stopping AM$/,
    /Callback notification (?:attempts left \d+|trying .*|to .* succeeded|succeeded)$/,
    /job_\d+_\d+$/,
  ),
};

// The place in one file; the fields are those of FileState.
const place = (phase, spark = false, told = []) => ({
  phase,
  within: "",
  heading: "",
  leftOut: false,
  blanks: 0,
  begun: true,
  pig: false,
  spark,
  told,
  again: "",
});

// The place after a line that begins another phase and is not shown; else undefined.
function turned(words, before) {
  const { phase, within, spark } = before;
  const early = phase === "preamble" || phase === "introduction";
  if (early && words === MAIN) return place("introduction");
  if (phase === "introduction" && !within) {
    if (SUBMIT.test(words)) return { ...before, heading: "", spark: true };
    if (JAVA_ARGUMENTS.test(words)) return place("arguments", spark);
  }
  const program = early && PROGRAM.exec(words);
  if (program) return { ...place("program"), begun: false, pig: program[1] === "Pig" };
  if (ENDED.test(words) || HANDED_OVER.test(words)) return place("epilogue");
}

// The place after a line of a dump; undefined for a line that is of none.
function inDump(words, before) {
  if (words === ENVIRONMENT || (!before.within && DUMP.test(words))) return { ...before, heading: words, within: "" };
  if (before.heading && RULE.test(words)) {
    return { ...before, heading: "", within: before.heading === ENVIRONMENT ? "=".repeat(65) : words };
  }
  if (before.within) return { ...before, within: words === before.within ? "" : before.within };
}

// A line of any file but a launcher's output; the dump is in that of a Spark driver.
function ofDriver(line, words, before) {
  const within = before.within && !SPARK_MOMENT.test(words);
  const after = { ...before, leftOut: false, heading: "", within: "" };
  if (within || (before.heading && words === CONTEXT)) {
    return ["", within && words === CONTEXT ? after : { ...after, within: CONTEXT }];
  }
  return [line, after];
}

// The place of a line of a Spark job's launcher, with `again` if it was told before.
function toldOf(words, before) {
  const { phase, told, again } = before;
  if (again && !words.startsWith(again)) return before;
  const isContainer = CONTAINER.test(words);
  if (phase === "program" && words === "java.lang.reflect.InvocationTargetException") return { ...before, again: FAILED };
  if (told.includes(words)) {
    return { ...before, again: isContainer ? "For more detailed output, check " : "Oozie Launcher, " };
  }
  return { ...before, again: "", told: isContainer ? [...told, words] : told };
}

function ofLauncher(line, words, before) {
  const after = turned(words, before);
  if (after) return ["", after];
  const { spark } = before;
  if (words.startsWith(FAILED)) {
    return ["\n".repeat(before.blanks) + line, place("epilogue", spark, spark ? [words.slice(FAILED.length)] : [])];
  }
  if (spark) {
    before = toldOf(words, before);
    if (before.again) return ["", before];
  }
  if (before.phase === "program") {
    if (words === "Exit code of the Shell command 0") return ["", before];
    if (!words) return ["", { ...before, blanks: before.begun ? before.blanks + 1 : 0 }];
    const written = line.startsWith(STDOUT) ? line.slice(STDOUT.length) : line;
    return ["\n".repeat(before.blanks) + written, { ...before, blanks: 0, begun: true }];
  }
  if (before.phase === "arguments") return ["", words ? before : place("program", spark)];
  const inside = inDump(words, before);
  if (inside) return ["", inside];
  const known = !words || RULE.test(words) || KNOWN[before.phase].test(words);
  return [known ? "" : line, { ...before, heading: "", within: "" }];
}

// "" for a file that is no launcher's output.
function firstPhase(title, words) {
  if (!LAUNCHER.test(title)) return "";
  return words === "Launcher AM configuration loaded" ? "preamble" : "program";
}

// What to show of a line of a file, and the place after it; null at the beginning and behind missing text.
function ofLine(title, line, before) {
  const words = line.replace(/[\r\n]+$/, "");
  if (words.startsWith("[svcd: ")) return [line, null];
  before ??= place(firstPhase(title, words));
  if (FRAME.test(words)) return ["", before];
  const known =
    ((!before.phase || before.spark) && SPARK.test(words)) ||
    (FRAMEWORK.test(words) && (before.phase !== "program" || before.pig)) ||
    (JVM_ERRORS.test(title) && JVM.test(words));
  const continues = before.leftOut && title.endsWith(" syslog") && !MOMENT.test(words) && !EXCEPTION.test(words);
  if (known || continues) {
    const driver = before.phase ? {} : { heading: words.endsWith(EXECUTORS) ? words : "", within: "" };
    return ["", { ...before, ...driver, leftOut: true }];
  }
  return before.phase ? ofLauncher(line, words, { ...before, leftOut: false }) : ofDriver(line, words, before);
}

// A log that comes in pieces. leftOut: the number of lines left out so far.
export class ProgramOutput {
  rest = "";
  title = "";
  shown = "";
  files = new Map(); // by title, the one that was read last at the end
  leftOut = 0;

  // The lines of the programs in the next piece. last: nothing will follow.
  of(text, last = false) {
    const lines = (this.rest + text).split("\n");
    this.rest = lines.pop();
    const whole = lines.map((each) => `${each}\n`);
    if (last && this.rest) whole.push(this.rest);
    return whole.map((line) => this.line(line)).join("");
  }

  line(line) {
    const title = TITLE.exec(line)?.[1];
    if (title !== undefined) {
      this.title = title;
      return "";
    }
    if (this.title === "engine") {
      this.leftOut += 1;
      return "";
    }
    const [wanted, after] = ofLine(this.title, line, this.files.get(this.title));
    this.files.delete(this.title);
    if (after) this.files.set(this.title, after);
    if (this.files.size > MOST_FILES) this.files.delete(this.files.keys().next().value);
    if (!wanted && /[^ \t\r\n]/.test(line)) this.leftOut += 1;
    if (!wanted || this.title === this.shown) return wanted;
    this.shown = this.title;
    return `==> ${this.title} <==\n${wanted}`;
  }
}
