package api

import (
	"net/http"
	"net/http/httptest"
	"sync/atomic"
)

// lossyHandler processes requests but loses the first answers: it closes the
// connection instead.
type lossyHandler struct {
	next http.Handler
	lose int32
	seen atomic.Int32
}

func (h *lossyHandler) ServeHTTP(w http.ResponseWriter, r *http.Request) {
	rec := httptest.NewRecorder()
	h.next.ServeHTTP(rec, r)
	if h.seen.Add(1) <= h.lose {
		panic(http.ErrAbortHandler)
	}
	for name, value := range rec.Header() {
		w.Header()[name] = value
	}
	w.WriteHeader(rec.Code)
	_, _ = w.Write(rec.Body.Bytes())
}
