// Package form parses the YAML files that people write (policies, workflows) strictly, and
// reports the position of every problem. It refuses anchors, tags, merge keys, duplicate keys,
// and scalars that YAML interprets as something other than their text.
package form
