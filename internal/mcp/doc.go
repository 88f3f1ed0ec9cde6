// Package mcp puts the gate in front of the tools of an MCP server, and serves
// Gatehouse itself as an MCP server.
//
// # The proxy
//
// A [Proxy] connects one client and one server. It parses JSON-RPC with its own
// strict parser, and refuses frames that break its rules. It passes every other
// frame byte for byte, with these exceptions:
//
//   - tools/call becomes an action of the connector mcp:NAME. Its operation is
//     the tool, its change the arguments. No byte of the client's request
//     reaches the server. Two kinds of calls do not become actions: the proxy
//     itself answers calls of gatehouse_wait and gatehouse_answer, and it passes
//     on calls of a tool in [Config].ReadOnly whose pinned definition has
//     readOnlyHint.
//   - tools/list is answered with the pinned definitions and the tools
//     gatehouse_wait and gatehouse_answer. In protocol 2025-11-25, each pinned
//     definition also says whether its calls can be tasks.
//   - initialize and server/discover keep the pinned instructions, and offer
//     the gate's own tasks instead of the server's. The gate answers tasks/…,
//     except for the tasks of a modern server, for calls without an action.
//   - The cancellation of a call that the gate holds is not passed on. The
//     server's progress gets the token of each client that waits for the call.
//   - Over HTTP, a frame of several lines becomes one line. For a client without
//     a session, a [Front] replaces ids and progress tokens in both directions.
//
// An approved action is executed by whichever proxy of the same principal and
// name leases its push. The proxy sends the stored arguments and reports the
// outcome as the receipt. So execution does not depend on the client: a client
// that gives up, cancels or dies does not change the action.
//
// # Failure rules
//
//   - The gate does not answer the proposal: the gate may have stored it, and
//     the result says so. The next equal call joins the stored action. The gate
//     answers the proposal, and no later request: the result says that the
//     outcome is not known.
//   - The proxy dies after a call was sent: the lease expires. The server dies:
//     the proxy reports at once that the outcome is ambiguous. In both cases a
//     call of class A is sent again; any other call becomes unknown and is not
//     sent again.
//   - The lease ends, for example because the gate cannot be reached: a call that
//     is not sent yet is not sent. The late result of a call that was sent is
//     stored as evidence.
//   - The server of a proxy on stdio ends: the proxy answers each open call with
//     what is known of its action, and ends.
//   - A tool's definition, the instructions, or how the server is started or
//     reached differ from their pin: the tool is quarantined. Its pinned text is
//     served, and its calls are refused, even approved ones, until a person
//     approves the difference.
//   - An equal call (principal, upstream, tool, arguments) joins the open
//     action. An outcome that the proxy has not passed to a client yet answers
//     the next equal call, except that of a task, which the client can read
//     again. A call with an unknown outcome blocks equal calls
//     until an operator resolves it.
//   - A frame that breaks a rule is refused: a request gets an error, anything
//     else is dropped and logged.
package mcp
