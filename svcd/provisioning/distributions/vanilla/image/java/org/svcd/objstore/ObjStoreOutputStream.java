package org.svcd.objstore;

import java.io.BufferedOutputStream;
import java.io.File;
import java.io.IOException;
import java.io.InputStream;
import java.io.OutputStream;
import java.nio.file.FileAlreadyExistsException;
import java.nio.file.Files;
import java.security.MessageDigest;
import java.security.NoSuchAlgorithmException;
import java.util.ArrayList;
import java.util.HexFormat;
import java.util.List;
import java.util.UUID;
import org.apache.hadoop.fs.FSExceptionMessages;
import org.apache.hadoop.fs.FileSystem;
import org.apache.hadoop.util.Progressable;
import org.slf4j.Logger;
import org.slf4j.LoggerFactory;

/**
 * Writes one object, which appears at {@link #close} or never.
 *
 * <p>The part being written lies in a local file, so that a broken upload can be repeated. What fits in one part is one
 * PUT. Else full parts go to {@code <container>_segments} while the writer goes on, and close stores the manifest: a
 * static large object, or a dynamic one where the store has no static ones. After a failed write nothing is published,
 * also by a later close, and the segments sent so far are deleted; those of a JVM that was killed stay behind.
 */
final class ObjStoreOutputStream extends OutputStream {
  private static final Logger LOG = LoggerFactory.getLogger(ObjStoreOutputStream.class);
  /** Parts double after so many of them, since a manifest is limited to 1,000 segments. */
  private static final int PARTS_OF_A_SIZE = 200;

  private static final long LARGEST_PART = 5L << 30;
  private static final int DYNAMIC_CHECKS = 6;

  private final SwiftClient client;
  private final Settings settings;
  private final String container;
  private final String key;
  private final boolean onlyNew;
  private final StoredObject replaced;
  private final Progressable progress;
  private final FileSystem.Statistics statistics;
  private final String segmentContainer;
  private final String segmentPrefix;
  private final List<SwiftClient.Segment> segments = new ArrayList<>();

  private File buffer;
  private OutputStream out;
  private MessageDigest digest;
  private long buffered;
  private long partBytes;
  private boolean publishing;
  private boolean failed;
  private boolean closed;

  /**
   * Starts a writer; no request is sent yet.
   *
   * @param onlyNew close fails when the object exists by then
   * @param replaced a large object of the same name, whose segments have to go; else null
   * @param progress may be null
   * @param statistics may be null
   */
  ObjStoreOutputStream(
      SwiftClient client,
      Settings settings,
      String container,
      String key,
      boolean onlyNew,
      StoredObject replaced,
      Progressable progress,
      FileSystem.Statistics statistics)
      throws IOException {
    this.client = client;
    this.settings = settings;
    this.container = container;
    this.key = key;
    this.onlyNew = onlyNew;
    this.replaced = replaced;
    this.progress = progress;
    this.statistics = statistics;
    this.segmentContainer = container + "_segments";
    this.segmentPrefix = ".objstore/" + UUID.randomUUID() + "/";
    this.partBytes = settings.partBytes();
    startPart();
  }

  @Override
  public synchronized void write(int b) throws IOException {
    write(new byte[] {(byte) b}, 0, 1);
  }

  @Override
  public synchronized void write(byte[] bytes, int offset, int count) throws IOException {
    requireOpen();
    try {
      int from = offset;
      int left = count;
      while (left > 0) {
        if (buffered == partBytes) {
          sendPart();
          startPart();
        }
        int n = (int) Math.min(left, partBytes - buffered);
        out.write(bytes, from, n);
        digest.update(bytes, from, n);
        buffered += n;
        from += n;
        left -= n;
      }
    } catch (IOException | RuntimeException broken) {
      giveUp();
      throw broken;
    }
    if (statistics != null) {
      statistics.incrementBytesWritten(count);
    }
  }

  /** Nothing becomes visible before close. */
  @Override
  public void flush() {}

  @Override
  public synchronized void close() throws IOException {
    if (closed) {
      return;
    }
    closed = true;
    if (failed) {
      return;
    }
    try {
      if (segments.isEmpty()) {
        finishPart();
      } else {
        sendPart();
      }
      if (replaced != null) {
        client.deleteWhole(container, replaced);
      }
      publishing = true;
      boolean stored = segments.isEmpty() ? publishPlain() : publishLarge();
      publishing = false;
      if (!stored) {
        throw new FileAlreadyExistsException(client.url(container, key) + " was made by somebody else meanwhile");
      }
    } catch (IOException | RuntimeException broken) {
      giveUp();
      throw broken;
    }
  }

  private boolean publishPlain() throws IOException {
    boolean stored = client.put(container, key, body(), "application/octet-stream", md5(), onlyNew);
    dropBuffer();
    return stored;
  }

  private boolean publishLarge() throws IOException {
    boolean fixed =
        switch (settings.largeObjects()) {
          case "slo" -> true;
          case "dlo" -> false;
          default -> client.hasStaticLargeObjects();
        };
    if (fixed) {
      return client.putStatic(container, key, segments, onlyNew);
    }
    String manifest = Http.quote(segmentContainer) + "/" + Http.quote(segmentPrefix);
    if (!client.putDynamic(container, key, manifest, "application/octet-stream", onlyNew)) {
      return false;
    }
    requireWholeDynamic();
    return true;
  }

  /** A dynamic large object is what the listing of the segments shows, which may lag: waits until it is whole. */
  private void requireWholeDynamic() throws IOException {
    long total = segments.stream().mapToLong(SwiftClient.Segment::bytes).sum();
    for (int attempt = 0; attempt < DYNAMIC_CHECKS; attempt++) {
      StoredObject seen = client.head(container, key);
      if (seen != null && seen.bytes() == total) {
        return;
      }
      Http.pause(attempt, 0);
    }
    client.deletePlain(container, key);
    throw new ObjStoreException(
        ObjStoreException.Code.SERVER_ERROR,
        "the store does not show " + client.url(container, key) + " with its " + total
            + " bytes after joining its segments; if it has no large objects, raise fs.objstore.part.bytes");
  }

  private void startPart() throws IOException {
    Files.createDirectories(settings.bufferDir().toPath());
    buffer = Files.createTempFile(settings.bufferDir().toPath(), "objstore-", ".part").toFile();
    out = new BufferedOutputStream(Files.newOutputStream(buffer.toPath()), 64 << 10);
    digest = newDigest();
    buffered = 0;
  }

  private void sendPart() throws IOException {
    finishPart();
    if (segments.isEmpty()) {
      client.createContainer(segmentContainer);
    }
    String name = segmentPrefix + String.format("%08d", segments.size());
    String md5 = md5();
    client.put(segmentContainer, name, body(), "application/octet-stream", md5, false);
    segments.add(new SwiftClient.Segment(segmentContainer, name, md5, buffered));
    dropBuffer();
    if (segments.size() % PARTS_OF_A_SIZE == 0) {
      partBytes = Math.min(LARGEST_PART, partBytes * 2);
    }
    if (progress != null) {
      progress.progress();
    }
  }

  private void finishPart() throws IOException {
    out.close();
  }

  private String md5() {
    return HexFormat.of().formatHex(digest.digest());
  }

  private Http.Body body() {
    File file = buffer;
    long size = buffered;
    return new Http.Body() {
      @Override
      public long length() {
        return size;
      }

      @Override
      public InputStream open() throws IOException {
        return Files.newInputStream(file.toPath());
      }
    };
  }

  /** Removes what was sent, except the segments of a manifest that may have been stored before its answer was lost. */
  private void giveUp() {
    failed = true;
    dropBuffer();
    if (publishing && !segments.isEmpty()) {
      LOG.warn("Left {} segments of {} in {}/{}", segments.size(), client.url(container, key), segmentContainer,
          segmentPrefix);
      return;
    }
    for (SwiftClient.Segment segment : segments) {
      try {
        client.deletePlain(segment.container(), segment.key());
      } catch (IOException left) {
        LOG.warn("Left {} segments of {} behind: {}", segments.size(), client.url(container, key), left.getMessage());
        break;
      }
    }
    segments.clear();
  }

  private void dropBuffer() {
    try {
      out.close();
      Files.deleteIfExists(buffer.toPath());
    } catch (IOException left) {
      LOG.warn("Could not delete {}: {}", buffer, left.getMessage());
    }
  }

  private void requireOpen() throws IOException {
    if (closed) {
      throw new IOException(FSExceptionMessages.STREAM_IS_CLOSED + ": " + client.url(container, key));
    }
    if (failed) {
      throw new IOException("an earlier write of " + client.url(container, key) + " failed");
    }
  }

  private static MessageDigest newDigest() {
    try {
      return MessageDigest.getInstance("MD5");
    } catch (NoSuchAlgorithmException missing) {
      throw new IllegalStateException("this JVM has no MD5, which Swift's ETag is", missing);
    }
  }
}
