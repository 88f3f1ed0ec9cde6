// Package llm calls models, without streaming, and computes the cost of an answer.
//
// # The protocols
//
// It implements two protocols: OpenAI's chat completions, which many servers offer
// ([platform.openai.com/docs/api-reference/chat/create]), and Anthropic's Messages API, version
// 2023-06-01 ([platform.claude.com/docs/en/api/messages]). A call of Complete sends one request,
// without retries. [Error.Retryable] says whether a retry may succeed, as the documentation of
// the two protocols classifies the statuses.
//
// # Tokens and cost
//
// InputTokens counts all input tokens, cached or not. OpenAI's prompt_tokens includes cached
// tokens. Anthropic's input_tokens, cache_creation_input_tokens and cache_read_input_tokens are
// disjoint and are added up ([platform.claude.com/docs/en/build-with-claude/prompt-caching]). No
// request writes to a cache, so the price of plain input never underestimates the cost.
// OutputTokens includes hidden reasoning.
//
// The tokens of an unusable answer count too: Complete then returns them together with the
// error. If the answer of a request was lost, only the provider knows its cost.
//
// # Secrets and addresses
//
// A key occurs in one header of a request and nowhere else: errors do not contain it, and it is
// removed from the provider's messages. Redirects and proxies are not used. Internal addresses
// are refused unless the configuration allows them; the check applies to the dialed address.
//
// [platform.openai.com/docs/api-reference/chat/create]: https://platform.openai.com/docs/api-reference/chat/create
// [platform.claude.com/docs/en/api/messages]: https://platform.claude.com/docs/en/api/messages
// [platform.claude.com/docs/en/build-with-claude/prompt-caching]:
// https://platform.claude.com/docs/en/build-with-claude/prompt-caching
package llm
