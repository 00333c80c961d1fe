package org.svcd.objstore;

import java.io.Closeable;
import java.io.IOException;
import java.io.InterruptedIOException;
import java.util.ArrayList;
import java.util.List;
import java.util.concurrent.Callable;
import java.util.concurrent.ExecutionException;
import java.util.concurrent.Future;
import java.util.concurrent.LinkedBlockingQueue;
import java.util.concurrent.ThreadPoolExecutor;
import java.util.concurrent.TimeUnit;
import java.util.concurrent.atomic.AtomicInteger;

/** Many requests at once, with a limit. Its threads are daemons and end when idle. */
final class Parallel implements Closeable {
  private static final int BATCH = 1_000;
  private static final AtomicInteger NUMBER = new AtomicInteger();

  private final ThreadPoolExecutor pool;

  Parallel(int threads) {
    pool =
        new ThreadPoolExecutor(
            threads,
            threads,
            5,
            TimeUnit.SECONDS,
            new LinkedBlockingQueue<>(),
            task -> {
              Thread thread = new Thread(task, "objstore-" + NUMBER.incrementAndGet());
              thread.setDaemon(true);
              return thread;
            });
    pool.allowCoreThreadTimeOut(true);
  }

  /** One call that may fail. */
  interface Call<T, R> {
    R apply(T item) throws IOException;
  }

  /** The results in the order of the items. The first failure is thrown after all calls of its batch have ended. */
  <T, R> List<R> map(List<T> items, Call<T, R> call) throws IOException {
    List<R> results = new ArrayList<>(items.size());
    if (items.size() == 1) {
      results.add(call.apply(items.get(0)));
      return results;
    }
    for (int from = 0; from < items.size(); from += BATCH) {
      List<Callable<R>> batch = new ArrayList<>();
      for (T item : items.subList(from, Math.min(items.size(), from + BATCH))) {
        batch.add(() -> call.apply(item));
      }
      try {
        for (Future<R> done : pool.invokeAll(batch)) {
          results.add(done.get());
        }
      } catch (InterruptedException stopped) {
        Thread.currentThread().interrupt();
        throw new InterruptedIOException("objstore: interrupted while waiting for parallel requests");
      } catch (ExecutionException failed) {
        if (failed.getCause() instanceof IOException expected) {
          throw expected;
        }
        throw new IllegalStateException(failed.getCause());
      }
    }
    return results;
  }

  @Override
  public void close() {
    pool.shutdownNow();
  }
}
