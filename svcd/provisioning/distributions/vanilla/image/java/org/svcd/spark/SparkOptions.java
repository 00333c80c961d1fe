package org.svcd.spark;

import java.io.IOException;
import java.io.Reader;
import java.nio.charset.StandardCharsets;
import java.nio.file.Files;
import java.nio.file.Path;
import java.util.Map;
import java.util.Properties;
import java.util.TreeMap;
import org.apache.hadoop.conf.Configuration;
import org.apache.hadoop.security.alias.CredentialProvider;
import org.apache.hadoop.security.alias.CredentialProviderFactory;

/**
 * The options of one application: those of the machine's spark-defaults.conf, then those of the action.
 *
 * <p>Passwords of the object store go into a credential provider in the job's folder in HDFS, which only the job's user
 * may read and svcd removes after the job. As options they would stay in caches of the node managers.
 */
final class SparkOptions {
  private static final String HADOOP = "spark.hadoop.";
  private static final String STORE = HADOOP + "fs.objstore.";
  private static final String PROVIDERS = CredentialProviderFactory.CREDENTIAL_PROVIDER_PATH;
  /** The beginning of a value that is only white space, which Oozie would trim. */
  private static final String WHITE_SPACE = "${env.SVCD_UNSET:-";
  /**
   * Rounds of hashing that write or read one secret, and the fewest that Java allows. Its default of 200,000 takes 0.2 s
   * in each Java virtual machine of the job, and protects nothing: the store has the password that all of Hadoop knows.
   */
  private static final String ROUNDS = "10000";

  private SparkOptions() {}

  static Properties of(Configuration action, Configuration conf, SparkHome home, String tags) throws IOException {
    Properties options = defaults();
    Map<String, String> secrets = new TreeMap<>();
    for (Map.Entry<String, String> each : action) {
      String name = each.getKey();
      String raw = action.getRaw(name);
      String value = raw.startsWith(WHITE_SPACE) ? action.get(name) : raw;
      if (isSecret(name)) {
        secrets.put(name.substring(HADOOP.length()), value);
      } else if (name.startsWith("spark.")) {
        options.setProperty(name, value);
      }
    }
    if (!secrets.isEmpty()) {
      String provider = stored(secrets, action.get("svcd.spark.folder"), conf);
      options.merge(HADOOP + PROVIDERS, provider, (given, ours) -> given + "," + ours);
    }
    options.putIfAbsent("spark.yarn.jars", "local:" + home.folder() + "/jars/*");
    options.merge("spark.yarn.tags", tags, (given, ours) -> given + "," + ours);
    options.setProperty("spark.master", "yarn");
    options.setProperty("spark.submit.deployMode", "cluster");
    options.setProperty("spark.yarn.submit.waitAppCompletion", "false");
    return options;
  }

  private static boolean isSecret(String name) {
    return name.startsWith(STORE) && (name.endsWith(".password") || name.endsWith(".credential.secret"));
  }

  private static Properties defaults() throws IOException {
    Properties found = new Properties();
    Path file = Path.of(System.getenv("HADOOP_CONF_DIR"), "spark-defaults.conf");
    if (Files.exists(file)) {
      try (Reader in = Files.newBufferedReader(file, StandardCharsets.UTF_8)) {
        found.load(in);
      }
    }
    return found;
  }

  /** Writes the secrets into a file below {@code folder}, an hdfs URL, and returns the provider's path. */
  private static String stored(Map<String, String> secrets, String folder, Configuration conf) throws IOException {
    String path = "jceks://" + folder.replaceFirst("://", "@") + "/credentials.jceks";
    Configuration own = new Configuration(conf);
    own.set(PROVIDERS, path);
    System.setProperty("jdk.jceks.iterationCount", ROUNDS); // this virtual machine submits, and has no other store
    CredentialProvider provider = CredentialProviderFactory.getProviders(own).get(0);
    for (Map.Entry<String, String> each : secrets.entrySet()) {
      if (provider.getCredentialEntry(each.getKey()) == null) {
        provider.createCredentialEntry(each.getKey(), each.getValue().toCharArray());
      }
    }
    provider.flush();
    return path;
  }
}
