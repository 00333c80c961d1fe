package org.svcd.objstore;

import java.io.EOFException;
import java.io.FileNotFoundException;
import java.io.IOException;
import java.io.InputStream;
import java.io.InterruptedIOException;
import java.net.SocketTimeoutException;
import java.util.Objects;
import org.apache.hadoop.fs.FSExceptionMessages;
import org.apache.hadoop.fs.FSInputStream;
import org.apache.hadoop.fs.FileSystem;

/**
 * Reads one object by ranged GETs.
 *
 * <p>Opens nothing before the first read. A GET reaches to the end of the block and a little on, so that a map which
 * reads one split fetches little that it does not use. A seek costs a new GET, unless it goes forward a little. A body
 * that ends or breaks too early is opened again at the position, with pauses; the tries begin anew after each byte that
 * came. An object that is replaced meanwhile ends the read with an error instead of a mixture. Reads at a given
 * position use a GET of their own and leave the stream's position alone.
 */
final class ObjStoreInputStream extends FSInputStream {
  private static final long SKIPPED_BYTES = 128 << 10;

  /** Fetched after the end of a block: the rest of a record, and a reader's buffer. */
  private static final long BEYOND_BYTES = 256 << 10;

  private final SwiftClient client;
  private final String container;
  private final String key;
  private final long length;
  private final String etag;
  private final Settings settings;
  private final FileSystem.Statistics statistics;

  private long position;
  private long opened;
  private long fetched;
  private Http.Reply reply;
  private boolean closed;

  ObjStoreInputStream(
      SwiftClient client, String container, StoredObject object, Settings settings, FileSystem.Statistics statistics) {
    this.client = client;
    this.container = container;
    this.key = object.key();
    this.length = object.bytes();
    this.etag = object.kind() == StoredObject.Kind.DYNAMIC || object.etag().isEmpty() ? null : object.etag();
    this.settings = settings;
    this.statistics = statistics;
  }

  @Override
  public synchronized long getPos() {
    return position;
  }

  @Override
  public synchronized void seek(long target) throws IOException {
    requireOpen();
    if (target < 0) {
      throw new EOFException(FSExceptionMessages.NEGATIVE_SEEK + " " + target);
    }
    if (target > length) {
      throw new EOFException(FSExceptionMessages.CANNOT_SEEK_PAST_EOF + ": " + target + " of " + length + " bytes");
    }
    position = target;
  }

  @Override
  public boolean seekToNewSource(long target) {
    return false;
  }

  @Override
  public synchronized int available() throws IOException {
    requireOpen();
    return (int) Math.min(Integer.MAX_VALUE, length - position);
  }

  @Override
  public synchronized int read() throws IOException {
    byte[] one = new byte[1];
    int n = read(one, 0, 1);
    return n < 0 ? -1 : one[0] & 0xff;
  }

  @Override
  public synchronized int read(byte[] buffer, int offset, int wanted) throws IOException {
    requireOpen();
    Objects.checkFromIndexSize(offset, wanted, buffer.length);
    if (wanted == 0) {
      return 0;
    }
    if (position >= length) {
      return -1;
    }
    int most = (int) Math.min(wanted, length - position);
    long begun = System.nanoTime();
    for (int attempt = 0; ; attempt++) {
      try {
        InputStream body = bodyAtPosition();
        int n = body.read(buffer, offset, (int) Math.min(most, fetched - position));
        if (n > 0) {
          position += n;
          opened = position;
          count(n);
          return n;
        }
        throw new EOFException("the body ended " + (fetched - position) + " bytes early");
      } catch (InterruptedIOException stopped) {
        drop();
        if (!(stopped instanceof SocketTimeoutException)) {
          throw stopped;
        }
        giveUpAfter(attempt, begun, stopped);
      } catch (ObjStoreException | FileNotFoundException decided) {
        drop();
        throw decided;
      } catch (IOException broken) {
        drop();
        giveUpAfter(attempt, begun, broken);
      }
      Http.pause(attempt, 0);
    }
  }

  @Override
  public int read(long at, byte[] buffer, int offset, int wanted) throws IOException {
    requireOpen();
    validatePositionedReadArgs(at, buffer, offset, wanted);
    if (wanted == 0) {
      return 0;
    }
    if (at >= length) {
      return -1;
    }
    int most = (int) Math.min(wanted, length - at);
    long begun = System.nanoTime();
    for (int attempt = 0; ; attempt++) {
      try (Http.Reply range = client.get(container, key, at, at + most)) {
        unchanged(range);
        int n = range.body().readNBytes(buffer, offset, most);
        if (n > 0) {
          count(n);
          return n;
        }
        throw new EOFException("the body was empty");
      } catch (ObjStoreException | FileNotFoundException decided) {
        throw decided;
      } catch (IOException broken) {
        giveUpAfter(attempt, begun, broken);
      }
      Http.pause(attempt, 0);
    }
  }

  @Override
  public synchronized void close() {
    closed = true;
    drop();
  }

  private InputStream bodyAtPosition() throws IOException {
    if (reply != null && (opened != position || position == fetched)) {
      long ahead = position - opened;
      if (ahead < 0 || ahead > SKIPPED_BYTES || position >= fetched) {
        drop();
      } else {
        reply.body().skipNBytes(ahead);
        opened = position;
      }
    }
    if (reply == null) {
      fetched = Math.min(length, (position / settings.blockBytes() + 1) * settings.blockBytes() + BEYOND_BYTES);
      reply = client.get(container, key, position, fetched);
      opened = position;
      unchanged(reply);
    }
    return reply.body();
  }

  /** Compares the version of the object with that of its HEAD. The ETag of a dynamic large object tells nothing. */
  private void unchanged(Http.Reply next) throws IOException {
    String tag = next.header("ETag");
    if (etag != null && tag != null && !SwiftClient.unquoted(tag).equals(etag)) {
      throw new ObjStoreException(
          ObjStoreException.Code.REFUSED, client.url(container, key) + " was replaced while it was being read");
    }
  }

  private void giveUpAfter(int attempt, long begun, IOException broken) throws IOException {
    if (Http.lastTry(settings, attempt, begun)) {
      throw new ObjStoreException(
          ObjStoreException.Code.UNREACHABLE,
          "reading " + client.url(container, key) + " of " + length + " bytes broke off " + (attempt + 1)
              + " times at byte " + position + ": " + broken.getMessage(),
          broken);
    }
  }

  /** Leaves the GET; what is left of its body is read only when it is little. */
  private void drop() {
    if (reply != null) {
      if (fetched - opened > SKIPPED_BYTES) {
        reply.abort();
      } else {
        reply.close();
      }
      reply = null;
    }
  }

  private void count(int bytes) {
    if (statistics != null) {
      statistics.incrementBytesRead(bytes);
    }
  }

  private void requireOpen() throws IOException {
    if (closed) {
      throw new IOException(FSExceptionMessages.STREAM_IS_CLOSED + ": " + client.url(container, key));
    }
  }
}
