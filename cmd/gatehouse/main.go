// Command gatehouse is the one binary: the server, and the commands that speak
// to it.
package main

import (
	"os"

	"github.com/gatehouse-dev/gatehouse/internal/cli"
)

func main() { os.Exit(cli.Main()) }
