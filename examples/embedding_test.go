package examples_test

import (
	"fmt"
	"log"
	"os"

	"github.com/assent-dev/assent/policy"
	"github.com/assent-dev/assent/resolve"
	"github.com/assent-dev/assent/schema"
)

// Example is the README's embedding example, run on the trading desk.
func Example() {
	if err := os.Chdir("trading-desk"); err != nil {
		log.Fatal(err)
	}
	defer os.Chdir("..")
	text, err := os.ReadFile("agent.agf.yaml")
	if err != nil {
		log.Fatal(err)
	}

	agent, findings := schema.Parse("desk.agf.yaml", text)
	if agent == nil {
		log.Fatal(findings)
	}
	policies, findings := policy.LoadFS(os.DirFS("policies"), "policies")
	plan, err := resolve.Compile(agent, policies, resolve.Options{})
	if err != nil {
		log.Print(err) // the plan denies every call until this is fixed
	}
	decision := plan.Decide(&resolve.Call{
		Kind: resolve.Tool,
		Tool: "execute_trade",
		Args: []byte(`{"amount":20000,"currency":"USD"}`),
	})
	fmt.Println(decision.Outcome, decision.Message)
	for _, reason := range decision.Reasons {
		fmt.Println(reason.Source, reason.Policy, reason.Rule, reason.Detail)
	}
	// Output:
	// ask Execute a trade of 20000 USD?
	// agent  local_tools.execute_trade amount gt 10000 is true (number); currency equals "USD" is true (string of 3 characters)
	// policy acme.finance.trade-controls-v2 large-trades amount gt 15000 is true (number)
}
