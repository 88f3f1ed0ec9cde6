// Package docs embeds the pages of the documentation, which the console shows.
package docs

import "embed"

// Pages are the pages in Markdown, by their paths below docs.
//
//go:embed *.md connectors/*.md proof/*.md
var Pages embed.FS
