package salesforce_test

import (
	"crypto/rand"
	"crypto/rsa"
	"crypto/x509"
	"encoding/json"
	"encoding/pem"
	"fmt"
	"io"
	"maps"
	"net/http"
	"net/http/httptest"
	"net/url"
	"regexp"
	"slices"
	"strings"
	"sync"
	"testing"
	"time"

	"github.com/go-jose/go-jose/v4"

	"github.com/gatehouse-dev/gatehouse"
	"github.com/gatehouse-dev/gatehouse/connector"
	"github.com/gatehouse-dev/gatehouse/connector/connectortest"
	"github.com/gatehouse-dev/gatehouse/connector/salesforce"
)

const (
	consumerKey    = "3MVG9-consumer-key"
	consumerSecret = "consumer-secret-of-the-app"
	deal           = "0068a00001rBqb8AAC"
)

type object = map[string]any

// certificate is the app's key pair, generated once.
var certificate = sync.OnceValue(func() *rsa.PrivateKey {
	key, err := rsa.GenerateKey(rand.Reader, 2048)
	if err != nil {
		panic(err)
	}
	return key
})

// otherKey is a key that Salesforce does not know, generated once.
var otherKey = sync.OnceValue(func() string {
	key, err := rsa.GenerateKey(rand.Reader, 2048)
	if err != nil {
		panic(err)
	}
	return keyPEM(key)
})

func certificatePEM() string { return keyPEM(certificate()) }

func keyPEM(key *rsa.PrivateKey) string {
	der, err := x509.MarshalPKCS8PrivateKey(key)
	if err != nil {
		panic(err)
	}
	return string(pem.EncodeToMemory(&pem.Block{Type: "PRIVATE KEY", Bytes: der}))
}

// fake is an org with the object Opportunity. It implements the part of the REST API that the
// connector uses, as Salesforce documents it: If-Unmodified-Since with seconds for PATCH by id, 400
// for a condition on DELETE, 300 for several records with one external id, field names in any case,
// answers 204 without a body, and errors as a list.
type fake struct {
	t      testing.TB
	url    string
	server *httptest.Server

	mu      sync.Mutex
	tokens  map[string]bool
	signIns int
	records map[string]object
	deleted map[string]bool
	writes  []string
	// unique says whether the key field is unique, drop ignores a field of a write, rewrite sets
	// one; fail answers a write with an error, refuse answers every request with one, instance is the
	// instance URL in token answers.
	unique   bool
	drop     string
	rewrite  object
	cut      bool
	fail     func() (int, string)
	refuse   func() (int, string)
	instance string
	// beforeWrite is called without the lock.
	beforeWrite func()
}

func newFake(t testing.TB) *fake {
	f := &fake{t: t, unique: true, tokens: map[string]bool{}, records: map[string]object{}, deleted: map[string]bool{}}
	f.records[deal] = object{
		"Id": deal, "Name": "Printers", "StageName": "Prospecting", "Amount": json.Number("1200.5"),
		"CloseDate":   "2026-12-01",
		"Description": nil, "IsPrivate": false, "Gatehouse_Key__c": nil,
		"LastModifiedDate": stamp(time.Now().Add(-time.Hour)),
	}
	s := httptest.NewServer(f)
	t.Cleanup(s.Close)
	f.url, f.instance, f.server = s.URL, s.URL, s
	return f
}

func stamp(at time.Time) string { return at.UTC().Format("2006-01-02T15:04:05") + ".000+0000" }

// set changes a field without the connector.
func (f *fake) set(field string, value any) {
	f.mu.Lock()
	defer f.mu.Unlock()
	f.records[deal][field] = value
	f.records[deal]["LastModifiedDate"] = stamp(time.Now())
}

func (f *fake) field(id, name string) gatehouse.JSON {
	f.mu.Lock()
	defer f.mu.Unlock()
	return gatehouse.MustJSON(f.records[id][name])
}

func (f *fake) effects() int {
	f.mu.Lock()
	defer f.mu.Unlock()
	return len(f.writes)
}

func (f *fake) count() gatehouse.JSON {
	f.mu.Lock()
	defer f.mu.Unlock()
	return gatehouse.MustJSON(len(f.records))
}

// behave changes how the fake answers from now on.
func (f *fake) behave(change func()) {
	f.mu.Lock()
	defer f.mu.Unlock()
	change()
}

func failure(code, message string) []object {
	return []object{{"errorCode": code, "message": message, "fields": []string{}}}
}

func (f *fake) ServeHTTP(w http.ResponseWriter, r *http.Request) {
	body, err := io.ReadAll(r.Body)
	if err != nil {
		return
	}
	w.Header().Set("Content-Type", "application/json;charset=UTF-8")
	w.Header().Set("Server", "gatehouse-fake-salesforce")
	if r.URL.Path == "/services/oauth2/token" {
		f.token(w, r, string(body))
		return
	}
	f.mu.Lock()
	hook := f.beforeWrite
	f.mu.Unlock()
	if r.Method != http.MethodGet && hook != nil {
		hook()
	}
	f.mu.Lock()
	defer f.mu.Unlock()
	before := len(f.writes)
	status, out := f.authorized(r, body)
	if out == nil {
		w.WriteHeader(status)
		return
	}
	text, err := json.Marshal(out)
	if err != nil {
		panic(err)
	}
	if f.cut && len(f.writes) > before {
		w.Header().Set("Content-Length", fmt.Sprint(len(text)+10))
	}
	w.WriteHeader(status)
	_, _ = w.Write(text)
}

func (f *fake) token(w http.ResponseWriter, r *http.Request, body string) {
	f.mu.Lock()
	defer f.mu.Unlock()
	refuse := func(code, why string) {
		w.WriteHeader(http.StatusBadRequest)
		_ = json.NewEncoder(w).Encode(object{"error": code, "error_description": why})
	}
	form, err := url.ParseQuery(body)
	if err != nil || r.Method != http.MethodPost || r.Header.Get("Content-Type") != "application/x-www-form-urlencoded" {
		refuse("unsupported_grant_type", "grant type not supported")
		return
	}
	switch form.Get("grant_type") {
	case "client_credentials":
		if form.Get("client_id") != consumerKey || form.Get("client_secret") != consumerSecret {
			refuse("invalid_client", "invalid client credentials")
			return
		}
	case "urn:ietf:params:oauth:grant-type:jwt-bearer":
		if why := wrongAssertion(form.Get("assertion")); why != "" {
			refuse("invalid_grant", why)
			return
		}
	default:
		refuse("unsupported_grant_type", "grant type not supported")
		return
	}
	token := "00D!" + rand.Text()
	f.tokens[token], f.signIns = true, f.signIns+1
	_ = json.NewEncoder(w).Encode(object{
		"access_token": token, "instance_url": f.instance, "id": f.instance + "/id/00D/005", "token_type": "Bearer",
		"issued_at": fmt.Sprint(time.Now().UnixMilli()), "signature": "x",
	})
}

// wrongAssertion checks the requirements that Salesforce documents for the JWT bearer flow.
func wrongAssertion(text string) string {
	signed, err := jose.ParseSigned(text, []jose.SignatureAlgorithm{jose.RS256})
	if err != nil {
		return "invalid assertion"
	}
	payload, err := signed.Verify(&certificate().PublicKey)
	if err != nil {
		return "invalid assertion"
	}
	var claims struct {
		Issuer   string `json:"iss"`
		Subject  string `json:"sub"`
		Audience string `json:"aud"`
		Expires  int64  `json:"exp"`
	}
	now := time.Now().Unix()
	switch err := json.Unmarshal(payload, &claims); {
	case err != nil:
		return "invalid assertion"
	case claims.Audience != "https://test.salesforce.com":
		return "audience is invalid"
	case claims.Issuer != consumerKey || claims.Subject != "gate@acme.example":
		return "user hasn't approved this consumer"
	case claims.Expires <= now || claims.Expires > now+180:
		return "expired or too long"
	}
	return ""
}

var (
	recordPath = regexp.MustCompile(`^/services/data/v64\.0/sobjects/Opportunity/([0-9A-Za-z]{18})$`)
	keyPath    = regexp.MustCompile(`^/services/data/v64\.0/sobjects/Opportunity/([A-Za-z0-9_]+__c)/([^/]+)$`)
)

func (f *fake) authorized(r *http.Request, body []byte) (int, any) {
	if !f.tokens[strings.TrimPrefix(r.Header.Get("Authorization"), "Bearer ")] {
		return 401, failure("INVALID_SESSION_ID", "Session expired or invalid")
	}
	if f.refuse != nil {
		status, code := f.refuse()
		return status, failure(code, "try later")
	}
	var in object
	if len(body) > 0 {
		d := json.NewDecoder(strings.NewReader(string(body)))
		d.UseNumber()
		if r.Header.Get("Content-Type") != "application/json" || d.Decode(&in) != nil {
			return 400, failure("JSON_PARSER_ERROR", "Unexpected character")
		}
	}
	if r.Method != http.MethodGet && f.fail != nil {
		status, code := f.fail()
		return status, failure(code, "no")
	}
	return f.route(r, in)
}

func (f *fake) route(r *http.Request, in object) (int, any) {
	missing := failure("NOT_FOUND", "The requested resource does not exist")
	switch r.URL.Path {
	case "/services/data/v64.0/sobjects/Opportunity":
		return 200, object{"objectDescribe": object{"name": "Opportunity", "createable": true}, "recentItems": []object{}}
	case "/services/data/v64.0/sobjects/Opportunity/describe":
		return 200, object{"name": "Opportunity", "fields": []object{
			{"name": "Name", "externalId": false, "unique": false},
			{"name": "Gatehouse_Key__c", "externalId": true, "unique": f.unique},
		}}
	}
	if m := recordPath.FindStringSubmatch(r.URL.Path); m != nil {
		switch {
		case f.deleted[m[1]]:
			return 404, failure("ENTITY_IS_DELETED", "entity is deleted")
		case f.records[m[1]] == nil:
			return 404, missing
		}
		return f.byID(r, m[1], in)
	}
	m := keyPath.FindStringSubmatch(r.URL.Path)
	if m == nil || m[1] != "Gatehouse_Key__c" {
		return 404, missing
	}
	return f.byKey(r, m[2], in)
}

func (f *fake) byKey(r *http.Request, key string, in object) (int, any) {
	var ids []string
	for _, id := range slices.Sorted(maps.Keys(f.records)) {
		if k, _ := f.records[id]["Gatehouse_Key__c"].(string); strings.EqualFold(k, key) {
			ids = append(ids, id)
		}
	}
	switch {
	case len(ids) > 1:
		return 300, ids
	case r.Method == http.MethodGet && len(ids) == 0:
		return 404, failure("NOT_FOUND", "The requested resource does not exist")
	case r.Method == http.MethodGet:
		return f.show(r, ids[0])
	case r.Method != http.MethodPatch:
		return 405, failure("METHOD_NOT_ALLOWED", "HTTP Method not allowed. Allowed are HEAD,GET,PATCH,DELETE")
	case len(ids) == 1:
		if status, out := f.write(ids[0], in); status != 0 {
			return status, out
		}
		return 200, object{"id": ids[0], "success": true, "errors": []any{}, "created": false}
	}
	if in["Name"] == nil || in["StageName"] == nil || in["CloseDate"] == nil {
		return 400, failure("REQUIRED_FIELD_MISSING", "Required fields are missing: [Name]")
	}
	id := newID(len(f.records))
	f.records[id] = maps.Clone(f.records[deal])
	for name := range f.records[id] {
		f.records[id][name] = nil
	}
	maps.Copy(f.records[id], object{"Id": id, "Gatehouse_Key__c": key, "IsPrivate": false})
	if status, out := f.write(id, in); status != 0 {
		delete(f.records, id)
		return status, out
	}
	return 201, object{"id": id, "success": true, "errors": []any{}, "created": true}
}

// newID is an id without capitals, whose last three characters are therefore AAA.
func newID(n int) string { return fmt.Sprintf("006%012dAAA", n) }

func (f *fake) byID(r *http.Request, id string, in object) (int, any) {
	since := r.Header.Get("If-Unmodified-Since")
	switch r.Method {
	case http.MethodGet:
		return f.show(r, id)
	case http.MethodDelete:
		if since != "" {
			return 400, failure("BAD_REQUEST", "conditional requests are not supported for DELETE")
		}
		delete(f.records, id)
		f.deleted[id] = true
		f.writes = append(f.writes, "delete "+id)
		return 204, nil
	case http.MethodPatch:
		if since != "" {
			at, err := http.ParseTime(since)
			if err != nil {
				return 400, failure("BAD_REQUEST", "invalid header If-Unmodified-Since")
			}
			modified, err := time.Parse("2006-01-02T15:04:05.000-0700", f.records[id]["LastModifiedDate"].(string))
			if err != nil {
				panic(err)
			}
			if modified.After(at) {
				return 412, failure("PRECONDITION_FAILED", "the record was modified")
			}
		}
		if status, out := f.write(id, in); status != 0 {
			return status, out
		}
		return 204, nil
	}
	return 405, failure("METHOD_NOT_ALLOWED", "HTTP Method not allowed")
}

// write sets fields; it returns 0 when it succeeds.
func (f *fake) write(id string, in object) (int, any) {
	in = maps.Clone(in)
	for name, value := range in {
		known := f.name(name)
		if known == "" {
			return 400, failure("INVALID_FIELD", "No such column '"+name+"' on sobject of type Opportunity")
		}
		if value == "" {
			in[name] = nil
		}
	}
	if stage, ok := in["StageName"].(string); ok && stage == "Nonsense" {
		return 400, failure("INVALID_OR_NULL_FOR_RESTRICTED_PICKLIST", "bad value for restricted picklist field")
	}
	delete(in, f.drop)
	maps.Copy(in, f.rewrite)
	if len(in) > 0 {
		maps.Copy(f.records[id], in)
		f.records[id]["LastModifiedDate"] = stamp(time.Now())
	}
	f.writes = append(f.writes, "write "+id)
	return 0, nil
}

// name is the canonical name of a field.
func (f *fake) name(any string) string {
	for name := range f.records[deal] {
		if strings.EqualFold(name, any) {
			return name
		}
	}
	return ""
}

func (f *fake) show(r *http.Request, id string) (int, any) {
	out := object{"attributes": object{"type": "Opportunity", "url": "/services/data/v64.0/sobjects/Opportunity/" + id}}
	for asked := range strings.SplitSeq(r.URL.Query().Get("fields"), ",") {
		name := f.name(asked)
		if name == "" {
			return 400, failure("INVALID_FIELD", "No such column '"+asked+"' on entity 'Opportunity'")
		}
		out[name] = f.records[id][name]
	}
	return 200, out
}

func (f *fake) config() salesforce.Config {
	return salesforce.Config{
		Site: f.url, AllowPrivate: true,
		Auth:    salesforce.Auth{ClientID: consumerKey, ClientSecret: &connector.Secret{Secret: "SF"}},
		Objects: map[string]salesforce.Object{"Opportunity": {KeyField: "Gatehouse_Key__c"}},
	}
}

var secrets = connectortest.Named(map[string]string{"SF": consumerSecret + "\n", "KEY": certificatePEM()})

func (f *fake) connector(change func(*salesforce.Config)) *salesforce.Connector {
	f.t.Helper()
	cfg := f.config()
	if change != nil {
		change(&cfg)
	}
	return connectortest.Build[*salesforce.Connector](f.t, salesforce.New, cfg, secrets)
}

func call(operation string, change, pre gatehouse.JSON) connector.Call {
	c := connectortest.Call(operation, "Opportunity", deal, pre, change)
	if operation == "create" {
		c.Target.EntityRef = "new"
	}
	return c
}
