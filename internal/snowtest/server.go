package snowtest

import (
	"crypto/sha256"
	"encoding/hex"
	"encoding/json"
	"fmt"
	"io"
	"net/http"
	"strings"
	"sync"
	"time"
)

// Options has the users and the faults.
type Options struct {
	// Users maps user names to users, who authenticate by basic authentication.
	Users map[string]User
	// Tokens maps a bearer token to a user name.
	Tokens map[string]string
	// Now is the clock; time.Now by default.
	Now func() time.Time
	// Clients are the secrets of OAuth clients by their ids. A token authenticates the user "gate" for
	// TokenLife, 30 minutes by default.
	Clients   map[string]string
	TokenLife time.Duration
	// Locked are fields, such as incident.state, that nobody may write through the API,
	// and Hidden are tables whose records nobody may read.
	Locked, Hidden []string
	// Rule is a business rule before an update or insert; nil for none. It may change the values. If it
	// returns false, the write is aborted.
	Rule func(table string, was map[string]string, write map[string]string) bool
	// Fault is asked before each authenticated request; nil for none. It may
	// be called concurrently, and may block.
	Fault func(*http.Request) Fault
}

// User is a user of the API.
type User struct {
	Password string
	// ReadOnly makes the server answer the user's writes with 403.
	ReadOnly bool
}

// Fault is the fault of one request; the zero value is none.
type Fault struct {
	// Status, if not 0, is the status of the answer to a request that is not carried out.
	Status int
	// RetryAfter is the header Retry-After of the answer with Status.
	RetryAfter string
	// Drop executes the request and then breaks the connection: the caller cannot know the result.
	Drop bool
	// Page answers with a page, as a sleeping instance does, and does nothing.
	Page bool
}

// Server is the fake; it is an http.Handler.
type Server struct {
	options Options

	mu     sync.Mutex
	tables map[string]*table
	serial int
	writes []Write
	tokens map[string]time.Time // the issued tokens, with the time of their expiry
}

// Write is a write that was carried out.
type Write struct {
	Method string
	Table  string
	SysID  string
	User   string
	At     time.Time
	// Sent has the fields of the body. Changed lists, in order, the fields with a new value and the
	// journal fields with a new entry; after an insert, every field in Sent that can be written.
	// After an update that changed nothing, Changed is empty.
	Sent    map[string]string
	Changed []string
	// ModCount is the record's sys_mod_count after the write.
	ModCount string
}

// New makes a server without incidents.
func New(o Options) *Server {
	if o.Now == nil {
		o.Now = time.Now
	}
	s := &Server{options: o, tables: map[string]*table{}, tokens: map[string]time.Time{}}
	for name, fields := range map[string]map[string]field{
		"incident": incidentFields, "change_request": changeFields,
		"sys_user": userFields, "sys_user_group": groupFields,
		"label": labelFields, "label_entry": labelEntryFields, "sys_journal_field": journalEntryFields,
	} {
		s.tables[name] = &table{fields: fields, records: map[string]*record{}}
	}
	return s
}

// Writes returns the ledger: every write that was carried out, in order.
func (s *Server) Writes() []Write {
	s.mu.Lock()
	defer s.mu.Unlock()
	return append([]Write(nil), s.writes...)
}

// maxBody bounds a request, in bytes.
const maxBody = 1 << 20

// failure is an answer in the shape of ServiceNow's errors.
type failure struct {
	status          int
	message, detail string
}

func (f *failure) write(w http.ResponseWriter) {
	writeJSON(w, f.status,
		map[string]any{"error": map[string]any{"message": f.message, "detail": f.detail}, "status": "failure"})
}

func unsupported(what string) *failure {
	return &failure{http.StatusNotImplemented, "Not in this fake", what + " is not part of this fake ServiceNow"}
}

func writeJSON(w http.ResponseWriter, status int, v any) {
	w.Header().Set("Content-Type", "application/json;charset=UTF-8")
	w.WriteHeader(status)
	_ = json.NewEncoder(w).Encode(v)
}

// ServeHTTP answers one request of the Table API.
func (s *Server) ServeHTTP(w http.ResponseWriter, r *http.Request) {
	w.Header().Set("Server", "gatehouse-fake-servicenow")
	if r.URL.Path == "/" {
		_, _ = io.WriteString(w, "This is a fake ServiceNow, for tests and examples.\n")
		return
	}
	if r.URL.Path == "/oauth_token.do" {
		s.giveToken(w, r)
		return
	}
	user, ok := s.authenticate(r)
	if !ok {
		w.Header().Set("WWW-Authenticate", `BASIC realm="Service-now"`)
		(&failure{http.StatusUnauthorized, "User Not Authenticated", "Required to provide Auth information"}).write(w)
		return
	}
	var fault Fault
	if s.options.Fault != nil {
		fault = s.options.Fault(r)
	}
	if fault.Page {
		_, _ = io.WriteString(w, "<html>Your instance is hibernating.</html>")
		return
	}
	if fault.Status != 0 {
		if fault.RetryAfter != "" {
			w.Header().Set("Retry-After", fault.RetryAfter)
		}
		(&failure{fault.Status, "Transaction cancelled", "the fake was told to fail"}).write(w)
		return
	}
	body, err := io.ReadAll(io.LimitReader(r.Body, maxBody+1))
	if err != nil {
		return // the client is gone
	}
	a, bad := s.answer(r, user, body)
	switch {
	case fault.Drop:
		panic(http.ErrAbortHandler)
	case bad != nil:
		bad.write(w)
		return
	}
	for name, value := range a.header {
		w.Header().Set(name, value)
	}
	if a.status == http.StatusNoContent || r.Method != http.MethodGet && r.Header.Get("X-no-response-body") == "true" {
		w.WriteHeader(a.status)
		return
	}
	writeJSON(w, a.status, map[string]any{"result": a.result})
}

// answer is the answer to a request.
type answer struct {
	status int
	result any
	header map[string]string
}

func (s *Server) authenticate(r *http.Request) (user string, ok bool) {
	if token, bearer := strings.CutPrefix(r.Header.Get("Authorization"), "Bearer "); bearer {
		if user, ok = s.options.Tokens[token]; ok {
			return user, ok
		}
		s.mu.Lock()
		defer s.mu.Unlock()
		return "gate", s.tokens[token].After(s.options.Now())
	}
	user, password, _ := r.BasicAuth()
	u, ok := s.options.Users[user]
	return user, ok && u.Password == password
}

// answer takes the path apart: /api/now[/v1|/v2]/table/{table}[/{sys_id}].
func (s *Server) answer(r *http.Request, user string, body []byte) (*answer, *failure) {
	rest, ok := strings.CutPrefix(r.URL.Path, "/api/now/")
	parts := strings.Split(rest, "/")
	version := ""
	if len(parts) > 0 && (parts[0] == "v1" || parts[0] == "v2") {
		version, parts = parts[0], parts[1:]
	}
	if !ok || len(parts) < 2 || len(parts) > 3 || parts[0] != "table" {
		return nil, &failure{http.StatusBadRequest, "Requested URI does not represent any resource", ""}
	}
	s.mu.Lock()
	defer s.mu.Unlock()
	t, ok := s.tables[parts[1]]
	if !ok {
		return nil, &failure{http.StatusBadRequest, "Invalid table " + parts[1], ""}
	}
	q := &request{server: s, http: r, table: t, name: parts[1], version: version, user: user}
	if len(parts) == 3 {
		q.sysID = parts[2]
	}
	if bad := q.parse(); bad != nil {
		return nil, bad
	}
	switch {
	case r.Method == http.MethodGet && q.sysID == "":
		return q.list()
	case r.Method == http.MethodGet:
		return q.get()
	case r.Method == http.MethodPost && q.sysID == "", (r.Method == http.MethodPatch || r.Method == http.MethodPut) &&
		q.sysID != "":
		return q.write(body)
	case r.Method == http.MethodDelete && q.name == "label_entry" && q.sysID != "":
		return q.remove()
	case r.Method == http.MethodDelete:
		return nil, unsupported("DELETE")
	}
	return nil, &failure{http.StatusMethodNotAllowed, "Method not supported",
		r.Method + " is not supported for this resource"}
}

// newID makes a sys_id: 32 hexadecimal digits, the same ones in every run.
func (s *Server) newID(table string) string {
	s.serial++
	sum := sha256.Sum256(fmt.Appendf(nil, "%s %d", table, s.serial))
	return hex.EncodeToString(sum[:16])
}

func (s *Server) now() string { return s.options.Now().UTC().Format(time.DateTime) }
