package org.svcd.spark;

import java.io.IOException;
import java.io.InputStream;
import java.net.URI;
import java.nio.charset.StandardCharsets;
import java.util.List;
import java.util.regex.Pattern;
import org.apache.hadoop.conf.Configuration;
import org.apache.hadoop.fs.FileSystem;
import org.apache.hadoop.fs.Path;
import org.apache.spark.sql.Dataset;
import org.apache.spark.sql.Row;
import org.apache.spark.sql.SparkSession;
import scala.Option;
import scala.Tuple2;

/**
 * Main class of a job whose program is a script in SQL: runs its statements one after the other.
 *
 * <p>The argument is the URL of the script. Each option {@code spark.svcd.variable.NAME} becomes the variable
 * {@code NAME}, for which the script writes {@code ${NAME}}: Spark replaces it before it parses a statement. The rows of
 * a query are printed as a table.
 */
public final class RunSql {
  private static final String VARIABLE = "spark.svcd.variable.";
  private static final Pattern PLACE = Pattern.compile("\\bline (\\d{1,6})(?=,? pos )");
  private static final int MOST_ROWS = 1_000;
  private static final int MOST_CHARACTERS = 500;
  private static final int MOST_BYTES = 16 << 20;

  private RunSql() {}

  public static void main(String[] arguments) throws IOException {
    SparkSession session = SparkSession.builder().getOrCreate();
    for (Tuple2<String, String> each : session.sparkContext().getConf().getAllWithPrefix(VARIABLE)) {
      session.conf().set(each._1(), each._2());
    }
    List<SqlStatement> statements = statements(arguments[0], session.sparkContext().hadoopConfiguration());
    for (int number = 1; number <= statements.size(); number++) {
      run(session, statements.get(number - 1), number);
    }
    session.stop();
  }

  private static List<SqlStatement> statements(String url, Configuration conf) throws IOException {
    Path path = new Path(URI.create(url));
    FileSystem files = path.getFileSystem(conf);
    long length = files.getFileStatus(path).getLen();
    if (length > MOST_BYTES) {
      throw new SqlFailure("the script has " + length + " bytes, more than " + MOST_BYTES, null);
    }
    try (InputStream in = files.open(path)) {
      String script = new String(in.readAllBytes(), StandardCharsets.UTF_8);
      return SqlStatement.of(script.startsWith("\ufeff") ? script.substring(1) : script);
    } catch (SqlStatement.Unfinished error) {
      throw new SqlFailure(error.getMessage(), null);
    }
  }

  private static void run(SparkSession session, SqlStatement statement, int number) {
    String place = "statement " + number + ", line " + statement.line() + ": ";
    String missing = SqlVariables.missing(statement.text(), name -> {
      Option<String> value = session.conf().getOption(name);
      return value.isEmpty() ? null : value.get();
    });
    if (!missing.isEmpty() && isReplacing(session)) {
      throw new SqlFailure(place + "the variable " + missing + " has no value: give the job a parameter of this name, or"
          + " the data source; a $ that begins no variable is written \\u0024 in a string", null);
    }
    try {
      Dataset<Row> rows = session.sql(statement.text());
      if (rows.schema().nonEmpty()) {
        System.out.println("-- statement " + number + ", line " + statement.line());
        rows.show(MOST_ROWS, MOST_CHARACTERS);
      }
    } catch (Exception error) { // Scala throws checked exceptions that Java does not see here
      throw new SqlFailure(place + reason(error, statement.line()), error);
    }
  }

  private static boolean isReplacing(SparkSession session) {
    return !"false".equalsIgnoreCase(session.conf().get("spark.sql.variable.substitute", "true"));
  }

  /** The first line of the message, with lines of the script; Spark counts from the statement's first line. */
  private static String reason(Exception error, int begins) {
    String text = error.getMessage() == null ? error.toString() : error.getMessage().strip();
    String first = text.lines().findFirst().orElse("");
    String words = PLACE.matcher(first).replaceAll(found -> "line " + (Integer.parseInt(found.group(1)) + begins - 1));
    return error.getClass().getSimpleName() + ": " + words;
  }

  /** Why a script ended. YARN shows its text as the reason of the application. */
  private static final class SqlFailure extends RuntimeException {
    private static final long serialVersionUID = 1L;

    SqlFailure(String text, Exception cause) {
      super(text, cause);
    }
  }
}
