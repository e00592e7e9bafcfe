// Package provider publishes an MCP server into a slot of a broker.
//
// A provider dials the broker, so it works behind a firewall and needs no port
// of its own. Three transports carry its JSON-RPC messages:
//
//   - [Direct]: one WebSocket per slot, ws://host/provider/<slot>. It never
//     reconnects by itself.
//   - [Multiplex]: one of many slots on the shared WebSocket of a [Tunnel],
//     ws://host/providers. The tunnel reconnects and announces every slot again.
//   - [Loopback]: a slot of a broker that lives in the same process.
//
// A URL and its transport are one decision: the broker closes a socket that
// uses the wrong pair with code 1008.
//
// # Publishing a server
//
// [Server] is a small MCP server that offers tools over any [Transport]:
//
//	srv := provider.NewServer("demo", "1.0.0")
//	srv.AddTool(provider.Tool{Name: "hello"},
//		func(ctx context.Context, call *provider.Call) (*provider.Result, error) {
//			return provider.Text("hello"), nil
//		})
//	err := srv.Serve(ctx, func(ev provider.Events) provider.Transport {
//		return provider.NewDirect("ws://127.0.0.1:3000/provider/demo", ev)
//	})
//
// Any other MCP implementation can be connected through [Transport] and
// [Events] instead.
//
// # Refusals
//
// The broker completes the WebSocket handshake before it decides about a slot.
// A refused Direct therefore opens, and then reports a [*CloseError] with code
// 1008 through Events.Error, followed by Events.Close. A refused Multiplex
// reports a [*TunnelError] and its socket stays open for the other slots. Only
// a missing or wrong provider credential, or a malformed path, refuses the
// handshake itself: see [*HandshakeError].
//
// # Limits
//
//	frames queued while a socket is not open   64, the oldest is dropped
//	incoming frame                             4 MiB (WithReadLimit), over it close 1009
//	frames waiting for the Message callback    256 frames or 16 MiB; then a socket is not
//	                                           read any more, and a Loopback is closed
//	tool calls running in one Serve            64, further ones are answered -32000
//	dial, including the handshake              10 s
//	write of one frame                         10 s, then the socket is dropped
//	close handshake                            2 s, then the socket is dropped
//	tunnel reconnect delay                     1 s doubling to 30 s, times 0.5 to 1.0
package provider
