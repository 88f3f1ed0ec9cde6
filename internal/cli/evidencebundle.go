package cli

import (
	"archive/zip"
	"bytes"
	"crypto/sha256"
	"encoding/hex"
	"encoding/json"
	"fmt"
	"io"
	"strings"
	"time"

	"github.com/gatehouse-dev/gatehouse"
	"github.com/gatehouse-dev/gatehouse/internal/audit"
	"github.com/gatehouse-dev/gatehouse/internal/sheet"
	"github.com/gatehouse-dev/gatehouse/internal/term"
)

// bundleReport is the content of a bundle, and its problems. Content with a wrong hash is included,
// and its hash is one of the problems.
type bundleReport struct {
	OK       bool     `json:"ok"`
	Problems []string `json:"problems"`
	// SHA256 is the hash of the archive.
	SHA256    string             `json:"sha256"`
	Manifest  bundleManifest     `json:"manifest"`
	Run       bundleRun          `json:"run"`
	Steps     []bundleStep       `json:"steps"`
	Decisions []bundleDecision   `json:"decisions"`
	Receipts  []bundleReceipt    `json:"receipts"`
	Costs     []*sheet.ModelCost `json:"costs"`
	// Entries counts the audit entries, First and Last are their positions, and Head is the log's
	// head when the bundle was made.
	Entries int                `json:"audit_entries"`
	First   *int64             `json:"audit_first,omitempty"`
	Last    *int64             `json:"audit_last,omitempty"`
	Head    *gatehouse.LogHead `json:"audit_head,omitempty"`
}

// The files of a bundle, with the members that the command prints or checks.
type (
	bundleManifest struct {
		Version  int                 `json:"v"`
		Run      string              `json:"run"`
		Tenant   string              `json:"tenant"`
		Workflow string              `json:"workflow"`
		Revision int                 `json:"workflow_version"`
		Status   gatehouse.RunStatus `json:"status"`
		Files    []bundleFile        `json:"files"`
	}
	bundleFile struct {
		Name   string `json:"name"`
		Bytes  int64  `json:"bytes"`
		SHA256 string `json:"sha256"`
	}
	bundleRun struct {
		ID         string             `json:"id"`
		Trigger    string             `json:"trigger"`
		TriggerRef string             `json:"trigger_ref,omitempty"`
		StartedBy  string             `json:"started_by"`
		Failure    *gatehouse.Failure `json:"failure"`
		CreatedAt  time.Time          `json:"created_at"`
		FinishedAt *time.Time         `json:"finished_at"`
	}
	bundleStep struct {
		Key      string               `json:"key"`
		Uses     string               `json:"uses"`
		Status   gatehouse.StepStatus `json:"status"`
		Skipped  bool                 `json:"skipped"`
		Attempts int                  `json:"attempts"`
		ActionID string               `json:"action_id,omitempty"`
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
	bundleReceipt struct {
		ID         string `json:"id"`
		ActionID   string `json:"action_id"`
		Attempt    int    `json:"attempt"`
		Outcome    string `json:"outcome"`
		ExternalID string `json:"external_id,omitempty"`
		Reversible bool   `json:"reversible"`
	}
	bundleAudit struct {
		Head    *gatehouse.LogHead `json:"head"`
		Entries []exactEntry       `json:"entries"`
	}
)

const manifestFile = "manifest.json"

func (r *bundleReport) problem(format string, args ...any) {
	r.Problems = append(r.Problems, fmt.Sprintf(format, args...))
}

// err returns the problems as one error; nil if there are none.
func (r *bundleReport) err() error {
	if len(r.Problems) == 0 {
		return nil
	}
	return fmt.Errorf("the bundle is not valid: %s", strings.Join(r.Problems, "; "))
}

// expect compares the bundle with its known SHA-256 and run; "" means not known. The run may be a short id.
func (r *bundleReport) expect(sum, run string) {
	if sum != "" && !strings.EqualFold(sum, r.SHA256) {
		r.problem("its SHA-256 is %s, and should be %s", r.SHA256, sum)
	}
	short, isShort := gatehouse.ShortID("run", run)
	same := r.Manifest.Run == run || isShort && strings.HasPrefix(r.Manifest.Run, short)
	if run != "" && !same {
		r.problem("it is of the run %s, not of %s", r.Manifest.Run, run)
	}
	r.OK = len(r.Problems) == 0
}

// verifyBundle reads an archive and recomputes every hash.
func verifyBundle(archive []byte) *bundleReport {
	sum := sha256.Sum256(archive)
	r := &bundleReport{SHA256: hex.EncodeToString(sum[:]), Problems: []string{}}
	files, err := r.open(archive)
	if err != nil {
		r.problem("%v", err)
		return r
	}
	var log bundleAudit
	for _, f := range []struct {
		name string
		into any
	}{
		{"run.json", &r.Run}, {"steps.json", &r.Steps}, {"decisions.json", &r.Decisions},
		{"receipts.json", &r.Receipts}, {"costs.json", &r.Costs}, {"audit.json", &log},
	} {
		content, ok := files[f.name]
		if !ok {
			r.problem("%s is missing", f.name)
			continue
		}
		err := gatehouse.CheckJSONWithin(content, gatehouse.MaxDepth+4)
		if err == nil && f.into == any(&log) {
			err = exactMembers(content, "head", "entries")
		}
		if err == nil {
			err = json.Unmarshal(content, f.into)
		}
		if err != nil {
			r.problem("cannot read %s: %v", f.name, err)
		}
	}
	if r.Run.ID != r.Manifest.Run {
		r.problem("run.json is of the run %s, the manifest of %s", r.Run.ID, r.Manifest.Run)
	}
	r.entries(&log)
	r.OK = len(r.Problems) == 0
	return r
}

// open reads the files that the manifest names. Each must be in the archive once, with the manifest's
// hash and size; no other file may be in the archive.
func (r *bundleReport) open(archive []byte) (map[string][]byte, error) {
	z, err := zip.NewReader(bytes.NewReader(archive), int64(len(archive)))
	if err != nil {
		return nil, fmt.Errorf("it is not a ZIP archive: %w", err)
	}
	found := make(map[string]*zip.File, len(z.File))
	for _, f := range z.File {
		if found[f.Name] != nil {
			r.problem("%s appears twice", f.Name)
		}
		found[f.Name] = f
	}
	if found[manifestFile] == nil {
		return nil, fmt.Errorf("it has no %s", manifestFile)
	}
	manifest, err := unzip(found[manifestFile], term.MaxBody)
	if err == nil {
		err = json.Unmarshal(manifest, &r.Manifest)
	}
	switch {
	case err != nil:
		return nil, fmt.Errorf("cannot read %s: %w", manifestFile, err)
	case r.Manifest.Version != 1:
		return nil, fmt.Errorf("it has version %d; this command supports version 1", r.Manifest.Version)
	}
	unpacked := int64(0) // no file is read beyond the size in the manifest
	for _, f := range r.Manifest.Files {
		if unpacked += max(0, min(f.Bytes, maxBundle)); unpacked > maxUnpacked {
			return nil, fmt.Errorf("its files have more than %d bytes together", maxUnpacked)
		}
	}
	files := make(map[string][]byte, len(r.Manifest.Files))
	for _, want := range r.Manifest.Files {
		f := found[want.Name]
		delete(found, want.Name)
		if f == nil {
			r.problem("%s is missing", want.Name)
			continue
		}
		content, err := unzip(f, min(want.Bytes, maxBundle))
		if err != nil {
			r.problem("%s cannot be read: %v", want.Name, err)
			continue
		}
		if sum := sha256.Sum256(content); hex.EncodeToString(sum[:]) != want.SHA256 {
			r.problem("%s has the SHA-256 %x, and the manifest says %s", want.Name, sum, want.SHA256)
		}
		if n := int64(len(content)); n != want.Bytes {
			r.problem("%s has %d bytes, and the manifest says %d", want.Name, n, want.Bytes)
		}
		files[want.Name] = content
	}
	delete(found, manifestFile)
	for name := range found {
		r.problem("%s is not in the manifest", name)
	}
	return files, nil
}

// unzip reads a file of the archive. most limits its size, in bytes; a larger file is an error.
func unzip(f *zip.File, most int64) ([]byte, error) {
	in, err := f.Open()
	if err != nil {
		return nil, err
	}
	b, err := io.ReadAll(io.LimitReader(in, most+1))
	if err == nil && int64(len(b)) > most {
		err = fmt.Errorf("it has more than %d bytes", most)
	}
	return b, closing(in, err)
}

// entries recomputes the hash of each audit entry from its text, and checks that the
// entries contain the digest of each decision and the end of the run.
func (r *bundleReport) entries(log *bundleAudit) {
	r.Head, r.Entries = log.Head, len(log.Entries)
	proposed := make(map[string]gatehouse.Digest)
	ended := false
	for _, e := range log.Entries {
		at := e.Index
		if r.First == nil || at < *r.First {
			r.First = &at
		}
		if r.Last == nil || at > *r.Last {
			r.Last = &at
		}
		if audit.LeafHash(e.Body) != e.LeafHash {
			r.problem("audit entry %d has the leaf hash %s, but its text gives %s", at, term.HashText(e.LeafHash),
				term.HashText(audit.LeafHash(e.Body)))
		}
		var l gatehouse.Leaf
		if err := json.Unmarshal([]byte(e.Body), &l); err != nil {
			r.problem("cannot read audit entry %d: %v", at, err)
			continue
		}
		if l.Tenant != r.Manifest.Tenant {
			r.problem("audit entry %d is of the tenant %s", at, l.Tenant)
		}
		if l.Digest != "" && l.ActionID != "" {
			proposed[l.ActionID] = l.Digest
		}
		ended = ended || l.Subject == r.Manifest.Run && l.To == string(r.Manifest.Status)
	}
	switch {
	case r.Head == nil:
		r.problem("audit.json has no head")
	case r.Head.Tenant != r.Manifest.Tenant:
		r.problem("the head is of the tenant %s", r.Head.Tenant)
	case r.Last != nil && *r.Last >= r.Head.Size:
		r.problem("audit entry %d lies beyond the head, whose size is %d", *r.Last, r.Head.Size)
	}
	if !ended {
		r.problem("no audit entry says that the run is %s", r.Manifest.Status)
	}
	for _, d := range r.Decisions {
		if proposed[d.ActionID] != d.Digest {
			r.problem("the action %s has the digest %s, and the audit log says %q", d.ActionID, d.Digest, proposed[d.ActionID])
		}
	}
}

// printBundle prints the content of a bundle.
func printBundle(s *sheet.Sheet, r *bundleReport) {
	m := r.Manifest
	s.Line("run", m.Run)
	s.Line("status", string(m.Status))
	if f := r.Run.Failure; f != nil {
		s.Line("failure", f.Detail+" ("+f.Code+")")
	}
	if m.Workflow != "" { // unset if the archive is not a bundle
		s.Line("workflow", fmt.Sprintf("%s version %d", m.Workflow, m.Revision))
	}
	s.Line("tenant", m.Tenant)
	s.Line("trigger", strings.TrimSpace(r.Run.Trigger+" "+r.Run.TriggerRef))
	s.Line("started by", r.Run.StartedBy)
	if !r.Run.CreatedAt.IsZero() {
		s.Line("created", s.When(r.Run.CreatedAt))
	}
	s.Line("ended", s.WhenPtr(r.Run.FinishedAt))
	s.Raw("sha256", term.Safe(r.SHA256))
	if r.First != nil {
		s.Line("audit", fmt.Sprintf("%s, at %d to %d", term.EntryCount(int64(r.Entries)), *r.First, *r.Last))
	}
	if r.Head != nil {
		s.Line("head", fmt.Sprintf("size %d, root %s", r.Head.Size, term.HashText(r.Head.Root)))
	}
	printBundleParts(s, r)
	if len(r.Problems) > 0 {
		s.Head("Problems")
		for _, p := range r.Problems {
			s.Item(p)
		}
	}
}

func printBundleParts(s *sheet.Sheet, r *bundleReport) {
	if len(r.Steps) > 0 {
		s.Head("Steps")
	}
	for _, step := range r.Steps {
		state := string(step.Status)
		if step.Skipped {
			state = "skipped"
		}
		s.Item(fmt.Sprintf("%s: %s, %s, %s", step.Key, state, step.Uses, term.Count(step.Attempts, "attempt")))
	}
	if len(r.Decisions) > 0 {
		s.Head("Decisions")
	}
	for _, d := range r.Decisions {
		s.Item(strings.TrimSpace(fmt.Sprintf("%s %s %s %s: policy %s %s",
			d.ActionID, d.ActionType, d.RiskLevel, d.Status, d.Policy.Outcome, strings.Join(d.Policy.Rules, ", "))))
		if d.Approval != nil {
			for _, v := range d.Approval.Votes {
				s.Item(fmt.Sprintf("    %s: %s %s, via %s", v.Name, v.Decision, s.When(v.At), v.Via))
			}
		} else if d.DecidedAt != nil {
			s.Item(fmt.Sprintf("    decided %s by %s, via %s", s.When(*d.DecidedAt), d.DecidedBy, d.DecidedVia))
		}
	}
	if len(r.Receipts) > 0 {
		s.Head("Receipts")
	}
	for _, rc := range r.Receipts {
		undo := "not reversible"
		if rc.Reversible {
			undo = "reversible"
		}
		s.Item(fmt.Sprintf("%s of %s: %s at attempt %d, %s%s", rc.ID, rc.ActionID, rc.Outcome,
			rc.Attempt, undo, sheet.ExternalIDText(rc.ExternalID)))
	}
	if len(r.Costs) > 0 {
		s.Head("Models")
	}
	for _, c := range r.Costs {
		s.Item(c.Text())
	}
}
