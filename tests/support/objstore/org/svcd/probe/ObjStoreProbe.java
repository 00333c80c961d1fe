package org.svcd.probe;

import java.io.EOFException;
import java.io.FileNotFoundException;
import java.io.IOException;
import java.nio.charset.StandardCharsets;
import java.nio.file.Files;
import java.nio.file.Paths;
import java.util.ArrayList;
import java.util.Arrays;
import java.util.List;
import java.util.Random;
import java.util.TreeSet;
import java.util.concurrent.ExecutorService;
import java.util.concurrent.Executors;
import java.util.concurrent.Future;
import org.apache.hadoop.conf.Configuration;
import org.apache.hadoop.fs.FSDataInputStream;
import org.apache.hadoop.fs.FSDataOutputStream;
import org.apache.hadoop.fs.FileAlreadyExistsException;
import org.apache.hadoop.fs.FileContext;
import org.apache.hadoop.fs.FileStatus;
import org.apache.hadoop.fs.FileSystem;
import org.apache.hadoop.fs.FsShell;
import org.apache.hadoop.fs.LocatedFileStatus;
import org.apache.hadoop.fs.Path;
import org.apache.hadoop.fs.RemoteIterator;
import org.apache.hadoop.io.LongWritable;
import org.apache.hadoop.io.Text;
import org.apache.hadoop.mapred.JobClient;
import org.apache.hadoop.mapred.JobConf;
import org.apache.hadoop.mapred.RunningJob;
import org.apache.hadoop.mapreduce.Job;
import org.apache.hadoop.mapreduce.JobID;
import org.apache.hadoop.mapreduce.MRJobConfig;
import org.apache.hadoop.mapreduce.Mapper;
import org.apache.hadoop.mapreduce.TaskAttemptContext;
import org.apache.hadoop.mapreduce.TaskAttemptID;
import org.apache.hadoop.mapreduce.TaskCounter;
import org.apache.hadoop.mapreduce.TaskID;
import org.apache.hadoop.mapreduce.TaskType;
import org.apache.hadoop.mapreduce.lib.input.CombineTextInputFormat;
import org.apache.hadoop.mapreduce.lib.input.FileInputFormat;
import org.apache.hadoop.mapreduce.lib.input.TextInputFormat;
import org.apache.hadoop.mapreduce.lib.output.FileOutputCommitter;
import org.apache.hadoop.mapreduce.lib.output.FileOutputFormat;
import org.apache.hadoop.mapreduce.lib.output.PathOutputCommitter;
import org.apache.hadoop.mapreduce.lib.output.PathOutputCommitterFactory;
import org.apache.hadoop.mapreduce.task.TaskAttemptContextImpl;
import org.apache.hadoop.util.ToolRunner;
import org.svcd.objstore.ObjStoreCommitter;

/**
 * What the objstore tests do inside a JVM: {@code ObjStoreProbe COMMAND URL ...}, one line of result for each check.
 *
 * <p>{@code contract URL}: the file system's behaviour; {@code small URL N}: many small objects; {@code many URL}: what
 * a job's client does with very many; {@code read URL}, {@code write URL BYTES}: for injected faults; {@code job FILE}, {@code oldjob FILE}: a job of the new or old API; {@code
 * commit URL N ALGORITHM FACTORY}: the output of one task with so many files; {@code fs ...}: Hadoop's shell; {@code each
 * FILE}: a command a line, each with its own file of configuration in front, parted by tabs.
 */
public final class ObjStoreProbe {
  private static final String STEP = "@@@ step ";
  private static Path site;

  private final FileSystem fs;
  private final Path base;

  private ObjStoreProbe(Path base) throws IOException {
    this.base = base;
    this.fs = base.getFileSystem(conf());
  }

  /** One check; whatever it throws is its failure. */
  private interface Check {
    void run(Path folder) throws Exception;
  }

  /** The constructor of a committer. */
  private interface Maker {
    FileOutputCommitter of(Path out, TaskAttemptContext attempt) throws IOException;
  }

  /** A mapper that fails at its first line that begins with "fail", after having written the lines before. */
  public static final class Failing extends Mapper<LongWritable, Text, LongWritable, Text> {
    @Override
    protected void map(LongWritable offset, Text line, Context context) throws IOException, InterruptedException {
      if (line.toString().startsWith("fail")) {
        throw new IOException("this line fails");
      }
      context.write(offset, line);
    }
  }

  public static void main(String[] args) throws Exception {
    System.exit(args[0].equals("each") ? each(Files.readAllLines(Paths.get(args[1]))) : run(args));
  }

  /** Runs the commands of all lines in this JVM; before each one, both streams say its number. */
  private static int each(List<String> lines) throws IOException {
    for (int i = 0; i < lines.size(); i++) {
      String[] words = lines.get(i).split("\t");
      System.out.println(STEP + i);
      System.err.println(STEP + i);
      site = new Path(words[0]);
      int code = 1;
      try {
        code = run(Arrays.copyOfRange(words, 1, words.length));
      } catch (Exception failed) {
        failed.printStackTrace();
      }
      System.out.println(STEP + "code " + code);
      FileSystem.closeAll();
    }
    return 0;
  }

  /** The configuration: of the process, or of a line of {@code each}. */
  private static Configuration conf() {
    Configuration made = new Configuration();
    if (site != null) {
      made.addResource(site);
    }
    return made;
  }

  private static int run(String[] args) throws Exception {
    return switch (args[0]) {
      case "contract" -> new ObjStoreProbe(new Path(args[1])).contract();
      case "small" -> new ObjStoreProbe(new Path(args[1])).small(Integer.parseInt(args[2]));
      case "many" -> many(new Path(args[1]));
      case "read" -> read(new Path(args[1]));
      case "write" -> write(new Path(args[1]), Integer.parseInt(args[2]));
      case "job" -> job(new Path(args[1]));
      case "oldjob" -> oldJob(new Path(args[1]));
      case "commit" -> commit(new Path(args[1]), Integer.parseInt(args[2]), args[3], args[4]);
      case "fs" -> ToolRunner.run(conf(), new FsShell(), Arrays.copyOfRange(args, 1, args.length));
      default -> throw new IllegalArgumentException(args[0]);
    };
  }

  /** The bytes that object number {@code seed} has everywhere in these tests. */
  private static byte[] bytes(int seed, int length) {
    byte[] made = new byte[length];
    new Random(seed).nextBytes(made);
    return made;
  }

  private static int many(Path folder) throws IOException {
    Configuration conf = conf();
    FileSystem fs = folder.getFileSystem(conf);
    System.out.println("listed " + fs.listStatus(folder).length);
    System.out.println("matched " + fs.globStatus(new Path(folder, "n000*")).length);
    Job job = Job.getInstance(conf);
    FileInputFormat.addInputPath(job, folder);
    System.out.println("splits " + new TextInputFormat().getSplits(job).size());
    FileInputFormat.setMaxInputSplitSize(job, 1 << 20);
    System.out.println("combined " + new CombineTextInputFormat().getSplits(job).size());
    return 0;
  }

  /** Writes the files of a task, then commits the task and its job with a committer of this factory. */
  private static int commit(Path out, int count, String algorithm, String factory) throws Exception {
    Job job = Job.getInstance(conf());
    FileOutputFormat.setOutputPath(job, out);
    job.getConfiguration().set("mapreduce.fileoutputcommitter.algorithm.version", algorithm);
    job.getConfiguration().set("mapreduce.outputcommitter.factory.scheme.objstore", factory);
    TaskID task = new TaskID(new JobID("probe", 1), TaskType.REDUCE, 0);
    TaskAttemptContext attempt = new TaskAttemptContextImpl(job.getConfiguration(), new TaskAttemptID(task, 0));
    PathOutputCommitter committer = PathOutputCommitterFactory.createCommitter(out, attempt);
    FileSystem fs = out.getFileSystem(job.getConfiguration());
    committer.setupJob(attempt);
    committer.setupTask(attempt);
    ExecutorService writers = Executors.newFixedThreadPool(16);
    List<Future<?>> written = new ArrayList<>();
    for (int i = 0; i < count; i++) {
      Path file = new Path(committer.getWorkPath(), String.format("day=%d/part-%05d", i % 3, i));
      written.add(
          writers.submit(
              () -> {
                try (FSDataOutputStream to = fs.create(file, true)) {
                  to.write(file.getName().getBytes(StandardCharsets.UTF_8));
                }
                return null;
              }));
    }
    for (Future<?> each : written) {
      each.get();
    }
    writers.shutdown();
    System.out.println("begin");
    long began = System.nanoTime();
    committer.commitTask(attempt);
    double taskS = (System.nanoTime() - began) / 1e9;
    committer.commitJob(attempt);
    System.out.printf("task %.1f s, with the job %.1f s%n", taskS, (System.nanoTime() - began) / 1e9);
    return 0;
  }

  private static int read(Path path) throws IOException {
    FileSystem fs = path.getFileSystem(conf());
    long total = 0;
    long sum = 0;
    try (FSDataInputStream in = fs.open(path)) {
      byte[] chunk = new byte[1000];
      for (int n = in.read(chunk); n >= 0; n = in.read(chunk)) {
        total += n;
        for (int i = 0; i < n; i++) {
          sum += chunk[i] & 0xff;
        }
      }
    } catch (IOException failed) {
      System.out.println("error " + failed.getMessage());
      return 1;
    }
    System.out.println("read " + total + " " + sum);
    return 0;
  }

  private static int write(Path path, int length) {
    try {
      FileSystem fs = path.getFileSystem(conf());
      try (FSDataOutputStream out = fs.create(path, true)) {
        out.write(bytes(1, length));
      }
    } catch (IOException failed) {
      System.out.println("error " + failed.getMessage());
      return 1;
    }
    System.out.println("written " + length);
    return 0;
  }

  private static int job(Path file) throws Exception {
    Configuration conf = conf();
    conf.addResource(file);
    Job job = Job.getInstance(conf);
    boolean good = job.waitForCompletion(false);
    System.out.println("maps " + job.getConfiguration().getInt(MRJobConfig.NUM_MAPS, -1));
    System.out.println("records " + job.getCounters().findCounter(TaskCounter.MAP_INPUT_RECORDS).getValue());
    return good ? 0 : 1;
  }

  private static int oldJob(Path file) throws Exception {
    JobConf conf = new JobConf(conf());
    conf.addResource(file);
    RunningJob job = new JobClient(conf).submitJob(conf);
    job.waitForCompletion();
    System.out.println("records " + job.getCounters().findCounter(TaskCounter.MAP_INPUT_RECORDS).getValue());
    return job.isSuccessful() ? 0 : 1;
  }

  private int small(int count) throws Exception {
    Path folder = new Path(base, "small");
    List<Thread> writers = new ArrayList<>();
    List<Throwable> failures = new ArrayList<>();
    for (int t = 0; t < 4; t++) {
      int first = t;
      Thread writer =
          new Thread(
              () -> {
                try {
                  for (int i = first; i < count; i += 4) {
                    put(new Path(folder, "d" + i % 10 + "/n" + i), bytes(i, 10));
                  }
                } catch (IOException | RuntimeException failed) {
                  synchronized (failures) {
                    failures.add(failed);
                  }
                }
              });
      writers.add(writer);
      writer.start();
    }
    for (Thread writer : writers) {
      writer.join();
    }
    if (!failures.isEmpty()) {
      throw new IOException(failures.get(0));
    }
    System.out.println("flat " + names(folder).size());
    System.out.println("folders " + fs.listStatus(folder).length);
    System.out.println("one " + fs.listStatus(new Path(folder, "d3")).length);
    System.out.println("renamed " + fs.rename(folder, new Path(base, "moved")));
    System.out.println("flat " + names(new Path(base, "moved")).size());
    System.out.println("deleted " + fs.delete(new Path(base, "moved"), true));
    System.out.println("gone " + !fs.exists(new Path(base, "moved")) + " " + !fs.exists(folder));
    return 0;
  }

  private int contract() {
    int failed = 0;
    failed += check("write-and-read", this::writeAndRead);
    failed += check("names", this::manyNames);
    failed += check("only-new", this::onlyNew);
    failed += check("large-object", folder -> large(folder, fs));
    failed += check("large-object-dynamic", this::largeDynamic);
    failed += check("large-object-replaced", this::largeReplaced);
    failed += check("directories", this::directories);
    failed += check("rename", this::rename);
    failed += check("missing", this::missing);
    failed += check("file-context", this::fileContext);
    failed += check("committer", folder -> committer(folder, FileOutputCommitter::new));
    failed += check("committer-at-once", folder -> committer(folder, ObjStoreCommitter::new));
    failed += check("committed-over", this::committedOver);
    return failed == 0 ? 0 : 1;
  }

  private int check(String name, Check check) {
    try {
      check.run(new Path(base, "contract/" + name));
      System.out.println("ok " + name);
      return 0;
    } catch (Exception | AssertionError failed) {
      System.out.println("FAILED " + name + ": " + failed);
      failed.printStackTrace();
      return 1;
    }
  }

  private void writeAndRead(Path folder) throws IOException {
    byte[] bytes = bytes(1, 300_000);
    Path path = new Path(folder, "a");
    try (FSDataOutputStream out = fs.create(path)) {
      out.write(bytes, 0, 100);
      out.hflush();
      that(!fs.exists(path), "visible before close");
      out.write(bytes, 100, bytes.length - 100);
    }
    FileStatus status = fs.getFileStatus(path);
    that(status.getLen() == bytes.length && status.isFile(), "status " + status);
    that(Math.abs(status.getModificationTime() - System.currentTimeMillis()) < 600_000, "time of " + status);
    that(fs.listStatus(folder)[0].equals(status), "listed as itself");
    that(fs.listStatus(path).length == 1, "a file lists itself");
    try (FSDataInputStream in = fs.open(path)) {
      byte[] part = new byte[1000];
      in.seek(299_500);
      that(in.available() == 500, "available " + in.available());
      that(in.read(part, 0, 1000) == 500 && in.read() == -1, "end of file");
      in.seek(7);
      in.readFully(part);
      that(Arrays.equals(part, Arrays.copyOfRange(bytes, 7, 1007)), "after seek");
      in.readFully(200_000, part);
      that(Arrays.equals(part, Arrays.copyOfRange(bytes, 200_000, 201_000)), "positioned");
      that(in.getPos() == 1007 && in.read() == (bytes[1007] & 0xff), "position kept");
      that(in.read(300_000, part, 0, 5) == -1, "positioned at the end");
      fails(EOFException.class, () -> in.readFully(299_999, part));
      fails(EOFException.class, () -> in.seek(300_001));
      fails(EOFException.class, () -> in.seek(-1));
    }
    put(new Path(folder, "empty"), new byte[0]);
    try (FSDataInputStream in = fs.open(new Path(folder, "empty"))) {
      that(in.read() == -1, "empty");
    }
    fails(FileNotFoundException.class, () -> fs.open(folder));
  }

  private void manyNames(Path folder) throws IOException {
    List<String> names =
        List.of("with space", "plus+and&=", "per%41cent", "hash#", "colon:x", "grüße", "日本語 ☃", "a\"quote'", "~tilde", "[x]{y}");
    for (String name : names) {
      Path path = new Path(folder, new Path(null, null, "./" + name));
      put(path, name.getBytes(StandardCharsets.UTF_8));
      that(Arrays.equals(get(path), name.getBytes(StandardCharsets.UTF_8)), name);
      that(fs.getFileStatus(path).getPath().equals(path), name + " as " + fs.getFileStatus(path).getPath());
    }
    TreeSet<String> listed = new TreeSet<>();
    for (FileStatus status : fs.listStatus(folder)) {
      listed.add(status.getPath().getName());
    }
    that(listed.equals(new TreeSet<>(names)), "listed " + listed);
    Path moved = new Path(folder.getParent(), "names ümgezogen");
    that(fs.rename(folder, moved) && names(moved).equals(new TreeSet<>(names)), "renamed " + names(moved));
  }

  private void onlyNew(Path folder) throws IOException {
    Path path = new Path(folder, "a");
    put(path, bytes(1, 10));
    fails(FileAlreadyExistsException.class, () -> fs.create(path, false).close());
    Path other = new Path(folder, "b");
    FSDataOutputStream first = fs.create(other, false);
    FSDataOutputStream second = fs.create(other, false);
    first.write(1);
    second.write(2);
    first.close();
    fails(IOException.class, second::close);
    that(get(other)[0] == 1, "the first stays");
    put(other, bytes(2, 20));
    that(get(other).length == 20, "replaced");
    fails(FileAlreadyExistsException.class, () -> fs.create(folder, true).close());
  }

  private FileSystem configured(String key, String value) throws IOException {
    Configuration conf = conf();
    conf.set("fs.objstore.part.bytes", "1m");
    conf.set(key, value);
    return FileSystem.newInstance(base.toUri(), conf);
  }

  private void largeDynamic(Path folder) throws IOException {
    try (FileSystem dynamic = configured("fs.objstore.large.objects", "dlo")) {
      large(folder, dynamic);
    }
  }

  private void large(Path folder, FileSystem given) throws IOException {
    try (FileSystem parted = given == fs ? configured("fs.objstore.threads", "3") : configured(
        "fs.objstore.large.objects", "dlo")) {
      byte[] bytes = bytes(3, (5 << 20) + 12_345);
      int before = segments();
      Path path = new Path(folder, "a/big");
      try (FSDataOutputStream out = parted.create(path)) {
        out.write(bytes, 0, 3_000_000);
        out.write(bytes, 3_000_000, bytes.length - 3_000_000);
        that(!fs.exists(path), "visible before close");
      }
      that(segments() == before + 6, "segments " + segments());
      that(fs.listStatus(path.getParent())[0].getLen() == bytes.length, "length in the listing");
      that(fs.listFiles(folder, true).next().getLen() == bytes.length, "length in the flat listing");
      that(Arrays.equals(get(path), bytes), "content");
      that(fs.rename(path.getParent(), new Path(folder, "b")), "rename");
      Path moved = new Path(folder, "b/big");
      that(Arrays.equals(get(moved), bytes) && !fs.exists(path), "content after rename");
      try (FSDataInputStream in = fs.open(moved)) {
        byte[] part = new byte[100];
        in.readFully((1 << 20) - 50, part);
        that(Arrays.equals(part, Arrays.copyOfRange(bytes, (1 << 20) - 50, (1 << 20) + 50)), "over a seam");
      }
      that(fs.delete(new Path(folder, "b"), true) && !fs.exists(moved), "deleted");
      that(segments() == before, "segments left " + (segments() - before));
    }
  }

  private void largeReplaced(Path folder) throws IOException {
    try (FileSystem parted = configured("fs.objstore.threads", "3")) {
      int before = segments();
      Path path = new Path(folder, "a");
      try (FSDataOutputStream out = parted.create(path)) {
        out.write(bytes(3, 2_500_000));
      }
      put(path, bytes(4, 10));
      that(get(path).length == 10 && segments() == before, "segments of the replaced one left");
      Path second = new Path(folder, "b");
      FSDataOutputStream first = parted.create(second, false);
      first.write(bytes(5, 2_500_000));
      put(second, bytes(4, 10));
      fails(IOException.class, first::close);
      that(get(second).length == 10 && segments() == before, "segments of the refused one left");
    }
  }

  private void directories(Path folder) throws IOException {
    that(fs.mkdirs(new Path(folder, "x/y")) && fs.mkdirs(new Path(folder, "x/y")), "mkdirs");
    that(fs.getFileStatus(new Path(folder, "x")).isDirectory(), "on the way");
    that(fs.listStatus(new Path(folder, "x/y")).length == 0, "empty");
    put(new Path(folder, "x/y/f"), bytes(1, 3));
    put(new Path(folder, "implied/deep/f"), bytes(1, 3));
    that(fs.getFileStatus(new Path(folder, "implied/deep")).isDirectory(), "implied");
    that(fs.listStatus(folder).length == 2 && fs.listStatus(new Path(folder, "x")).length == 1, "once each");
    fails(IOException.class, () -> fs.mkdirs(new Path(folder, "x/y/f/g")));
    fails(IOException.class, () -> fs.mkdirs(new Path(folder, "x/y/f")));
    fails(IOException.class, () -> fs.delete(new Path(folder, "x"), false));
    that(fs.delete(new Path(folder, "x"), true) && !fs.exists(new Path(folder, "x")), "delete");
    that(!fs.delete(new Path(folder, "x"), true), "delete what is not there");
    that(fs.mkdirs(new Path(folder, "e")) && fs.delete(new Path(folder, "e"), false), "delete an empty one");
    that(!fs.delete(new Path(base.toUri().resolve("/")), true), "the root stays");
    that(fs.getFileStatus(new Path("/")).isDirectory(), "root");
  }

  private void rename(Path folder) throws IOException {
    Path a = new Path(folder, "a");
    Path b = new Path(folder, "b");
    put(new Path(a, "f"), bytes(1, 3));
    put(new Path(a, "g/h"), bytes(2, 4));
    put(b, bytes(3, 5));
    that(!fs.rename(new Path(folder, "none"), new Path(folder, "c")), "missing source");
    that(!fs.rename(a, new Path(a, "g/i")), "into itself");
    that(!fs.rename(new Path(a, "f"), b), "onto a file");
    that(!fs.rename(a, new Path(b, "x")), "into a file");
    that(fs.mkdirs(new Path(folder, "c")) && fs.rename(a, new Path(folder, "c")), "into a directory");
    that(names(folder).equals(new TreeSet<>(List.of("b", "f", "h"))), "names " + names(folder));
    that(get(new Path(folder, "c/a/g/h")).length == 4 && !fs.exists(a), "moved");
    that(fs.rename(b, b) && get(b).length == 5, "onto itself");
    that(fs.rename(b, new Path(folder, "d")) && get(new Path(folder, "d")).length == 5, "file");
  }

  private void missing(Path folder) throws IOException {
    Path none = new Path(folder, "none");
    for (Check check :
        List.<Check>of(p -> fs.open(p), p -> fs.getFileStatus(p), p -> fs.listStatus(p), p -> fs.listFiles(p, true))) {
      String said = fails(FileNotFoundException.class, () -> check.run(none));
      that(said.startsWith("objstore: NOT_FOUND: ") && said.contains(none.toString()), said);
    }
    Path nowhere = new Path("objstore://no-such-container-" + System.nanoTime() + "/x");
    FileSystem other = nowhere.getFileSystem(conf());
    for (Check check :
        List.<Check>of(p -> other.open(p), p -> other.listStatus(p), p -> other.create(p).close())) {
      String said = fails(FileNotFoundException.class, () -> check.run(nowhere));
      that(said.startsWith("objstore: NOT_FOUND: ") && said.contains("container"), said);
    }
  }

  private void fileContext(Path folder) throws Exception {
    put(new Path(folder, "a b"), bytes(1, 3));
    FileContext context = FileContext.getFileContext(base.toUri(), conf());
    that(context.getFileStatus(new Path(folder, "a b")).getLen() == 3, "status");
    that(context.util().listStatus(folder).length == 1, "list");
  }

  /** One attempt aborted, one cut off in its commit, one good; a second task; then the job. */
  private void committer(Path folder, Maker maker) throws Exception {
    Path out = new Path(folder, "out");
    JobID id = new JobID("probe", 1);
    Job job = Job.getInstance(conf());
    FileOutputFormat.setOutputPath(job, out);
    job.getConfiguration().setInt("mapreduce.fileoutputcommitter.algorithm.version", 1);
    TaskAttemptContext[] attempts = new TaskAttemptContext[4];
    FileOutputCommitter[] committers = new FileOutputCommitter[4];
    for (int i = 0; i < 4; i++) {
      TaskID task = new TaskID(id, TaskType.REDUCE, i == 3 ? 1 : 0);
      attempts[i] = new TaskAttemptContextImpl(job.getConfiguration(), new TaskAttemptID(task, i));
      committers[i] = maker.of(out, attempts[i]);
    }
    committers[0].setupJob(attempts[0]);
    for (int i = 0; i < 4; i++) {
      committers[i].setupTask(attempts[i]);
      put(new Path(committers[i].getWorkPath(), i == 3 ? "part-1" : "part-0"), bytes(1, 10 + i));
    }
    committers[0].abortTask(attempts[0]);
    that(names(out).equals(new TreeSet<>(List.of("part-0", "part-1"))), "work of three attempts");
    put(new Path(committers[1].getCommittedTaskPath(attempts[1]), "part-stale"), bytes(1, 3));
    that(committers[2].needsTaskCommit(attempts[2]), "needs commit");
    committers[2].commitTask(attempts[2]);
    committers[3].commitTask(attempts[3]);
    that(fs.listStatus(out).length == 1, "nothing to be seen before the job's commit");
    committers[1].abortTask(attempts[1]);
    committers[2].commitJob(attempts[2]);
    TreeSet<String> left = new TreeSet<>();
    for (FileStatus status : fs.listStatus(out)) {
      left.add(status.getPath().getName() + ":" + status.getLen());
    }
    that(left.equals(new TreeSet<>(List.of("_SUCCESS:0", "part-0:12", "part-1:13"))), "output " + left);
    that(names(out).size() == 3, "flat " + names(out));
  }

  /** What a task commits replaces files, large objects and folders of the same names, also of a commit cut off. */
  private void committedOver(Path folder) throws Exception {
    Path out = new Path(folder, "out");
    Job job = Job.getInstance(conf());
    FileOutputFormat.setOutputPath(job, out);
    job.getConfiguration().setInt("mapreduce.fileoutputcommitter.algorithm.version", 2);
    TaskID task = new TaskID(new JobID("probe", 2), TaskType.REDUCE, 0);
    TaskAttemptContext attempt = new TaskAttemptContextImpl(job.getConfiguration(), new TaskAttemptID(task, 0));
    ObjStoreCommitter committer = new ObjStoreCommitter(out, attempt);
    int before = segments();
    Path work = committer.getWorkPath();
    try (FileSystem parted = configured("fs.objstore.threads", "3")) {
      for (Path large : List.of(new Path(out, "large"), new Path(work, "moved"))) {
        try (FSDataOutputStream to = parted.create(large)) {
          to.write(bytes(3, 2_500_000));
        }
      }
    }
    put(new Path(out, "plain"), bytes(1, 5));
    put(new Path(out, "folder/below"), bytes(1, 5));
    that(fs.mkdirs(new Path(out, "folder")), "marked");
    for (String name : List.of("plain", "large", "folder", "new/deep")) {
      put(new Path(work, name), bytes(2, 7));
    }
    that(fs.mkdirs(new Path(work, "empty")), "an empty folder");
    committer.commitTask(attempt);
    committer.commitJob(attempt);
    for (String name : List.of("plain", "large", "folder", "new/deep")) {
      that(Arrays.equals(get(new Path(out, name)), bytes(2, 7)), name);
    }
    that(Arrays.equals(get(new Path(out, "moved")), bytes(3, 2_500_000)), "a large object");
    that(fs.getFileStatus(new Path(out, "empty")).isDirectory(), "an empty folder");
    TreeSet<String> left = new TreeSet<>(List.of("_SUCCESS", "plain", "large", "folder", "deep", "moved"));
    that(names(out).equals(left), "flat " + names(out));
    that(fs.delete(out, true) && segments() == before, "segments left " + (segments() - before));
  }

  private int segments() throws IOException {
    Path place = new Path("objstore://" + base.toUri().getAuthority() + "_segments/");
    int count = 0;
    try {
      RemoteIterator<LocatedFileStatus> all = place.getFileSystem(conf()).listFiles(place, true);
      for (; all.hasNext(); all.next()) {
        count++;
      }
    } catch (FileNotFoundException none) {
      return 0;
    }
    return count;
  }

  private void put(Path path, byte[] bytes) throws IOException {
    try (FSDataOutputStream out = fs.create(path, true)) {
      out.write(bytes);
    }
  }

  private byte[] get(Path path) throws IOException {
    try (FSDataInputStream in = fs.open(path)) {
      return in.readAllBytes();
    }
  }

  private TreeSet<String> names(Path folder) throws IOException {
    TreeSet<String> names = new TreeSet<>();
    RemoteIterator<LocatedFileStatus> all = fs.listFiles(folder, true);
    while (all.hasNext()) {
      names.add(all.next().getPath().getName());
    }
    return names;
  }

  private static void that(boolean holds, String what) {
    if (!holds) {
      throw new AssertionError(what);
    }
  }

  /** An action that is expected to fail. */
  private interface Action {
    void run() throws Exception;
  }

  private static String fails(Class<? extends Exception> expected, Action action) {
    try {
      action.run();
    } catch (Exception failure) {
      that(expected.isInstance(failure), "expected " + expected.getSimpleName() + ", came " + failure);
      return String.valueOf(failure.getMessage());
    }
    throw new AssertionError("expected " + expected.getSimpleName() + ", nothing came");
  }
}
