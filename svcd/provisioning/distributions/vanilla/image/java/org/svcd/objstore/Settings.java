package org.svcd.objstore;

import java.io.File;
import org.apache.hadoop.conf.Configuration;

/**
 * Sizes, limits and time-outs, read once from the configuration.
 *
 * @param connectTimeoutMs to open a connection
 * @param readTimeoutMs longest silence of a peer, in both directions
 * @param retries further tries after the first, for what may pass by itself
 * @param patienceMs no further try begins later than this after the first one
 * @param partBytes objects larger than this are stored as large objects with segments of this size
 * @param blockBytes what Hadoop takes for the block size, hence the size of an input split
 * @param threads parallel requests of one listing, delete or rename
 * @param bufferDir where the part being written is kept until it is sent
 * @param largeObjects {@code auto}, {@code slo} or {@code dlo}
 */
record Settings(
    int connectTimeoutMs,
    int readTimeoutMs,
    int retries,
    int patienceMs,
    long partBytes,
    long blockBytes,
    int threads,
    File bufferDir,
    String largeObjects) {

  static final String PREFIX = "fs.objstore.";

  static Settings of(Configuration conf) {
    return new Settings(
        Math.max(1, conf.getInt(PREFIX + "connect.timeout.ms", 10_000)),
        Math.max(1, conf.getInt(PREFIX + "read.timeout.ms", 60_000)),
        Math.max(0, conf.getInt(PREFIX + "retries", 12)),
        Math.max(0, conf.getInt(PREFIX + "patience.ms", 120_000)),
        Math.max(1, conf.getLongBytes(PREFIX + "part.bytes", 64L << 20)),
        Math.max(1, conf.getLongBytes(PREFIX + "block.bytes", 32L << 20)),
        Math.max(1, conf.getInt(PREFIX + "threads", 8)),
        new File(conf.getTrimmed(PREFIX + "buffer.dir", System.getProperty("java.io.tmpdir"))),
        conf.getTrimmed(PREFIX + "large.objects", "auto"));
  }
}
