// Package stepfunctions carries out changes in AWS Step Functions: it starts executions of standard
// workflows, and answers tasks that wait with a token.
//
// # Exactly one effect
//
// The name of an execution is the action's key. AWS starts no second execution with the same name
// until 90 days after the first has ended. Workflows of type EXPRESS have no unique names, and are
// refused.
//
// A task token accepts one answer. AWS refuses a second one with TaskTimedOut, which also means
// that the task had timed out. The execution's history distinguishes the two, because each answer
// contains the action's key.
//
// # Requests
//
// The AWS SDK signs the requests, and this project's own client sends each of them once. The SDK's
// clients would repeat a request by themselves, even after a lost connection.
package stepfunctions
