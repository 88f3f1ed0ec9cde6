package api

import (
	"archive/zip"
	"bytes"
	"crypto/sha256"
	"encoding/hex"
	"reflect"
	"slices"
	"strings"
	"time"

	"github.com/gatehouse-dev/gatehouse"
)

func testAction() *gatehouse.Action {
	a := &gatehouse.Action{
		ID: "act_1", Revision: 1, Tenant: "default", Status: gatehouse.StatusPending,
		Digest: "sha256:" + gatehouse.Digest(strings.Repeat("a", 64)), ProposedBy: "bot", ProposerID: "prn_bot",
		ProposedAt: testTime,
		Proposal: gatehouse.Proposal{
			ActionType: "price_change", Connector: "shop", Operation: "update",
			Target:       gatehouse.Target{EntityType: "item", EntityRef: "SKU-1042", Version: "7"},
			CurrentState: `{"price":"10.00"}`, ProposedChange: `{"price":"12.50","ref":1234567890123456789}`,
			Rationale: "supplier raised <cost> by 25 %", RiskLevel: 3, ExpiresIn: gatehouse.Span(4 * time.Hour),
			Magnitude: &gatehouse.Magnitude{Amount: "2.50", Currency: "USD"}, IdempotencyKey: "act_1:1",
		},
		Policy: gatehouse.PolicyOutcome{Outcome: gatehouse.OutcomeNeedsApproval, Rules: []string{"default"},
			Reasons: []string{"L3"}, Version: 1},
	}
	a.Approval = &gatehouse.Approval{
		ID: "apr_1", ActionID: "act_1", Status: gatehouse.ApprovalRequested, Required: 1,
		Roles: []gatehouse.Role{gatehouse.RoleApprover}, Excluded: []string{"prn_bot"}, ExpiresAt: testTime.Add(time.Hour),
		CreatedAt: testTime,
	}
	return a
}

func testRun() *gatehouse.Run {
	return &gatehouse.Run{
		ID: "run_1", Tenant: "default", Workflow: "triage", Version: 2, Workspace: "default", Status: gatehouse.RunRunning,
		Trigger:    gatehouse.TriggerAPI,
		TriggerRef: "INC1", Input: `{"n":12345678901234567890}`, StartedBy: "bot", StarterID: "prn_bot", Writes: 1,
		CreatedAt: testTime, StartedAt: &testTime,
		Steps: []*gatehouse.Step{testStep()},
	}
}

func testStep() *gatehouse.Step {
	return &gatehouse.Step{
		ID: "stp_1", Tenant: "default", RunID: "run_1", Key: "page", Workflow: "triage", Workspace: "default",
		Uses: "worker.page", Tool: "page",
		Status: gatehouse.StepRunning, Attempts: 1, IdempotencyKey: "run_1:page", Input: `{"who":"ana"}`, Generation: 3,
		LeaseOwner: "work",
		LeaseUntil: &testTime, CreatedAt: testTime, ReadyAt: &testTime, StartedAt: &testTime,
	}
}

func testWorkflow() *gatehouse.Workflow {
	return &gatehouse.Workflow{
		ID: "wfl_1", Tenant: "default", Name: "triage", Version: 2, Workspace: "default", Source: "name: triage\n",
		Digest:    "sha256:ab",
		CreatedBy: "op", CreatedAt: testTime,
	}
}

func testBundle() *gatehouse.Bundle {
	var archive bytes.Buffer
	z := zip.NewWriter(&archive)
	if w, err := z.Create("manifest.json"); err == nil {
		_, _ = w.Write([]byte(`{"files":[]}`))
	}
	if err := z.Close(); err != nil {
		panic(err)
	}
	sum := sha256.Sum256(archive.Bytes())
	return &gatehouse.Bundle{RunID: "run_1", SHA256: hex.EncodeToString(sum[:]), Manifest: `{"files":[]}`,
		Archive: archive.Bytes(), CreatedAt: testTime}
}

// samples are valid values of types for which a value by kind would not be valid.
var samples = map[reflect.Type]any{
	typeOf[time.Time]():                    testTime,
	typeOf[time.Duration]():                time.Minute,
	typeOf[gatehouse.Duration]():           gatehouse.Duration(time.Minute),
	typeOf[gatehouse.Span]():               gatehouse.Span(time.Minute),
	typeOf[gatehouse.JSON]():               gatehouse.JSON(`{"n":1.10}`),
	typeOf[gatehouse.Decimal]():            gatehouse.Decimal("12.50"),
	typeOf[gatehouse.Hash]():               gatehouse.Hash{1, 2, 3},
	typeOf[gatehouse.Digest]():             gatehouse.Digest(strings.Repeat("a", 64)),
	typeOf[gatehouse.NotificationStatus](): gatehouse.NotificationFailed,
	typeOf[gatehouse.RingKeyState]():       gatehouse.RingKeyActive,
	typeOf[gatehouse.Lease]():              gatehouse.Lease{Generation: 3, ExpiresAt: testTime.Add(time.Minute)},
	typeOf[*gatehouse.Answer](): &gatehouse.Answer{
		Code: gatehouse.Decided, Result: gatehouse.Decided, Action: testAction(), Votes: 1, Required: 1,
	},
	typeOf[*gatehouse.ShortAnswer](): &gatehouse.ShortAnswer{
		ActionID: "act_1", Status: "already_approved", ApprovedBy: "ana", ApprovedAt: &testTime,
	},
	typeOf[*gatehouse.BulkAnswer](): &gatehouse.BulkAnswer{
		Results: []gatehouse.BulkResult{
			{ActionID: "act_1", Result: gatehouse.Decided}, {ActionID: "act_2", Skipped: "already_decided"},
			{ActionID: "act_3", Skipped: "individual_decision_required"},
		},
		Decided: 1, Skipped: 2,
	},
	typeOf[*gatehouse.Credentials](): &gatehouse.Credentials{
		ID: "prn_1", Key: "gth_new", KeyID: "key_2", EditToken: "gte_new",
	},
	typeOf[*gatehouse.Action]():   testAction(),
	typeOf[*gatehouse.Run]():      testRun(),
	typeOf[*gatehouse.Step]():     testStep(),
	typeOf[*gatehouse.Bundle]():   testBundle(),
	typeOf[*gatehouse.Workflow](): testWorkflow(),
	typeOf[*gatehouse.PolicyVersion](): &gatehouse.PolicyVersion{
		Tenant: "default", Version: 2, Source: "version: 1\n", SHA256: "ab", Active: true, AppliedBy: "ana",
		AppliedAt: testTime,
		Warnings:  []gatehouse.PolicyFinding{{Line: 1, Column: 1, Detail: "x", Remark: true}}, ActionID: "act_1",
	},
}

// sampleOf is a value of a type with all its members.
func sampleOf(t reflect.Type) any {
	v := reflect.New(t).Elem()
	fillSample(v, nil)
	return v.Interface()
}

// fillSample fills a value. outer are the types that contain it; none of them is filled again within it.
func fillSample(v reflect.Value, outer []reflect.Type) {
	t := v.Type()
	if sample, ok := samples[t]; ok {
		v.Set(reflect.ValueOf(sample))
		return
	}
	switch t.Kind() {
	case reflect.String:
		v.SetString("x")
		if schema := scalars[t]; schema != nil && len(schema().Enum) > 0 {
			v.SetString(schema().Enum[0].(string))
		}
	case reflect.Int, reflect.Int32, reflect.Int64:
		v.SetInt(1)
	case reflect.Uint8, reflect.Uint32:
		v.SetUint(1)
	case reflect.Bool:
		v.SetBool(true)
	case reflect.Float64:
		v.SetFloat(0.5)
	case reflect.Pointer:
		fillNew(v, outer, func(e reflect.Value) { v.Set(e.Addr()) })
	case reflect.Slice:
		fillNew(v, outer, func(e reflect.Value) { v.Set(reflect.Append(v, e)) })
	case reflect.Map:
		key := reflect.New(t.Key()).Elem()
		fillSample(key, outer)
		fillNew(v, outer, func(e reflect.Value) {
			v.Set(reflect.MakeMap(t))
			v.SetMapIndex(key, e)
		})
	case reflect.Struct:
		for i := range t.NumField() {
			if f := t.Field(i); f.IsExported() && f.Tag.Get("json") != "-" {
				fillSample(v.Field(i), append(outer, t))
			}
		}
	default:
		panic("no sample of " + t.String())
	}
}

// fillNew fills what a pointer, list or map contains.
func fillNew(v reflect.Value, outer []reflect.Type, set func(reflect.Value)) {
	element := v.Type().Elem()
	if slices.Contains(outer, element) {
		return
	}
	e := reflect.New(element).Elem()
	fillSample(e, outer)
	set(e)
}
