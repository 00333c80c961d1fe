package org.svcd.spark;

import java.io.IOException;
import java.net.URISyntaxException;
import java.nio.file.DirectoryStream;
import java.nio.file.Files;
import java.nio.file.Path;
import java.util.TreeSet;

/**
 * Spark's folder in the software tree of this machine.
 *
 * @param folder {@code PREFIX/spark}
 */
record SparkHome(Path folder) {

  /** Of the tree that holds the jar of this class, PREFIX/hadoop/lib/svcd-hadoop-helpers.jar. */
  static SparkHome ofThisTree() throws SparkFailure, URISyntaxException {
    Path jar = Path.of(SparkHome.class.getProtectionDomain().getCodeSource().getLocation().toURI());
    Path prefix = jar.getParent().getParent().getParent();
    Path folder = prefix.resolve("spark");
    if (!Files.isDirectory(folder.resolve("jars"))) {
      throw new SparkFailure(
          "the cluster's software image has no Spark (" + folder + "): make an image with Spark (svcd image build"
              + " vanilla " + prefix + ") and a new cluster of it");
    }
    return new SparkHome(folder);
  }

  /** All jars, sorted by name: java/bin/java has an archive of class data for this class path. */
  String classPath() throws IOException {
    return String.join(":", files("jars", "*.jar", ""));
  }

  /** The archives of Spark's Python side, as YARN finds them on each machine. */
  String pythonArchives() throws IOException {
    return String.join(",", files("python/lib", "*.zip", "local:"));
  }

  private Iterable<String> files(String below, String pattern, String prefix) throws IOException {
    TreeSet<String> sorted = new TreeSet<>();
    try (DirectoryStream<Path> all = Files.newDirectoryStream(folder.resolve(below), pattern)) {
      all.forEach(each -> sorted.add(prefix + each));
    }
    return sorted;
  }
}
