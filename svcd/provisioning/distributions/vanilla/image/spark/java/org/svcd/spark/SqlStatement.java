package org.svcd.spark;

import java.util.ArrayList;
import java.util.List;

/**
 * One statement of a script. It knows nothing of Spark.
 *
 * @param line of the script on which the statement begins, from 1
 * @param text without the semicolon and without white space around it
 */
record SqlStatement(int line, String text) {

  /** A script that cannot be split. */
  static final class Unfinished extends RuntimeException {
    private static final long serialVersionUID = 1L;

    Unfinished(int line, String what) {
      super("line " + line + ": " + what);
    }
  }

  /**
   * The statements of a script. A semicolon in a string, in a quoted name or in a comment ends none. A statement of
   * comments only is left out. Comments in slashes and asterisks may hold others, as in Spark.
   */
  static List<SqlStatement> of(String script) {
    return new Splitter(script).statements();
  }

  private static final class Splitter {
    private final String script;
    private final List<SqlStatement> found = new ArrayList<>();
    private final StringBuilder text = new StringBuilder();
    private int at;
    private int line = 1;
    private int begun;

    Splitter(String script) {
      this.script = script;
    }

    List<SqlStatement> statements() {
      while (at < script.length()) {
        char here = script.charAt(at);
        if (script.startsWith("--", at)) {
          skipLine();
        } else if (script.startsWith("/*", at)) {
          copyComment();
        } else if (here == '\'' || here == '"' || here == '`') {
          copyQuoted(here);
        } else if (here == ';') {
          at++;
          end();
        } else {
          begin(here);
          copy(1);
        }
      }
      end();
      return found;
    }

    private void begin(char here) {
      if (begun == 0 && !Character.isWhitespace(here)) {
        begun = line;
      }
    }

    private void end() {
      if (begun != 0) {
        found.add(new SqlStatement(begun, text.toString().strip()));
      }
      text.setLength(0);
      begun = 0;
    }

    private void copy(int count) {
      for (int end = Math.min(script.length(), at + count); at < end; at++) {
        char here = script.charAt(at);
        line += here == '\n' ? 1 : 0;
        // line breaks before the statement are left out: Spark counts its lines from its first one
        if (begun != 0) {
          text.append(here);
        }
      }
    }

    private void skipLine() {
      int end = script.indexOf('\n', at);
      at = end < 0 ? script.length() : end;
    }

    /** A hint stays. Any other comment is a blank and its line breaks: it holds no variable. */
    private void copyComment() {
      boolean isHint = script.startsWith("/*+", at);
      int kept = text.length();
      int opened = line;
      int depth = 0;
      do {
        if (at >= script.length()) {
          throw new Unfinished(opened, "the comment that begins here has no end");
        }
        boolean opens = script.startsWith("/*", at);
        boolean closes = script.startsWith("*/", at);
        depth += opens ? 1 : closes ? -1 : 0;
        copy(opens || closes ? 2 : 1);
      } while (depth > 0);
      if (begun != 0 && !isHint) {
        text.setLength(kept);
        text.append(" ").append("\n".repeat(line - opened));
      }
    }

    private void copyQuoted(char quote) {
      int opened = line;
      boolean raw = quote != '`' && isRaw();
      begin(quote);
      copy(1);
      while (at < script.length() && script.charAt(at) != quote) {
        boolean escapes = !raw && quote != '`' && script.charAt(at) == '\\';
        copy(escapes ? 2 : 1);
      }
      if (at >= script.length()) {
        throw new Unfinished(opened, "the text in " + quote + " that begins here has no end");
      }
      copy(1);
    }

    /** Whether the quotation mark begins a raw string, r'...', in which a backslash is a character. */
    private boolean isRaw() {
      if (at == 0 || Character.toLowerCase(script.charAt(at - 1)) != 'r') {
        return false;
      }
      return at == 1 || !Character.isJavaIdentifierPart(script.charAt(at - 2));
    }
  }
}
