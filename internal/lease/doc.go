// Package lease divides leases among queues, and bounds how many are held at a time.
// internal/dispatch leases pushes with it, internal/runs steps.
//
// [Fair] shares by weight, between tenants and below them. [Cursor] cycles through a
// list of queues. [Slots] bounds the work in progress in one process; [Room] applies a
// bound over all processes.
package lease
