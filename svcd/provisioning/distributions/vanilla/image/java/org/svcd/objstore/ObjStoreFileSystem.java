package org.svcd.objstore;

import java.io.FileNotFoundException;
import java.io.IOException;
import java.net.URI;
import java.util.ArrayList;
import java.util.Collection;
import java.util.Collections;
import java.util.EnumSet;
import java.util.LinkedHashMap;
import java.util.List;
import java.util.Map;
import java.util.NoSuchElementException;
import org.apache.hadoop.conf.Configuration;
import org.apache.hadoop.fs.BufferedFSInputStream;
import org.apache.hadoop.fs.CreateFlag;
import org.apache.hadoop.fs.FSDataInputStream;
import org.apache.hadoop.fs.FSDataOutputStream;
import org.apache.hadoop.fs.FileAlreadyExistsException;
import org.apache.hadoop.fs.FileStatus;
import org.apache.hadoop.fs.FileSystem;
import org.apache.hadoop.fs.LocatedFileStatus;
import org.apache.hadoop.fs.ParentNotDirectoryException;
import org.apache.hadoop.fs.Path;
import org.apache.hadoop.fs.PathFilter;
import org.apache.hadoop.fs.PathIsNotEmptyDirectoryException;
import org.apache.hadoop.fs.RemoteIterator;
import org.apache.hadoop.fs.permission.FsPermission;
import org.apache.hadoop.security.UserGroupInformation;
import org.apache.hadoop.util.Progressable;
import org.slf4j.Logger;
import org.slf4j.LoggerFactory;

/**
 * OpenStack Swift as a Hadoop file system: {@code objstore://<container>/<path>}, so that the nodes of a cluster read
 * and write the object store in parallel. README.md in this folder tells the configuration keys and the limits.
 *
 * <p>What Hadoop sees: an object is a file that appears whole when its writer closes it. A directory exists when an
 * object of type {@code application/directory} marks it, or when any object's name lies below it. A plain object wins
 * over a directory of the same name. Deleting the last object of an unmarked directory makes it vanish.
 *
 * <p>Thread-safe, as Hadoop caches one instance per JVM, container and user. Source for the expected behaviour:
 * Hadoop's "FileSystem specification".
 */
public final class ObjStoreFileSystem extends FileSystem {
  /** The scheme of the URLs. */
  public static final String SCHEME = "objstore";

  private static final Logger LOG = LoggerFactory.getLogger(ObjStoreFileSystem.class);
  private static final FsPermission FILE = new FsPermission((short) 0666);
  private static final FsPermission DIRECTORY = new FsPermission((short) 0777);
  /**
   * Listed objects below this size are taken for plain without asking, when a whole tree is moved or deleted. Of a
   * large object that is so small after all the content would be moved, and the segments would stay behind.
   */
  private static final long SURELY_PLAIN_BYTES = 1 << 20;

  private URI uri;
  private String container;
  private String owner;
  private Path workingDirectory;
  private Settings settings;
  private SwiftClient client;
  private Parallel parallel;

  @Override
  public String getScheme() {
    return SCHEME;
  }

  /** Reads the configuration; sends nothing. */
  @Override
  public void initialize(URI name, Configuration conf) throws IOException {
    super.initialize(name, conf);
    setConf(conf);
    if (name.getAuthority() == null) {
      throw misconfigured(name + " names no container; write objstore://<container>/<path>");
    }
    Collection<String> suffixes = conf.getTrimmedStringCollection("fs.objstore.container.suffix");
    boolean unset = conf.get("fs.objstore.container.suffix") == null;
    uri = URI.create(SCHEME + "://" + name.getRawAuthority());
    container = Names.container(name.getAuthority(), unset ? List.of("svc") : suffixes);
    owner = UserGroupInformation.getCurrentUser().getShortUserName();
    workingDirectory = new Path(SCHEME, name.getAuthority(), "/");
    settings = Settings.of(conf);
    client = new SwiftClient(new Http(settings), Identity.of(Credentials.of(conf, container)));
    parallel = new Parallel(settings.threads());
  }

  @Override
  public void close() throws IOException {
    if (parallel != null) {
      parallel.close();
    }
    super.close();
  }

  @Override
  public URI getUri() {
    return uri;
  }

  /** No delegation tokens: each node authenticates with the job's own credentials. */
  @Override
  public String getCanonicalServiceName() {
    return null;
  }

  @Override
  public Path getWorkingDirectory() {
    return workingDirectory;
  }

  /** Pig hands every file system the job's working directory, also when that is one of HDFS: such a one is ignored. */
  @Override
  public void setWorkingDirectory(Path directory) {
    String scheme = directory.toUri().getScheme();
    if (scheme == null || scheme.equals(getScheme())) {
      workingDirectory = makeQualified(directory);
    }
  }

  @Override
  @Deprecated
  public long getDefaultBlockSize() {
    return settings.blockBytes();
  }

  @Override
  public long getDefaultBlockSize(Path path) {
    return settings.blockBytes();
  }

  // ---- reading

  @Override
  public FSDataInputStream open(Path path, int bufferSize) throws IOException {
    String key = key(path);
    StoredObject object = key.isEmpty() ? null : client.head(container, key);
    if (object == null || object.directory()) {
      requireFile(path);
      throw ObjStoreException.notFound(makeQualified(path) + " does not exist");
    }
    statistics.incrementReadOps(1);
    ObjStoreInputStream in = new ObjStoreInputStream(client, container, object, settings, statistics);
    return new FSDataInputStream(new BufferedFSInputStream(in, Math.max(bufferSize, 4 << 10)));
  }

  @Override
  public FileStatus getFileStatus(Path path) throws IOException {
    statistics.incrementReadOps(1);
    String key = key(path);
    if (key.isEmpty()) {
      if (!client.containerExists(container)) {
        throw client.noContainer(container);
      }
      return directory("", 0);
    }
    StoredObject object = client.head(container, key);
    if (object != null) {
      return status(object);
    }
    StoredObject first = firstBelow(key);
    if (first == null) {
      throw ObjStoreException.notFound(makeQualified(path) + " does not exist");
    }
    return directory(key, first.key().equals(Names.below(key)) ? first.modifiedMs() : 0);
  }

  @Override
  public FileStatus[] listStatus(Path path) throws IOException {
    statistics.incrementReadOps(1);
    String key = key(path);
    String prefix = Names.below(key);
    Map<String, FileStatus> found = new LinkedHashMap<>();
    List<StoredObject> empty = new ArrayList<>();
    boolean seen = false;
    SwiftClient.Page page = client.list(container, prefix, "", true, 0);
    while (page.last() != null) {
      seen = true;
      for (String name : page.subdirectories()) {
        String child = Names.trimmed(name);
        if (listed(child) && name.length() == child.length() + 1) {
          found.putIfAbsent(child, directory(child, 0));
        }
      }
      for (StoredObject object : page.objects()) {
        if (object.key().equals(prefix) || !listed(Names.trimmed(object.key()))) {
          continue;
        }
        found.put(Names.trimmed(object.key()), status(object));
        if (maybeDynamic(object)) {
          empty.add(object);
        }
      }
      page = client.list(container, prefix, page.last(), true, 0);
    }
    for (StoredObject object : parallel.map(empty, this::known)) {
      found.put(object.key(), status(object));
    }
    if (!seen && !key.isEmpty()) {
      FileStatus self = getFileStatus(path);
      return self.isFile() ? new FileStatus[] {self} : new FileStatus[0];
    }
    return found.values().toArray(new FileStatus[0]);
  }

  /** A recursive listing is one flat listing of the store, page by page, whatever the depth of the tree. */
  @Override
  public RemoteIterator<LocatedFileStatus> listFiles(Path path, boolean recursive) throws IOException {
    if (!recursive) {
      return super.listFiles(path, false);
    }
    FileStatus self = getFileStatus(path);
    return new FlatListing(Names.below(key(path)), self.isFile() ? self : null);
  }

  /** As everywhere, but a container that does not exist is told, where Hadoop would only say "matches no files". */
  @Override
  public FileStatus[] globStatus(Path pattern) throws IOException {
    return told(super.globStatus(pattern));
  }

  @Override
  public FileStatus[] globStatus(Path pattern, PathFilter filter) throws IOException {
    return told(super.globStatus(pattern, filter));
  }

  private FileStatus[] told(FileStatus[] found) throws IOException {
    if ((found == null || found.length == 0) && !client.containerExists(container)) {
      throw client.noContainer(container);
    }
    return found;
  }

  // ---- writing

  @Override
  public FSDataOutputStream create(
      Path path,
      FsPermission permission,
      boolean overwrite,
      int bufferSize,
      short replication,
      long blockSize,
      Progressable progress)
      throws IOException {
    String key = key(path);
    if (key.isEmpty()) {
      throw new FileAlreadyExistsException(uri + " is a container");
    }
    StoredObject there = client.head(container, key);
    if (there == null ? firstBelow(key) != null : there.directory()) {
      throw new FileAlreadyExistsException(makeQualified(path) + " is a directory");
    }
    if (there != null && !overwrite) {
      throw new FileAlreadyExistsException(makeQualified(path) + " already exists");
    }
    statistics.incrementWriteOps(1);
    StoredObject large = there == null || there.kind() == StoredObject.Kind.PLAIN ? null : there;
    return new FSDataOutputStream(
        new ObjStoreOutputStream(client, settings, container, key, !overwrite, large, progress, statistics), null);
  }

  @Override
  public FSDataOutputStream createNonRecursive(
      Path path,
      FsPermission permission,
      EnumSet<CreateFlag> flags,
      int bufferSize,
      short replication,
      long blockSize,
      Progressable progress)
      throws IOException {
    Path parent = makeQualified(path).getParent();
    if (parent != null && !getFileStatus(parent).isDirectory()) {
      throw new ParentNotDirectoryException(parent + " is a file");
    }
    boolean overwrite = flags.contains(CreateFlag.OVERWRITE);
    return create(path, permission, overwrite, bufferSize, replication, blockSize, progress);
  }

  @Override
  public FSDataOutputStream append(Path path, int bufferSize, Progressable progress) throws IOException {
    throw new UnsupportedOperationException("an object store cannot append to " + makeQualified(path));
  }

  /** Makes the container if need be, and a marker for the directory and every missing one on the way. */
  @Override
  public boolean mkdirs(Path path, FsPermission permission) throws IOException {
    List<String> missing = new ArrayList<>();
    boolean reached = false;
    for (String key = key(path); !reached && !key.isEmpty(); key = parent(key)) {
      StoredObject object = client.head(container, key);
      if (object != null && !object.directory()) {
        throw new FileAlreadyExistsException(new Path(workingDirectory, "/" + key) + " is a file");
      }
      reached = object != null || !missing.isEmpty() && firstBelowOrNull(key) != null;
      if (!reached) {
        missing.add(0, key);
      }
    }
    if (!reached && !client.containerExists(container)) {
      client.createContainer(container);
    }
    for (String key : missing) {
      Http.Body none = Http.Body.of(new byte[0]);
      client.put(container, key, none, StoredObject.DIRECTORY_TYPE, null, true);
    }
    statistics.incrementWriteOps(1);
    return true;
  }

  /** Deletes objects with the segments of large ones. The root is never deleted. */
  @Override
  public boolean delete(Path path, boolean recursive) throws IOException {
    String key = key(path);
    if (key.isEmpty()) {
      LOG.warn("Refused to delete the container {}", uri);
      return false;
    }
    statistics.incrementWriteOps(1);
    StoredObject self = client.head(container, key);
    if (self != null && !self.directory()) {
      client.deleteWhole(container, self);
      return true;
    }
    String prefix = Names.below(key);
    boolean found = self != null;
    SwiftClient.Page page = client.list(container, prefix, "", false, recursive ? 0 : 2);
    while (page.last() != null) {
      found = true;
      if (!recursive && page.objects().stream().anyMatch(o -> !o.key().equals(prefix))) {
        throw new PathIsNotEmptyDirectoryException(makeQualified(path).toString());
      }
      parallel.map(page.objects(), this::deleteListed);
      page = client.list(container, prefix, page.last(), false, 0);
    }
    if (self != null) {
      client.deletePlain(container, key);
    }
    return found;
  }

  /**
   * Copies inside the store, then deletes the sources; of large objects only manifests are copied. When a copy fails
   * the copies made so far are removed and the sources stay as they were.
   */
  @Override
  public boolean rename(Path source, Path target) throws IOException {
    String from = key(source);
    String to = key(target);
    if (from.isEmpty()) {
      return false;
    }
    StoredObject self = client.head(container, from);
    boolean directory = self == null ? firstBelowOrNull(from) != null : self.directory();
    if (self == null && !directory) {
      return false;
    }
    FileStatus there = to.isEmpty() ? directory("", 0) : statusOrNull(target);
    if (there != null && there.isDirectory() && !from.equals(to)) {
      to = Names.below(to) + from.substring(from.lastIndexOf('/') + 1);
      there = statusOrNull(new Path(workingDirectory, "/" + to));
    }
    if (from.equals(to)) {
      return !directory;
    }
    if (there != null || to.startsWith(Names.below(from)) || inFile(to)) {
      return false;
    }
    statistics.incrementWriteOps(1);
    List<StoredObject> objects = new ArrayList<>();
    if (self != null) {
      objects.add(self);
    }
    if (directory) {
      objects.addAll(tree(from));
    }
    move(objects, from, to);
    return true;
  }

  private void move(List<StoredObject> objects, String from, String to) throws IOException {
    List<StoredObject> sources = parallel.map(objects, this::known);
    List<String> copied = Collections.synchronizedList(new ArrayList<>());
    try {
      parallel.map(
          sources,
          object -> {
            String name = to + object.key().substring(from.length());
            client.copy(container, object, name);
            return copied.add(name);
          });
    } catch (IOException failed) {
      try {
        parallel.map(copied, name -> client.deletePlain(container, name));
      } catch (IOException left) {
        failed.addSuppressed(left);
      }
      throw failed;
    }
    parallel.map(sources, object -> client.deletePlain(container, object.key()));
  }

  /**
   * Moves everything below {@code from} to the same names below {@code to}, many objects at once. What has such a name
   * there is replaced; in a conflict of a file and a directory {@code from} wins. It may be repeated after a failure.
   */
  void moveBelow(Path from, Path to, Progressable progress) throws IOException {
    String source = Names.below(key(from));
    String target = Names.below(key(to));
    List<StoredObject> occupied = Collections.synchronizedList(new ArrayList<>());
    statistics.incrementWriteOps(1);
    SwiftClient.Page page = client.list(container, source, "", false, 0);
    while (page.last() != null) {
      parallel.map(
          page.objects(),
          object -> {
            progress.progress();
            return moved(object, target + object.key().substring(source.length())) || occupied.add(object);
          });
      page = client.list(container, source, page.last(), false, 0);
    }
    for (StoredObject object : occupied) { // a delete has requests at once of its own
      String name = target + object.key().substring(source.length());
      delete(path(Names.trimmed(name)), true);
      moved(object, name);
    }
  }

  /** False: nothing is done, because the name is that of a large object, or of a directory where a file is moved. */
  private boolean moved(StoredObject listed, String to) throws IOException {
    StoredObject object = known(listed);
    String name = Names.trimmed(to);
    StoredObject there = client.head(container, name);
    boolean same = there != null && there.directory() == object.directory();
    if (there != null && !same) {
      return false;
    }
    if (same && there.kind() != StoredObject.Kind.PLAIN && !there.etag().equals(object.etag())) {
      return false; // its segments have to go; an equal one is a copy that a failed call has made
    }
    if (!object.directory()) {
      client.copy(container, object, name);
    } else if (there == null) {
      client.put(container, name, Http.Body.of(new byte[0]), StoredObject.DIRECTORY_TYPE, null, true);
    }
    client.deletePlain(container, object.key());
    return true;
  }

  // ---- what the store knows

  private List<StoredObject> tree(String key) throws IOException {
    List<StoredObject> objects = new ArrayList<>();
    SwiftClient.Page page = client.list(container, Names.below(key), "", false, 0);
    while (page.last() != null) {
      objects.addAll(page.objects());
      page = client.list(container, Names.below(key), page.last(), false, 0);
    }
    return objects;
  }

  private StoredObject firstBelowOrNull(String key) throws IOException {
    try {
      return firstBelow(key);
    } catch (FileNotFoundException noContainer) {
      return null;
    }
  }

  private StoredObject firstBelow(String key) throws IOException {
    List<StoredObject> found = client.list(container, Names.below(key), "", false, 1).objects();
    return found.isEmpty() ? null : found.get(0);
  }

  /** The object with its kind, asked from the store where a listing could not tell; itself when it is gone. */
  private StoredObject known(StoredObject object) throws IOException {
    boolean small = object.bytes() > 0 && object.bytes() < SURELY_PLAIN_BYTES;
    if (object.kind() != StoredObject.Kind.UNKNOWN || object.directory() || small) {
      return object;
    }
    StoredObject asked = client.head(container, object.key());
    return asked == null ? object : asked;
  }

  private boolean deleteListed(StoredObject object) throws IOException {
    return client.deleteWhole(container, known(object));
  }

  /** Listings show dynamic large objects with no bytes; taken as they are, a job would skip them without a word. */
  private static boolean maybeDynamic(StoredObject object) {
    return object.bytes() == 0 && !object.directory() && object.kind() == StoredObject.Kind.UNKNOWN;
  }

  /** Whether a directory on the way to this name is a file. */
  private boolean inFile(String key) throws IOException {
    String parent = parent(key);
    if (parent.isEmpty()) {
      return false;
    }
    StoredObject object = client.head(container, parent);
    return object != null && !object.directory();
  }

  private FileStatus statusOrNull(Path path) throws IOException {
    try {
      return getFileStatus(path);
    } catch (FileNotFoundException none) {
      return null;
    }
  }

  private void requireFile(Path path) throws IOException {
    if (getFileStatus(path).isDirectory()) {
      throw new FileNotFoundException(makeQualified(path) + " is a directory");
    }
  }

  private boolean listed(String key) {
    if (Names.reachable(key)) {
      return true;
    }
    LOG.debug("Left an object out that no path can name: {}", key);
    return false;
  }

  private FileStatus status(StoredObject object) {
    if (object.directory()) {
      return directory(Names.trimmed(object.key()), object.modifiedMs());
    }
    Path path = path(object.key());
    long block = settings.blockBytes();
    return new FileStatus(object.bytes(), false, 1, block, object.modifiedMs(), 0, FILE, owner, owner, path);
  }

  private FileStatus directory(String key, long modifiedMs) {
    return new FileStatus(0, true, 1, 0, modifiedMs, 0, DIRECTORY, owner, owner, path(key));
  }

  private Path path(String key) {
    return new Path(SCHEME, uri.getAuthority(), "/" + key);
  }

  /** Hadoop compares authorities without case and shares the instance; containers are told apart by case. */
  private String key(Path path) throws IOException {
    Path whole = makeQualified(path);
    if (!uri.getAuthority().equals(whole.toUri().getAuthority())) {
      throw misconfigured(
          whole + " and " + uri + " differ by case only; set fs.objstore.impl.disable.cache=true to use both");
    }
    return Names.key(whole);
  }

  private static String parent(String key) {
    int slash = key.lastIndexOf('/');
    return slash < 0 ? "" : key.substring(0, slash);
  }

  private static ObjStoreException misconfigured(String detail) {
    return new ObjStoreException(ObjStoreException.Code.MISCONFIGURED, detail);
  }

  /** All files below a prefix, or the one file itself. */
  private final class FlatListing implements RemoteIterator<LocatedFileStatus> {
    private final String prefix;
    private List<FileStatus> ready = new ArrayList<>();
    private int next;
    private String marker = "";

    FlatListing(String prefix, FileStatus only) {
      this.prefix = prefix;
      if (only != null) {
        ready.add(only);
        marker = null;
      }
    }

    @Override
    public boolean hasNext() throws IOException {
      while (next >= ready.size() && marker != null) {
        SwiftClient.Page page = client.list(container, prefix, marker, false, 0);
        marker = page.last();
        List<StoredObject> objects = new ArrayList<>();
        for (StoredObject object : page.objects()) {
          if (!object.directory() && listed(object.key())) {
            objects.add(object);
          }
        }
        next = 0;
        ready = new ArrayList<>();
        for (StoredObject object : parallel.map(objects, o -> maybeDynamic(o) ? known(o) : o)) {
          ready.add(status(object));
        }
      }
      return next < ready.size();
    }

    @Override
    public LocatedFileStatus next() throws IOException {
      if (!hasNext()) {
        throw new NoSuchElementException();
      }
      FileStatus status = ready.get(next++);
      return new LocatedFileStatus(status, getFileBlockLocations(status, 0, status.getLen()));
    }
  }
}
