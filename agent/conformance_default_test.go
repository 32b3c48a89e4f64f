package agent_test

import (
	"os"
	"path/filepath"
	"slices"
	"strings"
	"testing"

	"github.com/assent-dev/assent/agent"
)

// differs lists the cases of which the Default profile makes something else, and why. Every other case has the same result in both
// profiles (with the sibling and order switches set as .NET has them).
var differs = map[string]string{
	// Holes: what happens there must not happen here.
	"derived/DuplicateApprovedResponsesExecuteTwiceInBareLoop":       "runs once",
	"derived/ConflictingResponsesBothTakeEffectInBareLoop":           "runs never, the rejection stands",
	"derived/ResponseBeforeRequestThrows":                            "runs never, stays open",
	"derived/PartialAnswersThrow":                                    "the answered call runs, the other stays open",
	"derived/SameCallIdDifferentRequestIdIsAcceptedButLosesMetadata": "runs never, stays open",
	"derived/SameRequestIdDifferentCallIdThrows":                     "runs never, stays open",
	"derived/DuplicateRequestIdsInHistoryThrow":                      "the answered call runs; a request never has an old one's id, so the other stays open",
	"derived/McpRequestWithoutResponsePassesThrough":                 "the open request is kept from the model",
	"ApprovedApprovalResponsesWithoutApprovalRequestAreExecuted":     "runs never: nobody asked",
	// Choices.
	"ApprovedInputsAreExecutedAndFunctionResultsAreConverted":                               "as there, but that a request never has an old one's id",
	"RequiresConfirmation_IsFalseForFunctionCallWithNoMatchingToolWhenPeerRequiresApproval": "nobody is asked about a tool that is not there; the other stays open",
	"FunctionCallsAreBufferedUntilApprovalRequirementEncountered":                           "a turn's calls are shown when all are there",
	"FunctionCallContentIsBufferedUntilEndOfStream":                                         "the same, and the tools then run",
	"LogsFunctionRequiresApproval":                                                          "only the log line is looked at",
}

// TestConformanceDefault runs the cases of the loop in the Default profile. What a case has in its input as the past is made to happen
// first: the model calls, and the thread keeps the requests.
func TestConformanceDefault(t *testing.T) {
	files, err := conformanceFiles("")
	if err != nil {
		t.Fatal(err)
	}
	for _, file := range files {
		if filepath.Base(file) != "ms-approval-cases.json" && filepath.Base(file) != "upstream.json" {
			continue
		}
		data, err := os.ReadFile(file)
		if err != nil {
			t.Fatal(err)
		}
		cases, _, err := decodeCases(data)
		if err != nil {
			t.Fatal(err)
		}
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
	cfg := c.Options.config()
	cfg.Profile, cfg.WrapSiblings, cfg.DotNetOrder = agent.Default, true, true
	cfg.RequestID = func(id string) string { return "ficc_" + id }
	for _, ct := range c.Tools {
		if ct.Source == "additional" {
			made, err := r.tools.make(ct)
			if err != nil {
				t.Fatal(err)
			}
			cfg.Tools = append(cfg.Tools, made)
		}
	}
	r.options.Thread = thread
	for _, p := range past {
		r.client = agent.NewFunctionInvoking(&scriptedModel{turns: [][]caseMessage{{p.said}}, conversation: c.Options.ConversationID}, cfg)
		if _, err := r.client.Respond(t.Context(), messagesOf(p.before), r.options); err != nil {
			t.Fatalf("the past: %v", err)
		}
	}
	r.model = &scriptedModel{turns: c.ModelTurns, updates: c.ModelStreamUpdates, conversation: c.Options.ResponseConversationID}
	r.client = agent.NewFunctionInvoking(r.model, cfg)
	r.start(streaming)
	if why := differs[c.Name]; why != "" {
		checkHole(t, c.Name, r, thread)
		return
	}
	checkSame(t, c, r, streaming)
}

// turnOfPast is what a model said, after which messages.
type turnOfPast struct {
	before []caseMessage
	said   caseMessage
}

// pastOf finds the turns that made the requests in a case's input. Where the service keeps the history the input has only responses.
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
	if r.err != nil {
		t.Fatal(r.err)
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

// checkHole shows that a hole is closed.
func checkHole(t *testing.T, name string, r *loopRun, thread *agent.Thread) {
	t.Helper()
	if r.err != nil {
		t.Fatalf("the run failed: %v", r.err)
	}
	wantRuns, wantOpen := 0, 0
	switch why := differs[name]; {
	case strings.HasPrefix(why, "runs once"), strings.HasPrefix(why, "the answered call"), strings.HasPrefix(why, "as there"):
		wantRuns = 1
	}
	if strings.Contains(differs[name], "open") || strings.HasPrefix(differs[name], "as there") {
		wantOpen = 1
	}
	if !strings.Contains(name, "Buffered") && !strings.HasPrefix(name, "Logs") {
		if got := r.tools.count("Func1"); got != wantRuns {
			t.Errorf("Func1 ran %d times, want %d: %s", got, wantRuns, differs[name])
		}
		if got := len(thread.Pending()); got != wantOpen {
			t.Errorf("%d requests are open, want %d", got, wantOpen)
		}
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
