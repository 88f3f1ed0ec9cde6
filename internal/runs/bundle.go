package runs

import (
	"archive/zip"
	"bytes"
	"context"
	"crypto/sha256"
	"encoding/hex"
	"encoding/json"
	"errors"
	"time"

	"github.com/gatehouse-dev/gatehouse"
	"github.com/gatehouse-dev/gatehouse/internal/aside"
	"github.com/gatehouse-dev/gatehouse/internal/audit"
	"github.com/gatehouse-dev/gatehouse/internal/gate"
	"github.com/gatehouse-dev/gatehouse/internal/usecase"
)

// bundleBatch bounds the runs of one round of Bundle.
const bundleBatch = 20

// Bundle makes the evidence bundles of some ended runs that have none, and returns
// how many it made. A run whose bundle cannot be made is set aside.
func (r *Runs) Bundle(ctx context.Context) (int, error) {
	var runs []*gatehouse.Run
	var now time.Time
	err := r.Store.ViewQueues(ctx, func(q gatehouse.ReadQueues) (err error) {
		now = q.Now()
		runs, err = q.UnbundledRuns(bundleBatch + r.asideBundles.Size())
		return err
	})
	if err != nil {
		return 0, err
	}
	made := 0
	id := func(run *gatehouse.Run) string { return run.ID }
	for _, run := range aside.Due(&r.asideBundles, runs, id, bundleBatch, now) {
		e := r.bundle(ctx, run)
		r.asideBundles.Note(run.ID, e, now)
		switch {
		case e == nil:
			made++
		case gatehouse.CodeOf(e) != gatehouse.CodeBusy:
			err = errors.Join(err, e)
		}
	}
	return made, err
}

// bundle makes the evidence bundle of one run, unless it exists.
func (r *Runs) bundle(ctx context.Context, run *gatehouse.Run) error {
	var d *gatehouse.RunDetail
	var entries []*gatehouse.Entry
	var receipts []*gatehouse.Receipt
	var head *gatehouse.LogHead
	known := false
	err := r.Store.View(ctx, run.Tenant, func(tx gatehouse.ReadTx) error {
		known, receipts = false, nil
		if _, err := tx.FindBundle(run.ID); err == nil {
			known = true
			return nil
		} else if !errors.Is(err, gatehouse.ErrNotFound) {
			return err
		}
		full, err := tx.FindRun(run.ID)
		if err != nil {
			return err
		}
		if d, err = r.detail(tx, full); err != nil {
			return err
		}
		if entries, err = tx.ListRunEntries(run.ID); err != nil {
			return err
		}
		for _, a := range d.Actions {
			of, err := gate.ReceiptsOf(tx, a)
			if err != nil {
				return err
			}
			receipts = append(receipts, of...)
			more, err := tx.ListActionEntries(a.ID)
			if err != nil {
				return err
			}
			entries = append(entries, more...)
		}
		h, err := audit.Head(tx, run.Tenant)
		head = &h
		return err
	})
	if err != nil || known {
		return err
	}
	if !numbered(d.Run, entries) {
		return usecase.Busy(errors.New("the last entries of the run have no number yet"))
	}

	b, err := makeBundle(d, receipts, entries, head)
	if err != nil {
		return err
	}
	err = r.Store.Update(ctx, b.Tenant, func(tx gatehouse.Tx) error {
		row := *b
		row.CreatedAt = tx.Now()
		return tx.InsertBundle(&row)
	})
	if errors.Is(err, gatehouse.ErrConflict) {
		return nil // another server made the bundle
	}
	if err == nil {
		// Clients that watch the run can fetch the bundle now; the log has no entry
		// for it.
		r.Hints.Notify(usecase.TopicLog(run.Tenant))
	}
	return err
}

// numbered reports whether the leaf of the run's end has a number. Then all earlier leaves have
// one, too.
func numbered(run *gatehouse.Run, entries []*gatehouse.Entry) bool {
	want := "run." + eventOf(string(run.Status))
	for _, e := range entries {
		if kind, _ := e.Body.Get("type"); kind == gatehouse.StringJSON(want) {
			return true
		}
	}
	return false
}

// The files of a bundle. Of the inputs and outputs of runs and steps, they have only
// the digest, the size and the field names; the values stay in the store.
type (
	bundleRun struct {
		ID         string                `json:"id"`
		Tenant     string                `json:"tenant"`
		Workflow   string                `json:"workflow"`
		Version    int                   `json:"workflow_version"`
		Status     gatehouse.RunStatus   `json:"status"`
		Trigger    gatehouse.TriggerType `json:"trigger"`
		TriggerRef string                `json:"trigger_ref,omitempty"`
		StartedBy  string                `json:"started_by"`
		ParentRun  string                `json:"parent_run,omitempty"`
		RetryOf    string                `json:"retry_of,omitempty"`
		Input      valueMetadata         `json:"input"`
		Output     valueMetadata         `json:"output"`
		Failure    *gatehouse.Failure    `json:"failure"`
		CreatedAt  time.Time             `json:"created_at"`
		StartedAt  *time.Time            `json:"started_at"`
		FinishedAt *time.Time            `json:"finished_at"`
	}
	bundleStep struct {
		ID             string               `json:"id"`
		Key            string               `json:"key"`
		Uses           string               `json:"uses"`
		Status         gatehouse.StepStatus `json:"status"`
		Skipped        bool                 `json:"skipped"`
		Attempts       int                  `json:"attempts"`
		ActionID       string               `json:"action_id,omitempty"`
		ChildRun       string               `json:"child_run,omitempty"`
		IdempotencyKey string               `json:"idempotency_key,omitempty"`
		Input          valueMetadata        `json:"input"`
		Output         valueMetadata        `json:"output"`
		Failure        *gatehouse.Failure   `json:"failure"`
		StartedAt      *time.Time           `json:"started_at"`
		FinishedAt     *time.Time           `json:"finished_at"`
	}
	bundleDecision struct {
		ActionID   string                  `json:"action_id"`
		ActionType string                  `json:"action_type"`
		Digest     gatehouse.Digest        `json:"digest"`
		RiskLevel  gatehouse.RiskLevel     `json:"risk_level"`
		Status     gatehouse.Status        `json:"status"`
		Policy     gatehouse.PolicyOutcome `json:"policy"`
		Approval   *gatehouse.Approval     `json:"approval"`
		DecidedBy  string                  `json:"decided_by,omitempty"`
		DecidedAt  *time.Time              `json:"decided_at,omitempty"`
		DecidedVia gatehouse.Channel       `json:"decided_via,omitempty"`
	}
	bundleCost struct {
		Provider     string            `json:"provider"`
		Model        string            `json:"model"`
		Calls        int               `json:"calls"`
		InputTokens  int64             `json:"input_tokens"`
		OutputTokens int64             `json:"output_tokens"`
		Cost         gatehouse.Decimal `json:"cost"`
		Currency     string            `json:"currency"`
	}
	bundleAudit struct {
		Head    *gatehouse.LogHead `json:"head"`
		Entries []*gatehouse.Entry `json:"entries"`
	}
	valueMetadata struct {
		Digest gatehouse.Digest `json:"digest,omitempty"`
		Bytes  int              `json:"bytes"`
		Fields []string         `json:"fields,omitempty"`
	}
	bundleFile struct {
		Name   string `json:"name"`
		Bytes  int    `json:"bytes"`
		SHA256 string `json:"sha256"`
	}
)

// metadataOf describes a value without its content: digest, size, and the names of
// its fields.
func metadataOf(j gatehouse.JSON) valueMetadata {
	if j == "" {
		return valueMetadata{}
	}
	v := valueMetadata{Digest: gatehouse.NewDigest(j), Bytes: len(j)}
	if fields, err := j.Fields(); err == nil {
		for _, f := range fields {
			v.Fields = append(v.Fields, f.Name)
		}
	}
	return v
}

func makeBundle(
	d *gatehouse.RunDetail, receipts []*gatehouse.Receipt, entries []*gatehouse.Entry, head *gatehouse.LogHead,
) (*gatehouse.Bundle, error) {
	run := d.Run
	steps := make([]bundleStep, len(run.Steps))
	for i, s := range run.Steps {
		steps[i] = bundleStep{
			ID: s.ID, Key: s.Key, Uses: s.Uses, Status: s.Status, Skipped: s.Skipped, Attempts: s.Attempts, ActionID: s.ActionID,
			ChildRun: s.ChildRun, IdempotencyKey: s.IdempotencyKey, Input: metadataOf(s.Input), Output: metadataOf(s.Output),
			Failure:   s.Failure,
			StartedAt: s.StartedAt, FinishedAt: s.FinishedAt,
		}
	}

	decisions := make([]bundleDecision, len(d.Actions))
	for i, a := range d.Actions {
		decisions[i] = bundleDecision{
			ActionID: a.ID, ActionType: a.ActionType, Digest: a.Digest, RiskLevel: a.RiskLevel, Status: a.Status,
			Policy:   a.Policy,
			Approval: a.Approval, DecidedBy: a.DecidedBy, DecidedAt: a.DecidedAt, DecidedVia: a.DecidedVia,
		}
	}

	at := *run.FinishedAt
	z := newArchive(at)
	z.add("run.json", bundleRun{
		ID: run.ID, Tenant: run.Tenant, Workflow: run.Workflow, Version: run.Version, Status: run.Status,
		Trigger:    run.Trigger,
		TriggerRef: run.TriggerRef, StartedBy: run.StartedBy, ParentRun: run.ParentRun, RetryOf: run.RetryOf,
		Input: metadataOf(run.Input), Output: metadataOf(run.Output), Failure: run.Failure,
		CreatedAt: run.CreatedAt, StartedAt: run.StartedAt, FinishedAt: run.FinishedAt,
	})
	z.add("steps.json", steps)
	z.add("attempts.json", d.Attempts)
	z.add("decisions.json", decisions)
	z.add("receipts.json", usecase.OrEmpty(receipts))
	z.add("costs.json", costs(d.Usage))
	z.add("audit.json", bundleAudit{head, usecase.OrEmpty(entries)})

	manifest, archive, err := z.close(map[string]any{
		"v": 1, "run": run.ID, "tenant": run.Tenant, "workflow": run.Workflow, "workflow_version": run.Version,
		"status":      run.Status,
		"finished_at": at,
	})
	if err != nil {
		return nil, err
	}
	sum := sha256.Sum256(archive)
	return &gatehouse.Bundle{Tenant: run.Tenant, RunID: run.ID, SHA256: hex.EncodeToString(sum[:]), Manifest: manifest,
		Archive: archive}, nil
}

// costs sums up the cost of model calls by provider and model, in the order of
// their first call.
func costs(usage []*gatehouse.ModelUsage) []bundleCost {
	out := []bundleCost{}
	for _, u := range usage {
		at := -1
		for i, c := range out {
			if c.Provider == u.Provider && c.Model == u.Model && c.Currency == u.Currency {
				at = i
			}
		}
		if at < 0 {
			at = len(out)
			out = append(out, bundleCost{Provider: u.Provider, Model: u.Model, Currency: u.Currency, Cost: "0"})
		}
		c := &out[at]
		c.Calls++
		c.InputTokens += u.InputTokens
		c.OutputTokens += u.OutputTokens
		c.Cost = c.Cost.Add(u.Cost)
	}
	return out
}

// archive writes a zip whose bytes depend only on its content.
type archive struct {
	buf   bytes.Buffer
	w     *zip.Writer
	at    time.Time
	files []bundleFile
	err   error
}

func newArchive(at time.Time) *archive {
	z := &archive{at: at.UTC().Truncate(time.Second)}
	z.w = zip.NewWriter(&z.buf)
	return z
}

func (z *archive) add(name string, v any) {
	if z.err != nil {
		return
	}
	b, err := json.MarshalIndent(v, "", "  ")
	if err != nil {
		z.err = err
		return
	}
	sum := sha256.Sum256(b)
	z.files = append(z.files, bundleFile{name, len(b), hex.EncodeToString(sum[:])})
	z.write(name, b)
}

func (z *archive) write(name string, b []byte) {
	f, err := z.w.CreateHeader(&zip.FileHeader{Name: name, Method: zip.Deflate, Modified: z.at})
	if err == nil {
		_, err = f.Write(b)
	}
	if err != nil {
		z.err = err
	}
}

func (z *archive) close(manifest map[string]any) (gatehouse.JSON, []byte, error) {
	manifest["files"] = z.files
	m := gatehouse.MustJSON(manifest)
	z.write("manifest.json", []byte(m))
	if err := errors.Join(z.err, z.w.Close()); err != nil {
		return "", nil, err
	}
	return m, z.buf.Bytes(), nil
}
