package org.svcd.objstore;

import java.io.FileNotFoundException;
import java.io.IOException;

/**
 * A failure of the object store or of Keystone, with a code word that survives in logs and job diagnostics.
 *
 * <p>Every message starts with {@code objstore: CODE: }; the daemon classifies a failed job by that prefix. No message
 * ever holds a password or a token. A missing object is a {@link FileNotFoundException} instead, because Hadoop decides
 * by that class, with the same prefix ({@link #notFound}).
 */
public final class ObjStoreException extends IOException {
  private static final long serialVersionUID = 1L;

  /** The closed list of code words. */
  public enum Code {
    /** Keystone or the object store refused the user; the credentials of the data source are wrong. */
    UNAUTHORIZED,
    /** The job's application credential has ended. */
    EXPIRED,
    /** The user is known but may not do this. */
    FORBIDDEN,
    /** The container or the object does not exist. */
    NOT_FOUND,
    /** Nothing answered in time: connection refused, unknown host, time-out, cut connection. */
    UNREACHABLE,
    /** The peer answered 5xx (or an answer that makes no sense) to every try. */
    SERVER_ERROR,
    /** The peer refused the request itself (any other 4xx: quota, name too long, changed meanwhile). */
    REFUSED,
    /** A configuration key is missing or wrong; no request was sent. */
    MISCONFIGURED
  }

  private final Code code;

  ObjStoreException(Code code, String detail) {
    this(code, detail, null);
  }

  ObjStoreException(Code code, String detail, Throwable cause) {
    super(message(code, detail), cause);
    this.code = code;
  }

  /** The code word of this failure. */
  public Code code() {
    return code;
  }

  /** The exception for something that does not exist. */
  static FileNotFoundException notFound(String detail) {
    return new FileNotFoundException(message(Code.NOT_FOUND, detail));
  }

  private static String message(Code code, String detail) {
    return "objstore: " + code + ": " + detail;
  }
}
