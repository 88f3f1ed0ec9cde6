package demo

import (
	"context"
	"database/sql"
	"encoding/json"
	"errors"
	"io"
	"net"
	"net/http"
	"sync"
	"time"
)

// The warehouse is a target system with an HTTP interface to the shop's ledger. It loses the first
// answer of each operation: it commits the change and then closes the connection.
const (
	warehouseConnector = "warehouse"
	opReceive          = "receive" // class A: recognizes the idempotency key of an earlier call
	opCredit           = "credit"  // class C: each call makes another credit
)

const (
	receiveSQL = `UPDATE items SET stock = stock + ?, version = version + 1 WHERE sku = ?`
	creditSQL  = `INSERT INTO credits (customer_id, amount, currency, reason) VALUES (?, ?, ?, ?)`
)

// Warehouse is the running target system.
type Warehouse struct {
	URL    string
	db     *sql.DB
	server *http.Server
	done   chan struct{}

	mu    sync.Mutex
	calls map[string]int  // by operation
	known map[string]bool // idempotency keys
}

// openWarehouse serves on a free loopback port until Close.
func openWarehouse(ctx context.Context, ledger string) (*Warehouse, error) {
	db, err := Open(ledger)
	if err != nil {
		return nil, err
	}
	listener, err := (&net.ListenConfig{}).Listen(ctx, "tcp", "127.0.0.1:0")
	if err != nil {
		return nil, errors.Join(err, db.Close())
	}
	w := &Warehouse{
		URL: "http://" + listener.Addr().String(), db: db, done: make(chan struct{}),
		calls: map[string]int{}, known: map[string]bool{},
	}
	mux := http.NewServeMux()
	mux.HandleFunc("POST /receive/{ref}", w.receive)
	mux.HandleFunc("POST /credit/{ref}", w.credit)
	w.server = &http.Server{Handler: mux, ReadHeaderTimeout: 10 * time.Second}
	go func() {
		defer close(w.done)
		_ = w.server.Serve(listener) // ends with Close
	}()
	return w, nil
}

// Close stops the server.
func (w *Warehouse) Close() error {
	err := w.server.Close()
	<-w.done
	return errors.Join(err, w.db.Close())
}

// Calls returns the number of calls of an operation.
func (w *Warehouse) Calls(operation string) int {
	w.mu.Lock()
	defer w.mu.Unlock()
	return w.calls[operation]
}

func (w *Warehouse) receive(out http.ResponseWriter, r *http.Request) {
	var body struct {
		Quantity int `json:"quantity"`
	}
	if !read(out, r, &body) {
		return
	}
	w.change(out, r, opReceive, r.Header.Get("Idempotency-Key"), receiveSQL, body.Quantity, r.PathValue("ref"))
}

func (w *Warehouse) credit(out http.ResponseWriter, r *http.Request) {
	var body struct{ Amount, Currency, Reason string }
	if !read(out, r, &body) {
		return
	}
	w.change(out, r, opCredit, "", creditSQL, r.PathValue("ref"), body.Amount, body.Currency, body.Reason)
}

func read(out http.ResponseWriter, r *http.Request, into any) bool {
	b, err := io.ReadAll(io.LimitReader(r.Body, 1<<16))
	if err == nil {
		err = json.Unmarshal(b, into)
	}
	if err != nil {
		http.Error(out, "not the expected JSON", http.StatusBadRequest)
	}
	return err == nil
}

// change makes one change unless its key is known. It drops the answer to the first call of each operation.
func (w *Warehouse) change(out http.ResponseWriter, r *http.Request, operation, key, statement string, args ...any) {
	w.mu.Lock()
	defer w.mu.Unlock()
	w.calls[operation]++
	if key == "" || !w.known[key] {
		res, err := w.db.ExecContext(r.Context(), statement, args...)
		if err != nil {
			http.Error(out, err.Error(), http.StatusUnprocessableEntity)
			return
		}
		if n, err := res.RowsAffected(); err != nil || n != 1 {
			http.Error(out, "there is no such record", http.StatusNotFound)
			return
		}
		w.known[key] = true
	}
	if w.calls[operation] == 1 {
		panic(http.ErrAbortHandler) // closes the connection without an answer
	}
	out.Header().Set("Content-Type", "application/json")
	_, _ = io.WriteString(out, `{"done": true}`)
}
