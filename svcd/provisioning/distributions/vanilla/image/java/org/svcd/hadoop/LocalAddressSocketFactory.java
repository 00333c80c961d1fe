package org.svcd.hadoop;

import java.io.IOException;
import java.net.InetAddress;
import java.net.InetSocketAddress;
import java.net.Socket;
import java.net.StandardProtocolFamily;
import java.nio.channels.SocketChannel;
import javax.net.SocketFactory;
import org.apache.hadoop.conf.Configurable;
import org.apache.hadoop.conf.Configuration;

/**
 * Hadoop RPC socket factory for machines that share one host and own a loopback address each
 * ({@code hadoop.rpc.socket.factory.class.default}).
 *
 * <p>Every outgoing RPC connection starts from the address in the system property {@code svcd.address}. Without it
 * all DataNodes of one host come in as 127.0.0.1 and push each other out of the NameNode's list. Without the
 * property it behaves as the standard factory.
 */
public class LocalAddressSocketFactory extends SocketFactory implements Configurable {
  private final String own = System.getProperty("svcd.address", "");
  private Configuration configuration;

  @Override
  public void setConf(Configuration configuration) {
    this.configuration = configuration;
  }

  @Override
  public Configuration getConf() {
    return configuration;
  }

  @Override
  public Socket createSocket() throws IOException {
    // of a channel: Hadoop's time-outs work on these only
    SocketChannel channel = SocketChannel.open(StandardProtocolFamily.INET);
    if (!own.isEmpty()) {
      try {
        channel.bind(new InetSocketAddress(own, 0));
      } catch (IOException e) {
        channel.close();
        throw new IOException("cannot bind to svcd.address=" + own + ": " + e.getMessage(), e);
      }
    }
    return channel.socket();
  }

  @Override
  public Socket createSocket(String host, int port) throws IOException {
    return connected(new InetSocketAddress(host, port));
  }

  @Override
  public Socket createSocket(InetAddress host, int port) throws IOException {
    return connected(new InetSocketAddress(host, port));
  }

  @Override
  public Socket createSocket(String host, int port, InetAddress local, int localPort) throws IOException {
    return createSocket(host, port);
  }

  @Override
  public Socket createSocket(InetAddress host, int port, InetAddress local, int localPort) throws IOException {
    return createSocket(host, port);
  }

  private Socket connected(InetSocketAddress target) throws IOException {
    Socket socket = createSocket();
    try {
      socket.connect(target);
    } catch (IOException e) {
      socket.close();
      throw e;
    }
    return socket;
  }

  /** Equal to every other one: Hadoop shares its RPC clients between equal factories. */
  @Override
  public boolean equals(Object other) {
    return other instanceof LocalAddressSocketFactory;
  }

  @Override
  public int hashCode() {
    return LocalAddressSocketFactory.class.getName().hashCode();
  }
}
