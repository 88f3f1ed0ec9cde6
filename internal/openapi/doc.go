// Package openapi derives operations of an http connector from an OpenAPI document
// (https://spec.openapis.org/oas/), 3.0 to 3.2, for gatehouse connector import.
//
// A document is somebody else's text. So servers is ignored, references to other documents
// are refused, and what a document says can raise the level of an operation and never
// lower it. Sizes and depths are bounded.
//
// Only what writes is derived. Its class is A where a header for an idempotency key is
// declared, B where If-Match, If-Unmodified-Since or the answer 412 is, else C. Its level
// is the highest of these:
//
//   - POST, PUT and PATCH: 3; DELETE: 4
//   - DELETE and PUT without a parameter in the path, and a body that is an array: 5
//   - a word such as refund or role in operationId, path or tags: 4
//   - a property that is an amount, a price, a total or a currency: 3, and a place for
//     ceilings
//   - x-gatehouse-risk
package openapi
