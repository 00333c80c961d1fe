package org.svcd.hadoop;

import java.io.IOException;
import java.util.Collections;
import javax.servlet.Filter;
import javax.servlet.FilterChain;
import javax.servlet.FilterConfig;
import javax.servlet.ServletException;
import javax.servlet.ServletRequest;
import javax.servlet.ServletResponse;
import javax.servlet.http.HttpServletRequest;
import javax.servlet.http.HttpServletResponse;

/** The check of {@link KnownHosts} for Jetty: in Hadoop's daemons by {@link HostFilterInitializer}, in Oozie by web.xml. */
public final class HostFilter implements Filter {
  @Override
  public void init(FilterConfig config) {}

  @Override
  public void destroy() {}

  @Override
  public void doFilter(ServletRequest request, ServletResponse response, FilterChain chain)
      throws IOException, ServletException {
    HttpServletRequest asked = (HttpServletRequest) request;
    String refusal = KnownHosts.refusal(Collections.list(asked.getHeaders("Host")), asked.getLocalAddr());
    if (refusal == null) {
      chain.doFilter(request, response);
      return;
    }
    // no sendError: Oozie replaces its text by a page
    HttpServletResponse answer = (HttpServletResponse) response;
    answer.setStatus(HttpServletResponse.SC_FORBIDDEN);
    answer.setContentType("text/plain;charset=utf-8");
    answer.getWriter().write(refusal);
  }
}
