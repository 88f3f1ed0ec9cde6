//go:build !race

package cli

const race = false
