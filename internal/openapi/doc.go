// Package openapi derives the operations of an http connector from an OpenAPI document
// (https://spec.openapis.org/oas/), 3.0 to 3.2, for gatehouse connector import.
//
// A document is untrusted. So its servers are ignored, references to other documents are refused, and
// the content of a document can raise the level of an operation but never lower it. Size and
// depth are limited.
//
// Only writing operations are derived. The class is A if the operation declares a header for an
// idempotency key, B if it declares If-Match, If-Unmodified-Since or the response 412, and else
// C. The level is the highest of these:
//
//   - POST, PUT and PATCH: 3; DELETE: 4
//   - DELETE and PUT without a parameter in the path, and a body whose schema has the type array, itself or within
//     allOf, or items without a type: 5. A body without a type must be an object
//   - a word such as refund or role in operationId, path or tags: 4
//   - a name with the word bulk, such as bulk_update: 5
//   - a property that is an amount, a price, a total or a currency: 3; ceilings can use it
//   - x-gatehouse-risk
//
// Proposals are stored, so passwords are kept out of them. An optional property that is a password is left out, and so
// is an operation that needs one. A required header that a security scheme or its name makes a credential is not part
// of the change: the connector's auth or headers must send it.
package openapi
