// Package llmtest is a fake provider of models, for tests and examples: no model is behind it, and
// its answers say so. It speaks two protocols as their references document them, and refuses
// requests that they forbid or do not define: OpenAI's chat completions under /v1/chat/completions
// (https://platform.openai.com/docs/api-reference/chat/create) and Anthropic's Messages API under
// /v1/messages (https://platform.claude.com/docs/en/api/messages). Streaming, tools, images and
// caching are not supported.
//
// The function that is passed to [New] makes the answers.
package llmtest
