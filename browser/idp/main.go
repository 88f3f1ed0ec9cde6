// Command idp is the OpenID provider of the browser tests. It reads its clients and people from
// standard input, prints its issuer, and serves on loopback until its input ends.
package main

import (
	"context"
	"encoding/json"
	"fmt"
	"io"
	"net"
	"net/http"
	"os"

	"github.com/gatehouse-dev/gatehouse/internal/signin/idptest"
)

func main() {
	if err := run(os.Stdin, os.Stdout); err != nil {
		fmt.Fprintln(os.Stderr, "idp:", err)
		os.Exit(1)
	}
}

func run(in io.Reader, out io.Writer) error {
	d := json.NewDecoder(in)
	var config struct {
		Clients []struct {
			ID, Secret string
			Callbacks  []string
		}
		People []idptest.Person
	}
	if err := d.Decode(&config); err != nil {
		return err
	}
	l, err := (&net.ListenConfig{}).Listen(context.Background(), "tcp", "127.0.0.1:0")
	if err != nil {
		return err
	}
	issuer := "http://" + l.Addr().String()
	p, err := idptest.New(issuer)
	if err != nil {
		return err
	}
	for _, c := range config.Clients {
		p.Register(c.ID, c.Secret, c.Callbacks...)
	}
	for _, person := range config.People {
		p.Join(person)
	}
	failed := make(chan error, 1)
	go func() { failed <- http.Serve(l, p) }() //nolint:gosec // a test server on loopback
	ended := make(chan error, 1)
	go func() {
		_, err := io.Copy(io.Discard, in)
		ended <- err
	}()
	if err := json.NewEncoder(out).Encode(map[string]string{"issuer": issuer}); err != nil {
		return err
	}
	select {
	case err := <-failed:
		return err
	case err := <-ended:
		return err
	}
}
