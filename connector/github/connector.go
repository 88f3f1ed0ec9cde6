package github

import (
	"cmp"
	"context"
	"errors"
	"fmt"
	"maps"
	"net/http"
	"slices"
	"time"

	"github.com/gatehouse-dev/gatehouse"
	"github.com/gatehouse-dev/gatehouse/connector"
	"github.com/gatehouse-dev/gatehouse/connector/internal/rest"
	"github.com/gatehouse-dev/gatehouse/connector/internal/typed"
)

const (
	// defaultTimeout limits a call when the configuration has no timeout.
	defaultTimeout = 30 * time.Second
	// gap is the time between two writes that GitHub recommends.
	gap = time.Second
	// version is the version of the API; it is supported until 2028-03 at least.
	version = "2022-11-28"
)

// Connector changes the configured repositories.
type Connector struct {
	api          *rest.API
	repositories map[string]Repository
	input        string // that takes the action's id, "" for none
	runDetails   bool
	operations   *typed.Operations
	fingerprint  string
	timeout      time.Duration
	targets      rest.Keyed
	pace         rest.Pace
}

var (
	_ connector.Connector   = (*Connector)(nil)
	_ connector.Checker     = (*Connector)(nil)
	_ connector.StateReader = (*Connector)(nil)
	_ connector.ReadBacker  = (*Connector)(nil)
	_ connector.Validator   = (*Connector)(nil)
	_ connector.Floorer     = (*Connector)(nil)
	_ connector.Declarer    = (*Connector)(nil)
	_ connector.Typed       = (*Connector)(nil)
	_ connector.Prober      = (*Connector)(nil)
)

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
	if c.operations, err = newOperations(); err != nil {
		return nil, err
	}
	if cfg.Auth.App != nil {
		key, err := cfg.Auth.App.PrivateKey.value("auth.app.private_key", secrets)
		if err != nil {
			return nil, err
		}
		if err := c.useApp(cfg, key); err != nil {
			return nil, err
		}
		return c, nil
	}
	token, err := cfg.Auth.Token.value("auth.token", secrets)
	if err != nil {
		return nil, err
	}
	c.api.Credential = func(context.Context) (string, *connector.Error) { return "Bearer " + token, nil }
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
	if err := c.Validate(call); err != nil {
		return connector.Result{}, &connector.Error{
			Kind: connector.Terminal, Code: string(gatehouse.CodeInvalid), Detail: err.Error(), Err: err,
		}
	}
	ctx, cancel := context.WithTimeout(ctx, c.timeout)
	defer cancel()
	unlock := c.targets.Lock(ctx, call.Target.EntityType+" "+call.Target.EntityRef)
	if unlock == nil {
		return connector.Result{}, &connector.Error{
			Kind: connector.NotSent, Code: "timeout", Detail: "the time was over before the call's turn came",
		}
	}
	defer unlock()
	do := map[string]func(context.Context, connector.Call) (connector.Result, *connector.Error){
		opComment: c.comment, opAddLabel: c.label, opRemoveLabel: c.label, opMerge: c.merge, opDispatch: c.dispatch,
		opCancelRun: c.cancelRun, opRelease: c.release, opDeleteComment: c.remove, opDeleteRelease: c.remove,
	}[call.Operation]
	res, failed := do(ctx, call)
	if failed != nil {
		return res, failed
	}
	return res, nil
}

// send makes the only writing call; the answer must have one of the given statuses.
func (c *Connector) send(
	ctx context.Context, method, path string, body gatehouse.JSON, statuses ...int,
) (res connector.Result, doc gatehouse.JSON, failed *connector.Error) {
	if failed := c.pace.Wait(ctx, ""); failed != nil {
		return res, "", failed
	}
	r, a, failed := c.api.Do(ctx, method, path, nil, body)
	if r != nil {
		res.RequestMetadata = r.Metadata()
	}
	if failed != nil {
		return res, "", failed
	}
	doc = a.JSON()
	res.ResponseMetadata = a.Metadata(doc)
	if !slices.Contains(statuses, a.Status) {
		return res, doc, c.failure(a)
	}
	return res, doc, nil
}

// reference names an entity, by its number, in the repository of a call.
func reference(call connector.Call, id gatehouse.JSON) string {
	repository, _ := place(call)
	return repository + "/" + string(id)
}

// notAsApproved compares the members of an answer with the approved ones.
func notAsApproved(doc gatehouse.JSON, approved ...gatehouse.Member) *connector.Error {
	for _, m := range approved {
		if got, ok := doc.Get(m.Name); !ok || !got.Equal(m.Value) {
			if len(got) > 200 {
				got = got[:200] + "…"
			}
			return &connector.Error{
				Code: "not_as_approved", Detail: "GitHub has done it, but says that " + m.Name + " is " + string(got),
			}
		}
	}
	return nil
}
