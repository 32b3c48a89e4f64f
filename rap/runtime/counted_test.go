package runtime

import (
	"testing"
	"testing/fstest"

	"github.com/assent-dev/assent/approval/hold"
	"github.com/assent-dev/assent/internal/must"
	"github.com/assent-dev/assent/policy"
	"github.com/assent-dev/assent/resolve"
	"github.com/assent-dev/assent/schema"
)

// TestCountedDestructiveToolsAsk: a tool that calls itself destructive asks its question also if the
// service, which counts the call, lets it run without people.
func TestCountedDestructiveToolsAsk(t *testing.T) {
	registry, findings := policy.LoadFS(fstest.MapFS{"a.policy.yaml": {Data: []byte(`schema_version: "1.1.0"
policy_ref: acme.tests.clerk
description: For tests.
applies: implicit
rules:
  - id: many
    match: {targets: [wipe]}
    when: {history: [{within: 1h, count: {gt: 100}}]}
    deny: many
`)}}, "policies")
	if len(findings) > 0 {
		t.Fatal(findings)
	}
	clerk, _ := schema.Parse("clerk.agf.yaml", []byte(rtAgent))
	w := newRTWorld(t)
	w.sets(func() { w.plan = must.Get(resolve.Compile(clerk, registry, resolve.Options{}))(t) })
	w.invoke("a", "wipe", `{}`)
	ref := w.asked(1)
	w.desk.Hold(hold.Held{Ref: ref, State: hold.Approved}) // as the service answers if the rules allow it
	if prompt := w.desk.Of(w.asked(2)).Question.Prompt; prompt != destroysPrompt {
		t.Errorf("the question is %q", prompt)
	}
}
