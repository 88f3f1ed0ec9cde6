// Package stepfunctions carries changes out at AWS Step Functions: it starts
// executions of standard workflows, and answers tasks that wait with a token.
//
// # Once
//
// An execution is started under the action's key as its name. The same name with the
// same input is the same execution, for 90 days after it has ended. Workflows of
// type EXPRESS have no such names, and are refused.
//
// A task token takes one answer. A second one is refused with TaskTimedOut, which also
// means that the task's time was over: the execution's history tells which, since
// each answer carries the action's key.
//
// # Requests
//
// The AWS SDK signs; the requests are sent by this project's own client, once each. The
// SDK's clients repeat a request by themselves, also after a connection was lost.
package stepfunctions
