package compat_test

import (
	"os"
	"slices"
	"testing"

	"github.com/assent-dev/assent/agent"
	"github.com/assent-dev/assent/internal/must"
)

// deviation is the result of a case in the Default profile if it differs.
type deviation struct {
	why  string
	runs map[string]int // runs of the relevant functions
	open int            // open requests after the run
}

// differs lists the cases that have a different result in the Default profile. All other cases
// have the same result in both profiles, with the sibling and order switches set as in .NET.
// Cases marked as holes show behavior that must not happen in the Default profile.
var differs = map[string]deviation{
	"derived/DuplicateApprovedResponsesExecuteTwiceInBareLoop": {"hole: two answers run once",
		map[string]int{"Func1": 1}, 0},
	"derived/ConflictingResponsesBothTakeEffectInBareLoop": {
		"hole: of two answers that differ the rejection stands",
		map[string]int{"Func1": 0},
		0,
	},
	"derived/ResponseBeforeRequestThrows": {"hole: the request stays open", map[string]int{"Func1": 0}, 1},
	"derived/PartialAnswersThrow": {"hole: the answered call runs, the other stays open",
		map[string]int{"Func1": 1, "Func2": 0}, 1},
	"derived/SameCallIdDifferentRequestIdIsAcceptedButLosesMetadata": {"hole: the answer finds no request",
		map[string]int{"Func1": 0}, 1},
	"derived/SameRequestIdDifferentCallIdThrows": {"hole: the answer shows another call",
		map[string]int{"Func1": 0}, 1},
	"derived/DuplicateRequestIdsInHistoryThrow": {
		"hole: a request never has an old one's id, so the answer is late",
		map[string]int{"Func1": 1},
		1,
	},
	"derived/McpRequestWithoutResponsePassesThrough": {"hole: the open request is kept from the model", nil, 1},
	"ApprovedApprovalResponsesWithoutApprovalRequestAreExecuted": {"hole: nobody asked",
		map[string]int{"Func1": 0, "Func2": 0}, 0},
	"rule-15-unanswered": {"hole: the requests stay open, the model answers without them",
		map[string]int{"refund": 0}, 2},
	"rule-15-answered-too-early": {"hole: the request stays open", map[string]int{"refund": 0}, 1},
	"rule-39-too-late":           {"a result in the same turn counts whenever it comes", map[string]int{"ship": 0}, 0},
	"rule-16-partly-answered": {"hole: the answered call runs, the other stays open",
		map[string]int{"ship": 1, "refund": 0}, 1},
	"rule-17-answer-without-request":      {"hole: nobody asked", map[string]int{"refund": 0}, 0},
	"rule-19-same-request-id-twice":       {"hole: a request never has an old one's id", map[string]int{"refund": 1}, 1},
	"rule-20-two-approvals-run-twice":     {"hole: two answers run once", map[string]int{"refund": 1}, 0},
	"rule-20-rejected-and-run":            {"hole: the rejection stands", map[string]int{"refund": 0}, 0},
	"rule-21-the-call-of-the-answer-runs": {"hole: the answer shows another call", map[string]int{"refund": 0}, 1},
	"rule-21-even-another-tool": {"hole: the answer shows another call", map[string]int{"refund": 0,
		"ship": 0}, 1},
	"rule-22-found-by-request-id-only": {"hole: the answer finds no request", map[string]int{"refund": 0}, 1},
	"rule-23-no-id-and-no-request-share": {"hole: answers without requests run nothing", map[string]int{"ship": 0},
		0},
	"rule-31-stops-and-leaves-the-rest": {"hole: calls that are not run get a result", map[string]int{"refund": 0},
		0},
	"rule-31-without-approval": {"hole: calls that are not run get a result", map[string]int{"lookup": 1}, 0},
	"rule-42-left-calls-are-not-flagged": {"hole: calls that are not run get a result", map[string]int{"refund": 0},
		0},
	"rule-46-the-last-turn-runs-nothing": {"hole: calls that are not run get a result", map[string]int{"lookup": 1},
		0},
	"rule-46-the-marker-of-a-request-tool-is-gone": {"hole: calls that are not run get a result",
		map[string]int{"ship": 0}, 0},
	"rule-46-the-marker-of-an-additional-tool-holds": {"calls that are not run get a result",
		map[string]int{"ship": 0}, 0},
	"rule-18-done-before": {"the caller's results count for nothing: the answered call runs, once",
		map[string]int{"refund": 1}, 0},
	"rule-44-mixed-flags": {"flags in the messages count for nothing", map[string]int{}, 0},
	"rule-05-every-call-of-the-turn-asks": {
		"nobody is asked about a tool that is not there or that the caller runs",
		map[string]int{"lookup": 0, "refund": 0},
		2,
	},
	"rule-13-declared-only-ends-the-run": {"the sibling runs meanwhile (rule 60)", map[string]int{"lookup": 1}, 0},
	"rule-23-grouped-by-message-rejected-first": {"one turn makes one message, in its order", map[string]int{
		"lookup": 1,
		"ship":   0,
		"refund": 0,
	}, 0},
	"rule-28-texts": {"the caller is asked for the result of a declared tool", map[string]int{"boom": 1, "mute": 1},
		0},
	"rule-28-at-once": {"results keep the order of the calls", nil, 0},
	"rule-33-before-what-is-left-of-the-last": {"the first was answered in a run of its own",
		map[string]int{"refund": 1, "ship": 1}, 0},
	"ApprovedInputsAreExecutedAndFunctionResultsAreConverted": {"a request never has an old one's id",
		map[string]int{"Func1": 1}, 1},
	"RequiresConfirmation_IsFalseForFunctionCallWithNoMatchingToolWhenPeerRequiresApproval": {
		"nobody is asked about a tool that is not there",
		map[string]int{"Func1": 0},
		1,
	},
	"FunctionCallsAreBufferedUntilApprovalRequirementEncountered": {"a turn's calls are shown when all are there",
		map[string]int{"Func1": 0, "Func2": 0}, 3},
	"FunctionCallContentIsBufferedUntilEndOfStream": {"only the first updates are looked at there",
		map[string]int{"Func1": 1, "Func2": 1}, 0},
}

// TestConformanceDefault runs the loop cases in the Default profile. The past that a case has
// in its input is replayed first: the model makes the calls, and the thread keeps the requests.
func TestConformanceDefault(t *testing.T) {
	files := must.Get(conformanceFiles(""))(t)
	for _, file := range files {
		data := must.Get(os.ReadFile(file))(t)
		cases, _, err := decodeCases(data)
		must.Do(t, err)
		for _, c := range cases {
			for _, mode := range c.Modes {
				if c.Component == "function_invocation_loop" {
					t.Run(c.Name+"/"+mode, func(t *testing.T) { runDefaultCase(t, c, mode == "streaming") })
				}
			}
		}
	}
}

func runDefaultCase(t *testing.T, c *conformanceCase, streaming bool) {
	past := pastOf(t, c)
	all := *c
	all.ModelTurns = nil
	r := newLoopRun(t, &all)
	thread := agent.NewThread("t")
	same := c.Options.config()
	cfg := agent.LoopConfig{
		Concurrent:     same.Concurrent,
		DetailedErrors: same.DetailedErrors,
		MaxTurns:       same.MaxTurns,
		MaxErrors:      same.MaxErrors,
		WrapSiblings:   true,
		DotNetOrder:    true,
	}
	cfg.RequestID = func(id string) string { return "ficc_" + id }
	for _, ct := range c.Tools {
		if ct.Source == "additional" {
			made := must.Get(r.tools.make(ct))(t)
			cfg.Tools = append(cfg.Tools, made)
		}
	}

	r.options.Thread = thread
	for _, p := range past {
		r.client = agent.NewFunctionInvoking(
			&scriptedModel{turns: [][]caseMessage{{p.said}, {spoken}}, conversation: c.Options.ConversationID},
			cfg,
		)
		if _, err := r.client.Respond(t.Context(), messagesOf(p.before), r.options); err != nil {
			t.Fatalf("the past: %v", err)
		}
	}

	r.model = &scriptedModel{turns: c.ModelTurns, updates: c.ModelStreamUpdates,
		conversation: c.Options.ResponseConversationID}
	if _, ok := differs[c.Name]; ok { // the model may get one more turn here than in .NET
		r.model.turns = append(slices.Clone(c.ModelTurns), []caseMessage{spoken})
	}
	r.client = agent.NewFunctionInvoking(r.model, cfg)
	r.start(streaming)
	if d, ok := differs[c.Name]; ok {
		checkDeviation(t, d, r, thread)
		return
	}
	checkSame(t, c, r, streaming)
}

// turnOfPast is a message of the model, and the messages that precede it.
type turnOfPast struct {
	before []caseMessage
	said   caseMessage
}

// spoken ends a past turn without a request.
var spoken = caseMessage{Role: "assistant",
	Contents: []caseContent{{contentFields: contentFields{Type: "text", Text: "hm"}}}}

// pastOf finds the turns that made the requests in a case's input. If the service keeps the
// history, the input only has responses.
func pastOf(t *testing.T, c *conformanceCase) []turnOfPast {
	t.Helper()
	var out []turnOfPast
	for i, m := range c.InputMessages {
		said := caseMessage{Role: "assistant", MessageID: m.MessageID, AuthorName: m.AuthorName}
		requests := false
		for _, x := range m.Contents {
			if x.Type == "approval_request" {
				requests = true
				if x.ToolCall.Type == "function_call" {
					x = *x.ToolCall
				}
			}

			said.Contents = append(said.Contents, x)
		}

		if requests {
			out = append(out, turnOfPast{c.InputMessages[:i], said})
		}
	}

	if len(out) == 0 && c.Options.ConversationID != "" {
		said := caseMessage{Role: "assistant"}
		for _, m := range c.InputMessages {
			for _, x := range m.Contents {
				if x.Type == "approval_response" {
					said.Contents = append(said.Contents, *x.ToolCall)
				}
			}
		}

		if len(said.Contents) > 0 {
			out = append(out, turnOfPast{nil, said})
		}
	}

	return out
}

func checkSame(t *testing.T, c *conformanceCase, r *loopRun, streaming bool) {
	t.Helper()
	r.checkError(t)
	if r.err != nil {
		return
	}
	for name, n := range c.ExpectedInvocations {
		if got := r.tools.count(name); got != n {
			t.Errorf("%s ran %d times, want %d", name, got, n)
		}
	}
	want := c.ExpectedOutput
	if streaming && c.ExpectedOutputStreaming != nil {
		want = c.ExpectedOutputStreaming
	}
	if want == nil {
		return
	}
	if err := matchMessages(want, r.response.Messages); err != nil {
		t.Errorf("output: %v", err)
	}
}

// checkDeviation checks a run against the expected result in the Default profile.
func checkDeviation(t *testing.T, d deviation, r *loopRun, thread *agent.Thread) {
	t.Helper()
	if r.err != nil {
		t.Fatalf("the run failed: %v", r.err)
	}
	for name, want := range d.runs {
		if got := r.tools.count(name); got != want {
			t.Errorf("%s ran %d times, want %d: %s", name, got, want, d.why)
		}
	}
	if got := len(thread.Pending()); got != d.open {
		t.Errorf("%d requests are open, want %d: %s", got, d.open, d.why)
	}
	for _, input := range r.model.inputs {
		if slices.ContainsFunc(input, hasRequest) {
			t.Error("the model was shown a request")
		}
	}
}

func hasRequest(m any) bool {
	for _, c := range m.(map[string]any)["contents"].([]any) {
		if c.(map[string]any)["type"] == "approval_request" {
			return true
		}
	}
	return false
}
