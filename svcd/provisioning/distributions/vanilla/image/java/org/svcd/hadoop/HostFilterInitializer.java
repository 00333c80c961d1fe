package org.svcd.hadoop;

import java.util.Collections;
import org.apache.hadoop.conf.Configuration;
import org.apache.hadoop.http.FilterContainer;
import org.apache.hadoop.http.FilterInitializer;
import org.apache.hadoop.yarn.server.security.http.RMAuthenticationFilterInitializer;

/** Puts {@link HostFilter} before all pages of a daemon ({@code hadoop.http.filter.initializers}). */
public final class HostFilterInitializer extends FilterInitializer {
  @Override
  public void initFilter(FilterContainer container, Configuration configuration) {
    container.addGlobalFilter("svcd-host", HostFilter.class.getName(), Collections.emptyMap());
    // The ResourceManager adds this one by itself only where the list of initializers is the default.
    if ("resourcemanager".equals(System.getProperty("svcd.daemon"))) {
      new RMAuthenticationFilterInitializer().initFilter(container, configuration);
    }
  }
}
