package runline

import "github.com/gatehouse-dev/gatehouse"

// ModelCost is the cost of the calls of one model.
type ModelCost struct {
	Provider     string            `json:"provider"`
	Model        string            `json:"model"`
	Calls        int               `json:"calls"`
	InputTokens  int64             `json:"input_tokens"`
	OutputTokens int64             `json:"output_tokens"`
	Cost         gatehouse.Decimal `json:"cost"`
	Currency     string            `json:"currency"`
}

// CostsOf adds up the costs of each model in each currency, in the order of the first calls.
func CostsOf(usage []*gatehouse.ModelUsage) []*ModelCost {
	var out []*ModelCost
	of := map[[3]string]*ModelCost{}
	for _, u := range usage {
		key := [3]string{u.Provider, u.Model, u.Currency}
		c := of[key]
		if c == nil {
			c = &ModelCost{Provider: u.Provider, Model: u.Model, Currency: u.Currency, Cost: "0"}
			of[key] = c
			out = append(out, c)
		}
		c.Calls++
		c.InputTokens += u.InputTokens
		c.OutputTokens += u.OutputTokens
		if u.Cost != "" {
			c.Cost = c.Cost.Add(u.Cost)
		}
	}
	return out
}
