// Package mcp puts the gate in front of the tools of an MCP server, and serves
// Gatehouse itself as one.
//
// # The proxy
//
// A [Proxy] stands between one client and one server. It reads JSON-RPC with its own
// strict parser, and passes every frame byte for byte, except these:
//
//   - tools/call becomes an action of the connector mcp:NAME, whose operation is the
//     tool and whose change is the arguments. No byte of the client's request reaches
//     the server.
//   - tools/list is answered with the pinned definitions and the tool gatehouse_wait.
//   - initialize and server/discover keep the pinned instructions, and offer no tasks
//     for tools/call.
//
// An approved action is carried out by whichever proxy of the same principal and name
// leases its push. The proxy sends the stored arguments, and reports the outcome as the
// receipt. So execution does not depend on the client: a client that gives up, cancels
// or dies changes nothing about the action.
//
// # Failure rules
//
//   - The gate does not answer: nothing is sent, and the result says so.
//   - The proxy or the server dies after a call was sent: the lease runs out, and the
//     outcome is unknown. It is not sent again.
//   - A tool's definition, the instructions or the command line differ from their pin:
//     the tool is quarantined. Its old text is served, its calls are refused, also those
//     that were approved before, until a person approves the difference.
//   - An equal call (principal, upstream, tool, arguments) joins the action that is open.
//     An outcome that no client received is the answer to the next equal call. A call
//     whose outcome is unknown blocks equal calls until an operator resolves it.
//   - A frame that breaks a rule is refused: a request gets an error, anything else is
//     dropped and logged.
package mcp
