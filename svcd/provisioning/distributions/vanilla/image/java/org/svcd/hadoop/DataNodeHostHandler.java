package org.svcd.hadoop;

import io.netty.buffer.ByteBuf;
import io.netty.buffer.Unpooled;
import io.netty.channel.ChannelFutureListener;
import io.netty.channel.ChannelHandler;
import io.netty.channel.ChannelHandlerContext;
import io.netty.channel.ChannelInboundHandlerAdapter;
import io.netty.handler.codec.http.DefaultFullHttpResponse;
import io.netty.handler.codec.http.FullHttpResponse;
import io.netty.handler.codec.http.HttpHeaderNames;
import io.netty.handler.codec.http.HttpRequest;
import io.netty.handler.codec.http.HttpResponseStatus;
import io.netty.handler.codec.http.HttpVersion;
import io.netty.util.ReferenceCountUtil;
import java.net.InetSocketAddress;
import java.nio.charset.StandardCharsets;
import org.apache.hadoop.conf.Configuration;

/**
 * The check of {@link KnownHosts} for the DataNode, whose server is Netty
 * ({@code dfs.datanode.httpserver.filter.handlers}).
 */
@ChannelHandler.Sharable
public final class DataNodeHostHandler extends ChannelInboundHandlerAdapter {
  /** The DataNode makes a handler from what {@link #initializeState} returns. There is no state. */
  public static final class State {}

  public DataNodeHostHandler(State state) {}

  public static State initializeState(Configuration configuration) {
    return new State();
  }

  @Override
  public void channelRead(ChannelHandlerContext context, Object message) {
    String refusal = message instanceof HttpRequest ? refusal(context, (HttpRequest) message) : null;
    if (refusal == null) {
      context.fireChannelRead(message);
      return;
    }
    ReferenceCountUtil.release(message);
    ByteBuf text = Unpooled.copiedBuffer(refusal, StandardCharsets.UTF_8);
    FullHttpResponse answer = new DefaultFullHttpResponse(HttpVersion.HTTP_1_1, HttpResponseStatus.FORBIDDEN, text);
    answer.headers().set(HttpHeaderNames.CONTENT_TYPE, "text/plain;charset=utf-8");
    answer.headers().set(HttpHeaderNames.CONTENT_LENGTH, text.readableBytes());
    answer.headers().set(HttpHeaderNames.CONNECTION, "close");
    context.writeAndFlush(answer).addListener(ChannelFutureListener.CLOSE);
  }

  private static String refusal(ChannelHandlerContext context, HttpRequest request) {
    InetSocketAddress reached = (InetSocketAddress) context.channel().localAddress();
    return KnownHosts.refusal(
        request.headers().getAll(HttpHeaderNames.HOST), reached.getAddress().getHostAddress());
  }
}
