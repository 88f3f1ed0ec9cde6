// Package form reads the YAML files that people write (policies, workflows)
// strictly, and says of everything that is wrong where it stands. It takes no
// anchors, tags or merge keys, no key twice, and no scalar that YAML reads as
// something else than what stands there.
package form
