package bench

import (
	"context"
	"encoding/json"
	"errors"
	"io"
	"net"
	"net/http"
	"strconv"
	"time"
)

// bareServer is a net/http server with one endpoint.
type bareServer struct {
	addr string
	http *http.Server
	done chan error
}

func serveBare(ctx context.Context, pattern string, h http.HandlerFunc) (*bareServer, error) {
	mux := http.NewServeMux()
	mux.HandleFunc(pattern, h)
	l, err := new(net.ListenConfig).Listen(ctx, "tcp", "127.0.0.1:0")
	if err != nil {
		return nil, err
	}
	s := &bareServer{
		addr: l.Addr().String(), http: &http.Server{Handler: mux, ReadHeaderTimeout: 10 * time.Second},
		done: make(chan error, 1),
	}
	go func() { s.done <- s.http.Serve(l) }()
	return s, nil
}

func (s *bareServer) close() error {
	err := s.http.Shutdown(context.Background())
	if e := <-s.done; !errors.Is(e, http.ErrServerClosed) {
		err = errors.Join(err, e)
	}
	return err
}

// bareJSON is a minimal JSON endpoint: it reads, decodes, calls do, and encodes.
func bareJSON[In, Out any](do func(*http.Request, *In) (Out, error)) http.HandlerFunc {
	return func(w http.ResponseWriter, r *http.Request) {
		b, err := io.ReadAll(r.Body)
		var in In
		if err == nil {
			err = json.Unmarshal(b, &in)
		}
		if err != nil {
			http.Error(w, err.Error(), http.StatusBadRequest)
			return
		}
		out, err := do(r, &in)
		if err == nil {
			b, err = json.Marshal(out)
		}
		if err != nil {
			http.Error(w, err.Error(), http.StatusInternalServerError)
			return
		}
		w.Header().Set("Content-Type", "application/json")
		w.Header().Set("Content-Length", strconv.Itoa(len(b)))
		_, _ = w.Write(b)
	}
}
