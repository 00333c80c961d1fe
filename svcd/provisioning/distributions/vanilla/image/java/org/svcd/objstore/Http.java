package org.svcd.objstore;

import java.io.ByteArrayInputStream;
import java.io.Closeable;
import java.io.IOException;
import java.io.InputStream;
import java.io.InterruptedIOException;
import java.io.OutputStream;
import java.net.HttpRetryException;
import java.net.HttpURLConnection;
import java.net.SocketTimeoutException;
import java.net.URI;
import java.net.UnknownHostException;
import java.nio.charset.StandardCharsets;
import java.util.Map;
import java.util.Set;
import java.util.concurrent.ScheduledFuture;
import java.util.concurrent.ScheduledThreadPoolExecutor;
import java.util.concurrent.ThreadLocalRandom;
import java.util.concurrent.TimeUnit;

/**
 * HTTP exchanges with time-outs in every phase, and repeated tries of what may pass by itself. Thread-safe.
 *
 * <p>HttpURLConnection and not java.net.http.HttpClient: its read time-out covers each read of a body, where the
 * client's ends with the headers, so a store that stalls in the middle of a split would hang the task. What it lacks is
 * a time-out for a stalled upload; {@link #send} adds one. Every request sent here may safely be repeated: PUT, GET,
 * HEAD, DELETE, and Keystone's token POST.
 */
final class Http {
  /** Answers worth a further try: busy, rate limited, out of order for the moment. */
  private static final Set<Integer> PASSING = Set.of(408, 429, 498, 500, 502, 503, 504, 507);

  private static final long FIRST_PAUSE_MS = 250;
  private static final long LONGEST_PAUSE_MS = 10_000;
  private static final int DRAINED_BYTES = 64 << 10;
  private static final ScheduledThreadPoolExecutor WATCH = watch();

  private final Settings settings;

  Http(Settings settings) {
    this.settings = settings;
  }

  /** What is sent; opened anew for every try. */
  interface Body {
    long length();

    InputStream open() throws IOException;

    static Body of(byte[] bytes) {
      return new Body() {
        @Override
        public long length() {
          return bytes.length;
        }

        @Override
        public InputStream open() {
          return new ByteArrayInputStream(bytes);
        }
      };
    }
  }

  /**
   * One request.
   *
   * @param body null: none
   * @param patienceMs added to the read time-out, for answers that legitimately take long (a server-side copy)
   */
  record Request(String method, String url, Map<String, String> headers, Body body, long patienceMs) {}

  /** An answer whose body is still to be read. Closing it makes the connection free for the next request. */
  static final class Reply implements Closeable {
    final int status;

    /** Whether an earlier try may have reached the peer before its answer was lost. */
    boolean repeated;

    private final HttpURLConnection connection;
    private final InputStream body;

    Reply(int status, HttpURLConnection connection, InputStream body) {
      this.status = status;
      this.connection = connection;
      this.body = body;
    }

    String header(String name) {
      return connection.getHeaderField(name);
    }

    String header(String name, String fallback) {
      String value = header(name);
      return value == null ? fallback : value;
    }

    /** The length of the body or, for HEAD, of the object; -1 when not told. */
    long contentLength() {
      return connection.getHeaderFieldLong("Content-Length", -1);
    }

    InputStream body() {
      return body == null ? InputStream.nullInputStream() : body;
    }

    /** The beginning of the body as one line of text for a message. */
    String excerpt() {
      try {
        String text = new String(body().readNBytes(2_000), StandardCharsets.UTF_8);
        String plain = text.replaceAll("(?s)<[^>]*>", " ").replaceAll("[\\s\\p{Cntrl}]+", " ").trim();
        return plain.length() > 200 ? plain.substring(0, 200) + "..." : plain;
      } catch (IOException unreadable) {
        return "";
      }
    }

    /** Drops the connection, for a body that will not be read to its end. */
    void abort() {
      connection.disconnect();
    }

    @Override
    public void close() {
      if (body == null) {
        return;
      }
      try {
        body.readNBytes(DRAINED_BYTES);
        body.close();
      } catch (IOException broken) {
        connection.disconnect();
      }
    }
  }

  /**
   * Sends the request until an answer comes that is not a passing failure, or the tries are used up. The caller closes
   * the reply and judges its status; 5xx never comes out as a reply.
   *
   * @throws ObjStoreException UNREACHABLE or SERVER_ERROR, both after the last try
   */
  Reply exchange(Request request) throws IOException {
    long begun = System.nanoTime();
    for (int attempt = 0; ; attempt++) {
      long asked = 0;
      try {
        Reply reply = send(request);
        reply.repeated = attempt > 0;
        if (!PASSING.contains(reply.status)) {
          return reply;
        }
        asked = retryAfterMs(reply);
        if (lastTry(settings, attempt, begun)) {
          throw serverError(request, reply, attempt + 1);
        }
        reply.close();
      } catch (ObjStoreException decided) {
        throw decided;
      } catch (InterruptedIOException stopped) {
        if (!(stopped instanceof SocketTimeoutException)) {
          throw stopped;
        }
        if (lastTry(settings, attempt, begun)) {
          throw unreachable(request, stopped, attempt + 1);
        }
      } catch (IOException broken) {
        if (lastTry(settings, attempt, begun)) {
          throw unreachable(request, broken, attempt + 1);
        }
      }
      pause(attempt, asked);
    }
  }

  /**
   * Whether try number {@code attempt} (from 0) was the last: a store that is gone for a minute is waited for, one that
   * stays away or is silent fails the task in time, with its reason, before Hadoop kills it without one.
   *
   * @param begun {@code System.nanoTime()} at the first try
   */
  static boolean lastTry(Settings settings, int attempt, long begun) {
    long passedMs = TimeUnit.NANOSECONDS.toMillis(System.nanoTime() - begun);
    return attempt >= settings.retries() || passedMs >= settings.patienceMs();
  }

  /** Waits before a further try: exponential with jitter, or as long as the peer asked for (at most 10 s). */
  static void pause(int attempt, long askedMs) throws InterruptedIOException {
    long grown = Math.min(LONGEST_PAUSE_MS, FIRST_PAUSE_MS << Math.min(attempt, 10));
    long jittered = grown / 2 + ThreadLocalRandom.current().nextLong(grown / 2 + 1);
    try {
      Thread.sleep(Math.min(LONGEST_PAUSE_MS, Math.max(jittered, askedMs)));
    } catch (InterruptedException stopped) {
      Thread.currentThread().interrupt();
      throw new InterruptedIOException("objstore: interrupted while waiting for a further try");
    }
  }

  /** Percent-encodes the UTF-8 bytes of each segment and keeps the slashes between them. */
  static String quote(String path) {
    StringBuilder quoted = new StringBuilder(path.length() + 16);
    for (byte b : path.getBytes(StandardCharsets.UTF_8)) {
      int c = b & 0xff;
      boolean plain = c >= 'a' && c <= 'z' || c >= 'A' && c <= 'Z' || c >= '0' && c <= '9' || "-._~/".indexOf(c) >= 0;
      if (plain) {
        quoted.append((char) c);
      } else {
        quoted.append('%').append(String.format("%02X", c));
      }
    }
    return quoted.toString();
  }

  /** Percent-encodes one query value. */
  static String quoteValue(String value) {
    return quote(value).replace("/", "%2F");
  }

  private Reply send(Request request) throws IOException {
    HttpURLConnection connection = (HttpURLConnection) URI.create(request.url()).toURL().openConnection();
    connection.setConnectTimeout(settings.connectTimeoutMs());
    connection.setReadTimeout((int) Math.min(Integer.MAX_VALUE, settings.readTimeoutMs() + request.patienceMs()));
    connection.setInstanceFollowRedirects(false);
    connection.setUseCaches(false);
    connection.setRequestMethod(request.method());
    request.headers().forEach(connection::setRequestProperty);
    try {
      if (request.body() != null) {
        upload(connection, request.body());
      }
      int status = connection.getResponseCode();
      if (status < 0) {
        throw new IOException("the answer is not HTTP");
      }
      return new Reply(status, connection, status >= 400 ? connection.getErrorStream() : connection.getInputStream());
    } catch (HttpRetryException refused) {
      // The JDK's words for "401 to a streamed body": there is no error stream in this case.
      connection.disconnect();
      return new Reply(refused.responseCode(), connection, null);
    } catch (IOException broken) {
      connection.disconnect();
      throw broken;
    }
  }

  /** Streams the body; a peer that takes nothing for the read time-out is cut off by the watch thread. */
  private void upload(HttpURLConnection connection, Body body) throws IOException {
    connection.setDoOutput(true);
    connection.setFixedLengthStreamingMode(body.length());
    long limitNs = TimeUnit.MILLISECONDS.toNanos(settings.readTimeoutMs());
    long[] last = {System.nanoTime()};
    boolean[] cut = {false};
    Runnable check =
        () -> {
          synchronized (last) {
            if (System.nanoTime() - last[0] > limitNs) {
              cut[0] = true;
              connection.disconnect();
            }
          }
        };
    connection.connect();
    long everyMs = Math.max(10, settings.readTimeoutMs() / 4);
    ScheduledFuture<?> watched = WATCH.scheduleWithFixedDelay(check, everyMs, everyMs, TimeUnit.MILLISECONDS);
    try (InputStream in = body.open();
        OutputStream out = connection.getOutputStream()) {
      byte[] chunk = new byte[64 << 10];
      for (int n = in.read(chunk); n >= 0; n = in.read(chunk)) {
        out.write(chunk, 0, n);
        synchronized (last) {
          last[0] = System.nanoTime();
        }
      }
    } catch (IOException broken) {
      if (cut[0]) {
        throw new SocketTimeoutException("the peer took no data for " + settings.readTimeoutMs() + " ms");
      }
      if (!answeredEarly(connection)) {
        throw broken;
      }
    } finally {
      watched.cancel(false);
    }
  }

  /** Whether the peer answered (quota, 401) before it had read the body, which breaks the writing side. */
  private static boolean answeredEarly(HttpURLConnection connection) {
    try {
      return connection.getResponseCode() >= 400;
    } catch (HttpRetryException refused) {
      return true;
    } catch (IOException none) {
      return false;
    }
  }

  private static long retryAfterMs(Reply reply) {
    try {
      return Math.max(0, Long.parseLong(reply.header("Retry-After", "0").trim())) * 1_000;
    } catch (NumberFormatException date) {
      return 0;
    }
  }

  private static ObjStoreException serverError(Request request, Reply reply, int tries) {
    String said = reply.excerpt();
    reply.close();
    return new ObjStoreException(
        ObjStoreException.Code.SERVER_ERROR,
        request.method() + " " + request.url() + " was answered " + reply.status + tried(tries)
            + (said.isEmpty() ? "" : ": " + said));
  }

  private ObjStoreException unreachable(Request request, IOException broken, int tries) {
    String why =
        broken instanceof UnknownHostException
            ? "unknown host " + broken.getMessage()
            : broken instanceof SocketTimeoutException
                ? broken.getMessage() + " (limits: connect " + settings.connectTimeoutMs() + " ms, silence "
                    + settings.readTimeoutMs() + " ms)"
                : String.valueOf(broken.getMessage() == null ? broken : broken.getMessage());
    return new ObjStoreException(
        ObjStoreException.Code.UNREACHABLE,
        request.method() + " " + request.url() + " got no answer" + tried(tries) + ": " + why
            + "; check that this address answers from the node",
        broken);
  }

  private static String tried(int tries) {
    return tries == 1 ? "" : " in " + tries + " tries";
  }

  private static ScheduledThreadPoolExecutor watch() {
    ScheduledThreadPoolExecutor pool =
        new ScheduledThreadPoolExecutor(
            1,
            task -> {
              Thread thread = new Thread(task, "objstore-watch");
              thread.setDaemon(true);
              return thread;
            });
    pool.setRemoveOnCancelPolicy(true);
    return pool;
  }
}
