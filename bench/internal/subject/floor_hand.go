package subject

import (
	"regexp"

	"github.com/assent-dev/assent/bench/internal/model"
)

// Hand returns the code that a person would write for the single rule of (a) or (b). It returns
// nil for the other workloads.
func Hand(w *model.Workload) *Subject {
	decide, ok := map[string]func(args map[string]any) bool{"a": handA, "b": handB()}[w.Name]
	if !ok {
		return nil
	}
	asked := false
	return &Subject{
		Engine: "hand",
		Input:  Decoded,
		Scope:  Floor,
		Decide: func(i int) int {
			if asked = decide(w.Calls[i].Args); asked {
				return 1
			}
			return 0
		},
		Reasons: func() []string {
			if asked {
				return []string{w.Rules[0].ID}
			}
			return nil
		},
	}
}

func handA(args map[string]any) bool {
	amount, ok := args["amount"].(float64)
	if !ok || amount <= 10_000 {
		return false
	}
	currency, _ := args["currency"].(string)
	return currency == "USD"
}

func handB() func(args map[string]any) bool {
	account := regexp.MustCompile(`^acct_[0-9]+_prod$`)
	return func(args map[string]any) bool {
		return handBAccount(args, account) || handBCountry(args) || handBChannel(args)
	}
}

func handBAccount(args map[string]any, account *regexp.Regexp) bool {
	amount, ok := args["amount"].(float64)
	if !ok || amount < 30_000 {
		return false
	}
	name, ok := args["account"].(string)
	return ok && account.MatchString(name)
}

func handBCountry(args map[string]any) bool {
	order, _ := args["order"].(map[string]any)
	amount, ok := order["amount"].(float64)
	if !ok || amount <= 40_000 {
		return false
	}
	switch args["country"] {
	case "RU", "IR", "KP", "SY", "CU", "VE", "BY", "MM":
		return true
	}
	return false
}

func handBChannel(args map[string]any) bool {
	env, ok := args["env"].(string)
	if !ok || env == "test" {
		return false
	}
	switch args["channel"] {
	case "web", "api", "batch", nil:
		return false
	}
	return true
}
