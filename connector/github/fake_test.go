package github_test

import (
	"crypto/rsa"
	"encoding/json"
	"fmt"
	"io"
	"net/http"
	"net/http/httptest"
	"slices"
	"strconv"
	"strings"
	"sync"
	"testing"
	"time"

	"github.com/go-jose/go-jose/v4"
)

const (
	token  = "github_pat_of_the_gate"
	repo   = "acme/shop"
	commit = "1111111111111111111111111111111111111111"
	moved  = "2222222222222222222222222222222222222222"
)

type object = map[string]any

// fake implements the part of GitHub's REST API that the connector uses, with one repository. It
// follows GitHub's documentation: it checks the caller and the headers, refuses unknown members,
// compares the head of a merge, permits one release per tag and makes the tag, creates a comment on
// each call, and adds a label only once.
type fake struct {
	*httptest.Server
	mu       sync.Mutex
	issue    object
	labels   []string
	comments []object
	pull     object
	reviews  []object
	runs     []object
	releases []object
	tags     map[string]object
	// tagObjects are what tag objects point to, by their hashes.
	tagObjects map[string]object
	inputs     []string // of the workflow
	serial     int
	effects    int
	log        []string
	// The app, if any, and its installation's tokens.
	appKey *rsa.PublicKey
	tokens map[string]time.Time
	// trouble answers instead of a write; with after, once the write has taken effect. nil for
	// none.
	trouble func(http.ResponseWriter)
	after   bool
	reads   bool // it takes reads, too
	rewrite bool // of comments
	// unreadable is a request that is answered with 502.
	unreadable string
}

func newFake(t testing.TB) *fake {
	t.Helper()
	f := &fake{
		issue:  object{"number": 12, "title": "It is slow", "body": "x", "state": "open", "locked": false},
		labels: []string{"bug"}, tags: map[string]object{}, tokens: map[string]time.Time{}, serial: 1000,
		pull: object{
			"number": 7, "title": "Faster", "body": "y", "state": "open", "draft": false, "merged": false,
			"merge_commit_sha": nil, "head": object{"sha": commit}, "base": object{"ref": "main"}, "mergeable": true,
		},
	}
	f.Server = httptest.NewServer(f)
	t.Cleanup(f.Close)
	return f
}

func (f *fake) do(change func()) {
	f.mu.Lock()
	defer f.mu.Unlock()
	change()
}

// count is the number of changes that the connector has made.
func (f *fake) count() int {
	f.mu.Lock()
	defer f.mu.Unlock()
	return f.effects
}

// writes counts the requests that could change something.
func (f *fake) writes() (n int) {
	f.mu.Lock()
	defer f.mu.Unlock()
	for _, r := range f.log {
		if !strings.HasPrefix(r, "GET ") && !strings.Contains(r, "access_tokens") {
			n++
		}
	}
	return n
}

func (f *fake) fail(after bool, with func(http.ResponseWriter)) {
	f.do(func() { f.after, f.trouble = after, with })
}

func lost(http.ResponseWriter) { panic(http.ErrAbortHandler) }

func answers(status int, message string, headers ...string) func(http.ResponseWriter) {
	return func(w http.ResponseWriter) {
		for i := 0; i < len(headers); i += 2 {
			w.Header().Set(headers[i], headers[i+1])
		}
		w.WriteHeader(status)
		fmt.Fprintf(
			w,
			`{"message":%q,"documentation_url":"https://docs.github.com/rest","status":"%d"}`,
			message,
			status,
		)
	}
}

func (f *fake) ServeHTTP(w http.ResponseWriter, r *http.Request) {
	body, err := io.ReadAll(r.Body)
	if err != nil {
		return
	}
	f.mu.Lock()
	defer f.mu.Unlock()
	f.log = append(f.log, r.Method+" "+r.URL.Path)
	troubled := f.trouble != nil && (f.reads || r.Method != http.MethodGet) &&
		!strings.Contains(r.URL.Path, "access_tokens")
	if troubled && !f.after {
		f.trouble(w)
		return
	}
	status, doc := f.handle(r, body)
	if troubled {
		f.trouble(w)
		return
	}
	w.Header().Set("Content-Type", "application/json; charset=utf-8")
	w.WriteHeader(status)
	if doc != nil {
		_ = json.NewEncoder(w).Encode(doc)
	}
}

func refuse(status int, message string, codes ...string) (int, any) {
	out := object{"message": message, "status": strconv.Itoa(status)}
	for _, code := range codes {
		out["errors"] = []object{{"code": code}}
	}
	return status, out
}

func (f *fake) handle(r *http.Request, body []byte) (int, any) {
	credential := strings.TrimPrefix(r.Header.Get("Authorization"), "Bearer ")
	switch {
	case r.Header.Get("User-Agent") == "":
		return refuse(403, "Request forbidden by administrative rules.")
	case r.Header.Get("X-Github-Api-Version") != "2022-11-28" ||
		r.Header.Get("Accept") != "application/vnd.github+json":
		return refuse(400, "Unsupported version")
	case strings.HasPrefix(r.URL.Path, "/app/"):
		return f.giveToken(credential, r, body)
	case credential != token && !f.tokens[credential].After(time.Now()):
		return refuse(401, "Bad credentials")
	}
	args := object{}
	if len(body) > 0 && json.Unmarshal(body, &args) != nil {
		return refuse(400, "Problems parsing JSON")
	}
	rest, ok := strings.CutPrefix(r.URL.Path, "/repos/"+repo)
	if !ok {
		return refuse(404, "Not Found")
	}
	if at := r.Method + " " + rest; at != f.unreadable {
		return f.route(r, at, args)
	}
	return refuse(502, "Server Error")
}

func known(args object, names ...string) bool {
	for name := range args {
		if !slices.Contains(names, name) {
			return false
		}
	}
	return true
}

func (f *fake) route(r *http.Request, at string, args object) (int, any) {
	switch {
	case at == "GET ":
		return 200, object{"full_name": repo}
	case at == "GET /issues/12":
		labels := []object{}
		for _, l := range f.labels {
			labels = append(labels, object{"name": l})
		}
		f.issue["labels"] = labels
		return 200, f.issue
	case strings.HasPrefix(at, "GET /issues/12/comments"):
		return 200, page(f.comments, r)
	case at == "POST /issues/12/comments":
		return f.comment(args)
	case strings.Contains(at, "/issues/12/labels"):
		return f.label(at, args)
	case strings.Contains(at, " /issues/comments/"):
		return one(&f.comments, at, "/issues/comments/", &f.effects)
	case strings.Contains(at, " /pulls/7"):
		return f.merge(at, args, r)
	case at == "GET /actions/workflows/deploy.yml/runs":
		return 200, object{"total_count": len(f.runs), "workflow_runs": page(f.runs, r)}
	case strings.Contains(at, " /actions/"):
		return f.action(at, args)
	case strings.HasPrefix(at, "GET /releases/tags/"):
		for _, made := range f.releases {
			if made["tag_name"] == strings.TrimPrefix(at, "GET /releases/tags/") {
				return 200, made
			}
		}
	case strings.Contains(at, " /releases/"):
		return one(&f.releases, at, "/releases/", &f.effects)
	case at == "POST /releases":
		return f.release(args)
	case strings.HasPrefix(at, "GET /git/ref/tags/"):
		if tag, ok := f.tags[strings.TrimPrefix(at, "GET /git/ref/tags/")]; ok {
			return 200, object{"object": tag}
		}
	case strings.HasPrefix(at, "GET /git/tags/"):
		if next, ok := f.tagObjects[strings.TrimPrefix(at, "GET /git/tags/")]; ok {
			return 200, object{"object": next}
		}
	}
	return refuse(404, "Not Found")
}

// page is a page of a list, by per_page and page.
func page(list []object, r *http.Request) []object {
	size, _ := strconv.Atoi(r.URL.Query().Get("per_page"))
	n, _ := strconv.Atoi(r.URL.Query().Get("page"))
	if size < 1 || size > 100 || n < 1 {
		size, n = 30, 1
	}
	list = list[min((n-1)*size, len(list)):]
	return append([]object{}, list[:min(size, len(list))]...)
}

// one reads or deletes an element.
func one(list *[]object, at, prefix string, effects *int) (int, any) {
	method, rest, _ := strings.Cut(at, " ")
	for i, o := range *list {
		if fmt.Sprint(o["id"]) == strings.TrimPrefix(rest, prefix) {
			if method == http.MethodDelete {
				*list = slices.Delete(*list, i, i+1)
				*effects++
				return 204, nil
			}
			return 200, o
		}
	}
	return refuse(404, "Not Found")
}

func (f *fake) id() int {
	f.serial++
	return f.serial
}

func (f *fake) comment(args object) (int, any) {
	body, ok := args["body"].(string)
	switch {
	case !ok || !known(args, "body") || body == "" || len(body) > 65536:
		return refuse(422, "Validation Failed", "missing_field")
	case f.issue["locked"] == true:
		return refuse(403, "Unable to create comment because issue is locked.")
	}
	if f.rewrite {
		body = "something else"
	}
	made := object{"id": f.id(), "body": body, "html_url": "https://github.com/" + repo}
	f.comments = append(f.comments, made)
	f.effects++
	return 201, made
}

func (f *fake) label(at string, args object) (int, any) {
	if name, ok := strings.CutPrefix(at, "DELETE /issues/12/labels/"); ok {
		i := slices.IndexFunc(f.labels, func(l string) bool { return strings.EqualFold(l, name) })
		if i < 0 {
			return refuse(404, "Label does not exist")
		}
		f.labels = slices.Delete(f.labels, i, i+1)
		f.effects++
	} else {
		list, _ := args["labels"].([]any)
		if at != "POST /issues/12/labels" || len(list) != 1 || !known(args, "labels") {
			return refuse(422, "Validation Failed")
		}
		name := fmt.Sprint(list[0])
		if !slices.ContainsFunc(f.labels, func(l string) bool { return strings.EqualFold(l, name) }) {
			f.labels = append(f.labels, name)
			f.effects++
		}
	}
	out := []object{}
	for _, l := range f.labels {
		out = append(out, object{"name": l})
	}
	return 200, out
}

func (f *fake) merge(at string, args object, r *http.Request) (int, any) {
	head, _ := f.pull["head"].(object)
	switch at {
	case "GET /pulls/7":
		return 200, f.pull
	case "GET /pulls/7/reviews":
		return 200, page(f.reviews, r)
	case "PUT /pulls/7/merge":
	default:
		return refuse(404, "Not Found")
	}
	switch {
	case !known(args, "sha", "merge_method", "commit_title", "commit_message"):
		return refuse(422, "Validation Failed")
	case f.pull["merged"] == true || f.pull["state"] != "open" || f.pull["mergeable"] != true:
		return refuse(405, "Pull Request is not mergeable")
	case args["sha"] != head["sha"]:
		return refuse(409, "Head branch was modified. Review and try the merge again.")
	}
	f.pull["merged"], f.pull["state"] = true, "closed"
	f.pull["merge_commit_sha"] = strings.Repeat("3", 40)
	f.effects++
	return 200, object{
		"sha":     f.pull["merge_commit_sha"],
		"merged":  true,
		"message": "Pull Request successfully merged",
	}
}

func (f *fake) action(at string, args object) (int, any) {
	switch at {
	case "POST /actions/workflows/deploy.yml/dispatches":
		inputs, _ := args["inputs"].(object)
		if !known(args, "ref", "inputs", "return_run_details") || args["ref"] != "main" ||
			!known(inputs, f.inputs...) {
			return refuse(422, "Unexpected inputs provided")
		}
		title := "Deploy"
		if id, ok := inputs["gatehouse_action"]; ok {
			title += " " + fmt.Sprint(id)
		}
		run := object{"id": f.id(), "display_title": title, "status": "queued", "conclusion": nil, "head_sha": commit}
		f.runs = append(f.runs, run)
		f.effects++
		if args["return_run_details"] == true {
			return 200, object{"workflow_run_id": run["id"], "run_url": "https://x", "html_url": "https://x"}
		}
		return 204, nil
	}
	for _, run := range f.runs {
		switch at {
		case fmt.Sprintf("GET /actions/runs/%v", run["id"]):
			return 200, run
		case fmt.Sprintf("POST /actions/runs/%v/cancel", run["id"]):
			if run["status"] == "completed" {
				return refuse(409, "Cannot cancel a workflow run that is completed")
			}
			run["status"], run["conclusion"] = "completed", "cancelled"
			f.effects++
			return 202, object{}
		}
	}
	return refuse(404, "Not Found")
}

func (f *fake) release(args object) (int, any) {
	if !known(args, "tag_name", "target_commitish", "name", "body", "draft", "prerelease") {
		return refuse(422, "Validation Failed", "invalid")
	}
	for _, made := range f.releases {
		if made["tag_name"] == args["tag_name"] {
			return refuse(422, "Validation Failed", "already_exists")
		}
	}
	made := object{"id": f.id(), "prerelease": false, "name": nil}
	for name, value := range args {
		made[name] = value
	}
	if tag := fmt.Sprint(args["tag_name"]); f.tags[tag] == nil {
		f.tags[tag] = object{"type": "commit", "sha": args["target_commitish"]}
	}
	f.releases = append(f.releases, made)
	f.effects++
	return 201, made
}

// giveToken checks the app's assertion as GitHub does: RS256, issued in the past, and valid for no
// more than ten minutes.
func (f *fake) giveToken(assertion string, r *http.Request, body []byte) (int, any) {
	var claims struct {
		Iat, Exp int64
		Iss      string
	}
	signed, err := jose.ParseSigned(assertion, []jose.SignatureAlgorithm{jose.RS256})
	if err != nil || f.appKey == nil {
		return refuse(401, "A JSON web token could not be decoded")
	}
	payload, err := signed.Verify(f.appKey)
	now := time.Now().Unix()
	if err != nil || json.Unmarshal(payload, &claims) != nil || claims.Iat > now || claims.Exp < now ||
		claims.Exp-now > 600 || claims.Iss != "Iv1.app" {
		return refuse(401, "'Expiration time' claim ('exp') is too far in the future")
	}
	var args struct{ Repositories []string }
	if json.Unmarshal(body, &args) != nil || r.URL.Path != "/app/installations/99/access_tokens" {
		return refuse(404, "Not Found")
	}
	if !slices.Equal(args.Repositories, []string{"shop"}) {
		return refuse(422, "There is at least one repository that does not exist or is not accessible")
	}
	made := fmt.Sprintf("ghs_%d", f.id())
	f.tokens[made] = time.Now().Add(time.Hour)
	return 201, object{"token": made, "expires_at": time.Now().Add(time.Hour).UTC().Format(time.RFC3339)}
}
