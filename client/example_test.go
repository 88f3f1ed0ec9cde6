package client_test

import (
	"context"
	"fmt"
	"log"
	"net/http"
	"net/http/httptest"
	"time"

	"github.com/gatehouse-dev/gatehouse"
	"github.com/gatehouse-dev/gatehouse/client"
)

func ExampleClient() {
	server := exampleServer()
	defer server.Close()

	c, err := client.New(server.URL, "gth_example")
	if err != nil {
		log.Fatal(err)
	}
	a, _, err := c.Propose(context.Background(), &gatehouse.Proposal{
		ActionType: "price_change", Connector: "shop", Operation: "update",
		Target:         gatehouse.Target{EntityType: "item", EntityRef: "SKU-1042", Version: "7"},
		ProposedChange: gatehouse.MustJSON(map[string]string{"price": "12.50"}),
	})
	if err != nil {
		log.Fatal(err)
	}
	a, err = c.WaitAction(context.Background(), a.ID, 10*time.Minute, gatehouse.UntilDecided)
	fmt.Println(a.Status, err)
	// Output: approved <nil>
}

// exampleServer is a server whose reviewer approves at once.
func exampleServer() *httptest.Server {
	return httptest.NewServer(http.HandlerFunc(func(w http.ResponseWriter, r *http.Request) {
		w.Header().Set("Content-Type", "application/json")
		status := `"pending"`
		if r.Method == http.MethodGet {
			status = `"approved"`
		}
		fmt.Fprintf(w, `{"id": "act_1", "status": %s}`, status)
	}))
}
