package org.svcd.spark;

import jakarta.servlet.Filter;
import jakarta.servlet.FilterChain;
import jakarta.servlet.FilterConfig;
import jakarta.servlet.ServletException;
import jakarta.servlet.ServletRequest;
import jakarta.servlet.ServletResponse;
import jakarta.servlet.http.HttpServletRequest;
import jakarta.servlet.http.HttpServletResponse;
import java.io.IOException;
import java.util.Collections;
import org.svcd.hadoop.KnownHosts;

/** The check of {@link KnownHosts} for the pages of Spark, whose Jetty is newer than that of Hadoop. */
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
    HttpServletResponse answer = (HttpServletResponse) response;
    answer.setStatus(HttpServletResponse.SC_FORBIDDEN);
    answer.setContentType("text/plain;charset=utf-8");
    answer.getWriter().write(refusal);
  }
}
