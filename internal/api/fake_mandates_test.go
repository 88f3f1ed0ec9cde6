package api

import (
	"context"
	"time"

	"github.com/gatehouse-dev/gatehouse"
)

func testMandate() *gatehouse.Mandate {
	limit := gatehouse.Limit{Count: 3, Amounts: []gatehouse.Magnitude{{Amount: "10.00", Currency: "EUR"}}}
	m := &gatehouse.Mandate{
		ID: "mnd_1", Tenant: "default", Action: "act_1", Agent: "prn_2", AgentName: "bot", Goal: "<b>refund</b>",
		Steps: []gatehouse.MandateStep{{
			Cover: gatehouse.Cover{
				ActionType: "refund", Connector: "shop", Fingerprint: "f1", Operation: "refund", EntityType: "order",
				Keys: []string{"1"}, When: "true",
			},
			Budget: gatehouse.Budget{Limit: limit},
		}},
		InAll: gatehouse.Budget{Limit: limit}, PerDay: &gatehouse.Budget{Limit: limit}, Day: "2026-11-20",
		Level: gatehouse.L3, Voters: []gatehouse.MandateVoter{{ID: "prn_1", Name: "ana"}},
		CreatedAt: testTime, ExpiresAt: testTime.Add(time.Hour), PausedAt: &testTime, PausedAction: "act_2",
	}
	m.Worst = m.WorstCase()
	return m
}

func (f *fake) ProposeMandate(ctx context.Context, _ gatehouse.Plan) (*gatehouse.Action, error) {
	return use[*gatehouse.Action](ctx, f, "ProposeMandate", "")
}

func (f *fake) ListMandates(ctx context.Context) ([]*gatehouse.Mandate, error) {
	return use[[]*gatehouse.Mandate](ctx, f, "ListMandates", "")
}

func (f *fake) FindMandate(ctx context.Context, id string) (*gatehouse.Mandate, error) {
	return use[*gatehouse.Mandate](ctx, f, "FindMandate", id)
}

func (f *fake) NarrowMandate(ctx context.Context, id string, n gatehouse.Narrowing) (*gatehouse.Mandate, error) {
	return use[*gatehouse.Mandate](ctx, f, "NarrowMandate", id, n)
}

func (f *fake) PauseMandate(ctx context.Context, id string) (*gatehouse.Mandate, error) {
	return use[*gatehouse.Mandate](ctx, f, "PauseMandate", id)
}

func (f *fake) ResumeMandate(ctx context.Context, id string) (*gatehouse.Mandate, error) {
	return use[*gatehouse.Mandate](ctx, f, "ResumeMandate", id)
}

func (f *fake) RevokeMandate(ctx context.Context, id string) (*gatehouse.Mandate, error) {
	return use[*gatehouse.Mandate](ctx, f, "RevokeMandate", id)
}
