package org.svcd.objstore;

import java.io.IOException;
import java.net.URI;
import java.net.URISyntaxException;
import org.apache.hadoop.conf.Configuration;
import org.apache.hadoop.fs.DelegateToFileSystem;

/** The same file system for Hadoop's other interface, FileContext, which parts of YARN use. */
public final class ObjStoreFs extends DelegateToFileSystem {
  /** Called by Hadoop with the URL of a container. */
  public ObjStoreFs(URI uri, Configuration conf) throws IOException, URISyntaxException {
    super(uri, new ObjStoreFileSystem(), conf, ObjStoreFileSystem.SCHEME, false);
  }

  @Override
  public int getUriDefaultPort() {
    return -1;
  }
}
