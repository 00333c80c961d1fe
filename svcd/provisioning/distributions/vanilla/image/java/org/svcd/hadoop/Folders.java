package org.svcd.hadoop;

import java.io.File;
import java.io.IOException;
import java.io.InputStream;
import java.io.InterruptedIOException;
import java.io.OutputStream;
import java.net.HttpURLConnection;
import java.net.URL;
import java.net.URLEncoder;
import java.nio.charset.StandardCharsets;
import java.nio.file.Files;
import java.util.ArrayList;
import java.util.Arrays;
import java.util.List;
import java.util.concurrent.Callable;
import java.util.concurrent.CompletionService;
import java.util.concurrent.ExecutionException;
import java.util.concurrent.ExecutorCompletionService;
import java.util.concurrent.ExecutorService;
import java.util.concurrent.Executors;

/**
 * Makes folders and uploads trees in a new HDFS, over WebHDFS.
 *
 * <p>Usage: {@code java org.svcd.hadoop.Folders BASE USER (mkdir PATH MODE OWNER | put LOCAL PATH)...} with BASE such
 * as http://10.0.0.2:9870/webhdfs/v1 and "-" for no owner. Every step may be repeated: a folder that exists keeps what
 * it holds, a tree that exists is left alone (it appears under its name when it is whole). Waits for a name node that
 * is not ready yet. Nothing of Hadoop is needed: this virtual machine starts in a fraction of the time of its tools.
 */
public final class Folders {
  private static final int CONNECT_MS = 5_000;
  private static final int READ_MS = 60_000;
  private static final long PATIENCE_MS = 30_000;
  private static final long PAUSE_MS = 200;
  private static final int AT_ONCE = 4;

  private final String base;
  private final String user;

  private Folders(String base, String user) {
    this.base = base;
    this.user = user;
  }

  public static void main(String[] arguments) throws Exception {
    if (arguments.length < 2) {
      System.err.println("usage: Folders BASE USER (mkdir PATH MODE OWNER | put LOCAL PATH)...");
      System.exit(2);
    }
    Folders folders = new Folders(arguments[0], arguments[1]);
    int at = 2;
    while (at < arguments.length) {
      String[] step = Arrays.copyOfRange(arguments, at, Math.min(arguments.length, at + 4));
      if (step[0].equals("mkdir") && step.length == 4) {
        folders.patiently(() -> folders.mkdir(step[1], step[2], step[3]));
        at += 4;
      } else if (step[0].equals("put") && step.length >= 3) {
        folders.patiently(() -> folders.put(new File(step[1]), step[2]));
        at += 3;
      } else {
        System.err.println("Folders: cannot understand " + String.join(" ", step));
        System.exit(2);
      }
    }
  }

  private interface Step {
    void run() throws IOException;
  }

  private void patiently(Step step) throws IOException, InterruptedException {
    long end = System.nanoTime() + PATIENCE_MS * 1_000_000;
    while (true) {
      try {
        step.run();
        return;
      } catch (IOException e) {
        if (System.nanoTime() > end) {
          throw e;
        }
        Thread.sleep(PAUSE_MS);
      }
    }
  }

  private void mkdir(String path, String mode, String owner) throws IOException {
    call("PUT", path, "op=MKDIRS&permission=" + mode, 200);
    call("PUT", path, "op=SETPERMISSION&permission=" + mode, 200);
    if (!owner.equals("-")) {
      call("PUT", path, "op=SETOWNER&owner=" + escaped(owner) + "&group=" + escaped(owner), 200);
    }
  }

  private void put(File local, String path) throws IOException {
    if (call("GET", path, "op=GETFILESTATUS", 200, 404) == 200) {
      return;
    }
    String unfinished = path.substring(0, path.lastIndexOf('/') + 1) + "unfinished-" + local.getName();
    call("DELETE", unfinished, "op=DELETE&recursive=true", 200);
    call("PUT", unfinished, "op=MKDIRS&permission=755", 200);
    List<Callable<Void>> files = new ArrayList<>();
    upload(local, unfinished, files);
    sideBySide(files);
    call("PUT", unfinished, "op=RENAME&destination=" + escaped(path), 200);
    call("GET", path, "op=GETFILESTATUS", 200);
  }

  /** Makes the folders, and adds what makes each file to {@code contents}. */
  private void upload(File local, String path, List<Callable<Void>> contents) throws IOException {
    File[] files = local.listFiles();
    if (files == null) {
      throw new IOException(local + " is no folder that can be read");
    }
    Arrays.sort(files);
    for (File file : files) {
      String target = path + "/" + file.getName();
      if (file.isDirectory()) {
        call("PUT", target, "op=MKDIRS&permission=755", 200);
        upload(file, target, contents);
      } else {
        contents.add(() -> {
          create(file, target);
          return null;
        });
      }
    }
  }

  /** Most of the time of one file is waiting for name node and data node. After a failure no further call begins. */
  private static void sideBySide(List<Callable<Void>> calls) throws IOException {
    ExecutorService threads = Executors.newFixedThreadPool(AT_ONCE);
    try {
      CompletionService<Void> ended = new ExecutorCompletionService<>(threads);
      calls.forEach(ended::submit);
      for (int left = calls.size(); left > 0; left--) {
        ended.take().get();
      }
    } catch (ExecutionException failed) {
      throw new IOException(failed.getCause().getMessage(), failed.getCause());
    } catch (InterruptedException ended) {
      throw new InterruptedIOException("the upload was interrupted");
    } finally {
      threads.shutdownNow();
    }
  }

  /** The name node answers with the data node that takes the content. */
  private void create(File file, String path) throws IOException {
    HttpURLConnection first = open("PUT", url(path, "op=CREATE&overwrite=true&permission=644"));
    first.setRequestProperty("Content-Length", "0");
    check(first, path, 307);
    HttpURLConnection second = open("PUT", first.getHeaderField("Location"));
    second.setDoOutput(true);
    second.setFixedLengthStreamingMode(file.length());
    second.setRequestProperty("Content-Type", "application/octet-stream");
    try (OutputStream body = second.getOutputStream()) {
      Files.copy(file.toPath(), body);
    }
    check(second, path, 201);
  }

  private int call(String method, String path, String query, int... good) throws IOException {
    return check(open(method, url(path, query)), path, good);
  }

  private String url(String path, String query) {
    StringBuilder escaped = new StringBuilder(base);
    for (String part : path.substring(1).split("/")) {
      escaped.append('/').append(escaped(part));
    }
    return escaped + "?user.name=" + escaped(user) + "&" + query;
  }

  private static String escaped(String text) {
    return URLEncoder.encode(text, StandardCharsets.UTF_8).replace("+", "%20");
  }

  private static HttpURLConnection open(String method, String url) throws IOException {
    HttpURLConnection connection = (HttpURLConnection) new URL(url).openConnection();
    connection.setRequestMethod(method);
    connection.setInstanceFollowRedirects(false);
    connection.setConnectTimeout(CONNECT_MS);
    connection.setReadTimeout(READ_MS);
    return connection;
  }

  /** Reads the answer to its end, so that the connection is used again. */
  private static int check(HttpURLConnection connection, String path, int... good) throws IOException {
    int status = connection.getResponseCode();
    String said = "";
    try (InputStream in = status >= 400 ? connection.getErrorStream() : connection.getInputStream()) {
      if (in != null) {
        said = new String(in.readNBytes(65_536), StandardCharsets.UTF_8);
      }
    }
    for (int each : good) {
      if (status == each) {
        return status;
      }
    }
    throw new IOException(path + ": status " + status + " " + said.replaceAll("\\s+", " "));
  }
}
