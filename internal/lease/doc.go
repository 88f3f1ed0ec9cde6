// Package lease divides leases between those who wait for them, and bounds how many
// are held at a time. internal/dispatch leases pushes with it, internal/runs steps.
//
// [Fair] shares by weight, between tenants and below them. [Cursor] lets looks at a
// list of queues go around. [Slots] bounds what is in progress in one process;
// [Room] applies a bound that holds over all processes.
package lease
