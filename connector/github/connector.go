package github

import (
	"cmp"
	"context"
	"errors"
	"fmt"
	"maps"
	"net/http"
	"slices"
	"strings"
	"time"

	"github.com/gatehouse-dev/gatehouse"
	"github.com/gatehouse-dev/gatehouse/connector"
	"github.com/gatehouse-dev/gatehouse/connector/internal/rest"
	"github.com/gatehouse-dev/gatehouse/connector/internal/typed"
)

const (
	// defaultTimeout limits a call when the configuration has no timeout.
	defaultTimeout = 30 * time.Second
	// gap is the time that GitHub recommends between two writes.
	gap = time.Second
	// version is the version of the API; it is supported until 2028-03 at least.
	version = "2022-11-28"
)

// Connector changes the configured repositories.
type Connector struct {
	*typed.Operations
	api          *rest.API
	repositories map[string]Repository
	input        string // the workflow input that takes the action's id, "" for none
	runDetails   bool
	fingerprint  string
	timeout      time.Duration
	targets      rest.Keyed
	pace         rest.Pace
}

var _ typed.Connector = (*Connector)(nil)

// New makes a connector from a configuration, with the values of the secrets that it names. It
// makes no call.
func New(_ context.Context, cfg Config, secrets func(name string) (string, error)) (connector.Connector, error) {
	if err := cfg.validate(); err != nil {
		return nil, err
	}
	cfg.BaseURL = cmp.Or(cfg.BaseURL, "https://api.github.com")
	base, err := rest.ParseBase(cfg.BaseURL, cfg.AllowPrivate, true)
	if err != nil {
		return nil, fmt.Errorf("base_url: %w", err)
	}
	c := &Connector{
		api: &rest.API{Client: rest.NewClient(cfg.AllowPrivate), Base: base, Header: http.Header{
			"Accept": {"application/vnd.github+json"}, "User-Agent": {"gatehouse"}, "X-Github-Api-Version": {version},
		}},
		repositories: cfg.Repositories, input: cfg.ActionInput, runDetails: !cfg.NoRunDetails,
		fingerprint: fingerprint(cfg), timeout: cmp.Or(cfg.Timeout.D(), defaultTimeout), pace: rest.Pace{Gap: gap},
	}
	if c.Operations, err = newOperations(); err != nil {
		return nil, err
	}
	if cfg.Auth.App != nil {
		key, err := cfg.Auth.App.PrivateKey.Value("auth.app.private_key", secrets)
		if err != nil {
			return nil, err
		}
		if err := c.useApp(cfg, strings.TrimSpace(key)); err != nil {
			return nil, err
		}
		return c, nil
	}
	token, err := cfg.Auth.Token.Value("auth.token", secrets)
	if err != nil {
		return nil, err
	}
	bearer := "Bearer " + strings.TrimSpace(token)
	c.api.Credential = func(context.Context) (string, *connector.Error) { return bearer, nil }
	return c, nil
}

// fingerprint hashes the definition, with the names of secrets only. Levels and time-outs are left
// out.
func fingerprint(cfg Config) string {
	return connector.Fingerprint(struct {
		Type, BaseURL, ActionInput string
		NoRunDetails, AllowPrivate bool
		Auth                       Auth
		Repositories               []string
		// Form is incremented when the connector sends something else for the same call.
		Form int
	}{
		"github", cfg.BaseURL, cfg.ActionInput, cfg.NoRunDetails, cfg.AllowPrivate, cfg.Auth,
		slices.Sorted(maps.Keys(cfg.Repositories)), 1,
	})
}

// Fingerprint implements [connector.Connector].
func (c *Connector) Fingerprint() string { return c.fingerprint }

// Probe reads each repository.
func (c *Connector) Probe(ctx context.Context) error {
	for _, name := range slices.Sorted(maps.Keys(c.repositories)) {
		_, there, failed := c.get(ctx, "/repos/"+name, nil)
		switch {
		case failed != nil:
			return errors.New(failed.Detail)
		case !there:
			return fmt.Errorf("%s does not exist, or the connector may not read it", name)
		}
	}
	return nil
}

// Execute implements [connector.Connector].
func (c *Connector) Execute(ctx context.Context, call connector.Call) (connector.Result, error) {
	do := map[string]func(context.Context, connector.Call) (connector.Result, *connector.Error){
		opComment: c.comment, opAddLabel: c.label, opRemoveLabel: c.label, opMerge: c.merge, opDispatch: c.dispatch,
		opCancelRun: c.cancelRun, opRelease: c.release, opDeleteComment: c.remove, opDeleteRelease: c.remove,
	}[call.Operation]
	name := call.Target.EntityType + " " + call.Target.EntityRef
	return c.targets.Execute(ctx, c, call, c.timeout, name, do)
}

// send makes an operation's only request that changes something. The answer must have one of the given statuses.
func (c *Connector) send(
	ctx context.Context, method, path string, body gatehouse.JSON, statuses ...int,
) (res connector.Result, doc gatehouse.JSON, failed *connector.Error) {
	if failed := c.pace.Wait(ctx, ""); failed != nil {
		return res, "", failed
	}
	res, a, failed := c.api.Do(ctx, method, path, nil, nil, body)
	if failed != nil {
		return res, "", failed
	}
	doc = a.JSON()
	if !slices.Contains(statuses, a.Status) {
		return res, doc, c.failure(a)
	}
	return res, doc, nil
}

// reference names an entity, by its number, in the repository of a call.
func reference(call connector.Call, id gatehouse.JSON) string {
	repository, _ := splitReference(call)
	return repository + "/" + string(id)
}

// notAsApproved compares the members of a comment, a release or an answer with the approved ones.
func notAsApproved(doc gatehouse.JSON, approved ...gatehouse.Member) *connector.Error {
	for _, m := range approved {
		got := orNull(doc, m.Name)
		shown, isText := got.Text()
		want, isTextToo := m.Value.Text()
		if got.Equal(m.Value) || isText && isTextToo && rest.SameText(shown, want) {
			continue
		}
		return &connector.Error{
			Code: "not_as_approved", Detail: "GitHub has done it, but says that " + m.Name + " is " + rest.Brief(got),
		}
	}
	return nil
}
