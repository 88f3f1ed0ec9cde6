// Package llm asks models, without streaming, and says what an answer cost.
//
// # The protocols
//
// Two are spoken: OpenAI's chat completions, which many servers offer
// ([platform.openai.com/docs/api-reference/chat/create]), and Anthropic's
// Messages API, version 2023-06-01
// ([platform.claude.com/docs/en/api/messages]). One Complete is one request; it
// is never sent again here. Whether another attempt may help is told by
// [Error.Retryable], as both documentations classify their statuses.
//
// # What is counted
//
// InputTokens is all that went in, whether or not a cache had it: OpenAI's
// prompt_tokens holds its cached tokens already; of Anthropic's, input_tokens,
// cache_creation_input_tokens and cache_read_input_tokens are disjoint and are
// added up ([platform.claude.com/docs/en/build-with-claude/prompt-caching]). No
// request here asks for a cache to be written, so a cost at the price of plain
// input never undercounts. OutputTokens includes what a model thought and did
// not show.
//
// An answer that came counts, even one that is of no use: then Complete returns
// what it cost beside the error. What a request cost whose answer was lost on
// its way is not known to anybody but the provider.
//
// # Secrets and addresses
//
// A key stands in one header of a request and nowhere else: not in an error,
// and what a provider says is shown without it. Redirects are not followed, no
// proxy is asked, and an address inside the network is refused unless the
// configuration allows it; what is checked is the address that is dialed.
//
// [platform.openai.com/docs/api-reference/chat/create]: https://platform.openai.com/docs/api-reference/chat/create
// [platform.claude.com/docs/en/api/messages]: https://platform.claude.com/docs/en/api/messages
// [platform.claude.com/docs/en/build-with-claude/prompt-caching]: https://platform.claude.com/docs/en/build-with-claude/prompt-caching
package llm
