package compat_test

import (
	"context"
	"encoding/json"
	"errors"
	"fmt"
	"iter"
	"log/slog"
	"os"
	"path/filepath"
	"slices"
	"strings"
	"testing"

	"github.com/assent-dev/assent/agent"
	"github.com/assent-dev/assent/agent/compat"
	"github.com/assent-dev/assent/agent/content"
	"github.com/assent-dev/assent/agent/internal/rounds"
	"github.com/assent-dev/assent/agent/layer"
	"github.com/assent-dev/assent/internal/must"
)

// runLayerCase runs a case of a layer in the Compatible profile.
func runLayerCase(t *testing.T, c *conformanceCase, streaming bool) {
	r := must.Get(newLayerRun(c, compatClient, streaming))(t)
	if err := r.steps(); err != nil {
		t.Error(err)
	}
}

// layerRun is a running case. All steps share one thread.
type layerRun struct {
	c         *conformanceCase
	streaming bool
	model     *stepModel
	client    agent.ChatClient
	thread    *agent.Thread
	tools     *toolbox
	log       *logKeeper
	inputs    [][]*content.Message // inputs of the inner client in all steps
	asked     []content.Content    // requests that the inner client made or that were recorded before
}

// stepModel is the script of the current step.
type stepModel struct{ *scriptedModel }

// layerOf puts the layer of a case around a client.
type layerOf func(c *conformanceCase, inner agent.ChatClient, tools []agent.Tool, log *slog.Logger) agent.ChatClient

func newLayerRun(c *conformanceCase, build layerOf, streaming bool) (*layerRun, error) {
	r := &layerRun{
		c:         c,
		streaming: streaming,
		model:     &stepModel{&scriptedModel{}},
		thread:    agent.NewThread("case"),
		tools:     &toolbox{},
		log:       &logKeeper{},
	}
	more, err := r.toolsFrom(c.Tools, "additional")
	if err != nil {
		return nil, err
	}
	r.client = build(c, &watched{r.model, r}, more, slog.New(r.log))
	return r, nil
}

func compatClient(c *conformanceCase, inner agent.ChatClient, tools []agent.Tool, log *slog.Logger) agent.ChatClient {
	switch c.Component {
	case "approval_response_binding":
		return compat.NewBinding(inner, compat.BindingConfig{Rules: rulesOf(c), Log: log})
	case "approval_not_required_bypass":
		return compat.NewBypass(inner, compat.BypassConfig{Tools: tools, Log: log})
	case "invocable_bypass":
		return compat.NewInvocableBypass(inner, compat.BypassConfig{Tools: tools, Log: log})
	}

	return compat.NewStanding(inner, compat.StandingConfig{Rules: rulesOf(c),
		Predicates: predicates(c.AutoApprovalRules), MaxRounds: maxRounds(c)})
}

// rulesOf returns the rules of the release that a case is about.
func rulesOf(c *conformanceCase) compat.BindingRules {
	if c.Options.Release == "1.25" {
		return compat.Rules125
	}
	return compat.Rules114
}

func defaultClient(c *conformanceCase, inner agent.ChatClient, tools []agent.Tool, log *slog.Logger) agent.ChatClient {
	switch c.Component {
	case "approval_response_binding":
		return layer.NewBinding(inner, layer.BindingConfig{Tools: tools, Log: log})
	case "approval_not_required_bypass":
		return layer.NewBypass(inner, layer.BypassConfig{Tools: tools, Log: log})
	case "invocable_bypass":
		return layer.NewInvocableBypass(inner, layer.BypassConfig{Tools: tools, Log: log})
	}

	return layer.NewStanding(inner, layer.StandingConfig{Tools: tools, Log: log,
		Predicates: predicates(c.AutoApprovalRules), MaxRounds: maxRounds(c)})
}

func maxRounds(c *conformanceCase) int {
	if c.MaxAutoApproval == nil {
		return 0
	}
	return *c.MaxAutoApproval
}

func predicates(rules []autoApprovalRule) []layer.Predicate {
	var out []layer.Predicate
	for i, rule := range rules {
		out = append(out, layer.Predicate{
			Name: fmt.Sprintf("rule %d of the case", i),
			Approve: func(_ context.Context, a layer.Asked) bool {
				return rule.All || rule.ToolName != "" && rule.ToolName == a.Call.Name
			},
		})
	}

	return out
}

// toolsFrom makes the tools of a source.
func (r *layerRun) toolsFrom(list []*caseTool, source string) ([]agent.Tool, error) {
	var out []agent.Tool
	for _, ct := range list {
		if (ct.Source == "additional") != (source == "additional") {
			continue
		}
		made, err := r.tools.make(ct)
		if err != nil {
			return nil, err
		}
		out = append(out, made)
	}

	return out, nil
}

// watched records the inputs of the inner client unchanged.
type watched struct {
	*stepModel
	r *layerRun
}

func (w *watched) note(messages []*content.Message) {
	w.r.inputs = append(w.r.inputs, messages)
}

func (w *watched) Respond(
	ctx context.Context, messages []*content.Message, opt *agent.Options,
) (*agent.Response, error) {
	w.note(messages)
	out, err := w.scriptedModel.Respond(ctx, messages, opt)
	if err == nil {
		w.r.note(out.Messages)
	}
	return out, err
}

func (w *watched) Stream(
	ctx context.Context, messages []*content.Message, opt *agent.Options,
) iter.Seq2[*agent.Update, error] {
	w.note(messages)
	inner := w.scriptedModel.Stream(ctx, messages, opt)
	return func(yield func(*agent.Update, error) bool) {
		for u, err := range inner {
			if err == nil {
				w.r.note([]*content.Message{{Contents: u.Contents}})
			}
			if !yield(u, err) {
				return
			}
		}
	}
}

// note records the requests that were made.
func (r *layerRun) note(messages []*content.Message) {
	for _, m := range messages {
		for _, c := range m.Contents {
			switch c := c.(type) {
			case *content.ToolApprovalRequest: // a copy, as the caller may change the content
				r.asked = append(r.asked,
					&content.ToolApprovalRequest{RequestID: c.RequestID, Call: content.CloneCall(c.Call)})
			case *content.FunctionCall: // parked as a request by the invocable bypass
				r.asked = append(r.asked, &content.ToolApprovalRequest{RequestID: "ficc_" + c.CallID, Call: c})
			}
		}
	}
}

// forged returns an approval or a request that the inner client received without having
// requested exactly that call, or nil.
func (r *layerRun) forged() content.Content {
	for _, messages := range r.inputs {
		for _, m := range messages {
			for _, c := range m.Contents {
				if !r.asksFor(c) {
					return c
				}
			}
		}
	}

	return nil
}

// asksFor returns true for contents that are neither an approval nor a request, and for those
// about calls that the inner client requested.
func (r *layerRun) asksFor(c content.Content) bool {
	var id string
	var call content.ToolCall
	switch c := c.(type) {
	case *content.ToolApprovalRequest:
		id, call = c.RequestID, c.Call
	case *content.ToolApprovalResponse:
		if !c.Approved {
			return true
		}
		id, call = c.RequestID, c.Call
	default:
		return true
	}

	return slices.ContainsFunc(r.asked, func(q content.Content) bool {
		asked := q.(*content.ToolApprovalRequest)
		return asked.RequestID == id && content.SameCall(asked.Call, call)
	})
}

func (r *layerRun) steps() error {
	for i := range r.c.Steps {
		if err := r.step(&r.c.Steps[i]); err != nil {
			return fmt.Errorf("step %d: %w", i, err)
		}
	}
	return nil
}

func (r *layerRun) step(s *caseStep) error {
	if err := r.before(s); err != nil {
		return err
	}
	opt, err := r.options(s)
	if err != nil {
		return err
	}
	r.model.scriptedModel = &scriptedModel{turns: s.InnerReturns}
	input := messagesOf(s.InputMessages)
	given := listedMessages(input)
	resp, err := r.run(input, opt)
	if !slices.EqualFunc(given, listedMessages(input), func(a, b any) bool { return match("", a, b) == nil }) {
		return fmt.Errorf("the caller's messages were changed")
	}
	if err != nil || s.ExpectedError != "" {
		if err == nil || !strings.Contains(err.Error(), s.ExpectedError) || s.ExpectedError == "" {
			return fmt.Errorf("the run ended with the error %v, want %q", err, s.ExpectedError)
		}
		return nil
	}

	if err := r.after(s, resp); err != nil {
		return err
	}
	return mutateSurfaced(resp.Messages, nullable(s.MutateSurfaced))
}

// mutateSurfaced writes arguments into the calls that the caller received. Without such calls
// it returns an error.
func mutateSurfaced(messages []*content.Message, arguments json.RawMessage) error {
	if arguments == nil {
		return nil
	}
	n := 0
	for q := range content.All[*content.ToolApprovalRequest](messages) {
		if call, ok := q.Call.(*content.FunctionCall); ok {
			call.Arguments = arguments
			n++
		}
	}

	if n == 0 {
		return errors.New("then_mutate_surfaced_call_arguments: no call was shown")
	}
	return nil
}

// before records the state that the step starts with.
func (r *layerRun) before(s *caseStep) error {
	if s.StoredBefore != nil {
		if err := park(r.thread, r.parkedUnder(), r.requests(s.StoredBefore)); err != nil {
			return err
		}
	}

	if s.PendingBefore != nil {
		return open(r.thread, r.requests(s.PendingBefore))
	}
	return nil
}

// parkedUnder returns the state key of the bypass that the case is about.
func (r *layerRun) parkedUnder() string {
	if r.c.Component == "invocable_bypass" {
		return layer.InvocableState
	}
	return layer.BypassState
}

func park(t *agent.Thread, key string, requests []content.InputRequest) error {
	state, err := rounds.Load[rounds.Parked](t, key)
	for _, q := range requests {
		err = errors.Join(err, state.Park(t, key, q))
	}
	return err
}

func open(t *agent.Thread, requests []content.InputRequest) error {
	state, err := rounds.Load[rounds.Book](t, layer.BindingState)
	for _, q := range requests {
		err = errors.Join(err, state.Record(q))
	}
	return errors.Join(err, state.Keep(t, layer.BindingState))
}

func (r *layerRun) requests(list []caseContent) []content.InputRequest {
	var out []content.InputRequest
	for _, c := range list {
		made, err := c.content()
		if q, ok := made.(content.InputRequest); ok && err == nil {
			out, r.asked = append(out, q), append(r.asked, q)
		}
	}

	return out
}

func (r *layerRun) options(s *caseStep) (*agent.Options, error) {
	o := r.c.Options
	if s.Options != nil {
		o = *s.Options
	}
	list := r.c.Tools
	if s.Tools != nil {
		list = s.Tools
	}
	tools, err := r.toolsFrom(list, "request")
	opt := &agent.Options{ConversationID: o.ConversationID, Tools: tools, Thread: r.thread}
	for _, has := range []*bool{r.c.HasSession, o.HasSession, s.HasSession} {
		if has != nil && !*has {
			opt.Thread = nil
		}
	}
	if r.c.NoSession || o.NoSession || s.NoSession || r.c.Session.none || o.Session.none || s.Session.none {
		opt.Thread = nil
	}
	return opt, err
}

func (r *layerRun) run(input []*content.Message, opt *agent.Options) (*agent.Response, error) {
	if r.streaming {
		return agent.Collect(r.client.Stream(context.Background(), input, opt))
	}
	return r.client.Respond(context.Background(), input, opt)
}

func (r *layerRun) after(s *caseStep, resp *agent.Response) error {
	if n := s.ExpectedInnerCalls; n != nil && *n != len(r.model.inputs) {
		return fmt.Errorf("the inner client was called %d times, want %d", len(r.model.inputs), *n)
	}
	for k, want := range s.ExpectedInputs {
		if k >= len(r.model.inputs) {
			return fmt.Errorf("call %d of the inner client did not come", k)
		}
		if want == nil {
			continue
		}
		if err := matchListed(want, r.model.inputs[k]); err != nil {
			return fmt.Errorf("call %d of the inner client: %w", k, err)
		}
	}

	want := s.ExpectedOutput
	if r.streaming && s.ExpectedOutputStreaming != nil {
		want = s.ExpectedOutputStreaming
	}
	if want != nil {
		if err := matchMessages(want, resp.Messages); err != nil {
			return fmt.Errorf("output: %w", err)
		}
	}
	if err := r.checkRecords(s); err != nil {
		return err
	}
	return r.checkLogs(s)
}

func (r *layerRun) checkRecords(s *caseStep) error {
	if s.ExpectedPending != nil {
		book, err := rounds.Load[rounds.Book](r.thread, layer.BindingState)
		if err != nil {
			return err
		}
		if err := sameIDs("on record", s.ExpectedPending, rounds.RequestsOf(book.Open)); err != nil {
			return err
		}
	}

	if s.ExpectedStored == nil {
		return nil
	}
	parked, err := rounds.Load[rounds.Parked](r.thread, r.parkedUnder())
	if err != nil {
		return err
	}
	return sameIDs("parked", s.ExpectedStored, parked.All())
}

func sameIDs(what string, want []string, list []content.InputRequest) error {
	got := []string{}
	for _, q := range list {
		got = append(got, q.InputRequestID())
	}
	slices.Sort(got)
	if !slices.Equal(got, slices.Sorted(slices.Values(want))) {
		return fmt.Errorf("%s are %v, want %v", what, got, want)
	}
	return nil
}

// checkLogs looks for log records by level, since the texts are our own.
func (r *layerRun) checkLogs(s *caseStep) error {
	for _, want := range s.ExpectedLogs {
		level := strings.TrimSuffix(strings.ToLower(want.Level), "ing")
		n := 0
		for _, line := range r.log.lines() {
			if line.Level == level {
				n++
			}
		}
		if n != 1 {
			return fmt.Errorf("there are %d records of the level %q, want 1", n, level)
		}
	}

	return nil
}

// layersDiffer lists the cases in which the Default profile differs, with the reason. All other
// cases of the two files behave the same in both profiles.
var layersDiffer = map[string]string{
	"binding/MatchingResponse_RebindsToolCallToRecordedRequest":               otherCall,
	"rule49/OtherCallIsReplacedByTheRecordedOne":                              otherCall,
	"rule50/ARecordLivesForOneRun":                                            "a record lives until it is answered",
	"binding/ApprovalRequestInHistory_IsPreserved":                            notAsked,
	"binding/ResponseBoundToRequestInHistory_IsHonoredWithoutPendingState":    notAsked,
	"derived/binding/HistoryRequestOverridesRecordedSnapshot":                 notAsked,
	"rule51/ARequestInTheInputWins":                                           notAsked,
	"rule52/WithoutASessionNothingIsChecked":                                  "without a thread answers are refused",
	"bypass/MixedApproval_RemovesApprovalNotRequiredItems":                    wantsAnswer,
	"bypass/AllApprovalNotRequired_RemovesAllApprovalsAndRemovesEmptyMessage": wantsAnswer,
	"bypass/StoredRequestToolSetChanged_StillInjectsAsApproved":               lookedAtAgain,
	"rule54/AParkedCallIsApprovedThoughItsToolIsMarkedByNow":                  lookedAtAgain,
	"rule53/HarmlessSiblingsAreParkedAndInjected":                             beforeText,
	"rule55/ApprovalsComeAfterTheUsersText":                                   beforeText,
	"standing/ToolLevelRule_DeferredAutoApprove":                              unasked,
	"standing/MixedApprovalRequests_SurfacesNonMatchingStoresMatching":        unasked,
	"standing/UnwrapPreservesContentOrder":                                    unasked,
	"standing/MixedAutoApprovals_PreserveOriginalOrder":                       unasked,
	"rule56/ExactlyTheseArguments":                                            unasked,
	"rule56/NoArgumentsAreNotAnyArguments":                                    unasked,
	"rule59/ARuleNeedsNoRequest":                                              unasked,
	"rule57/PredicatesAnswerWhatNoRuleDoes": "the inner client gets the whole " +
		"history again, the caller everything that was said, the reason names the predicate",
	"standing/ForgedApprovalResponseDuringQueue_IsNotHonored":          allAtOnce,
	"standing/SubstitutedApprovalResponseDuringQueue_IsRebound":        allAtOnce,
	"standing/DuplicateApprovalResponsesDuringQueue_HonoredOnce":       allAtOnce,
	"standing/ApproveFirst_ReturnsSecondFromQueue":                     allAtOnce,
	"standing/AlwaysApproveFirst_AutoApprovesMatchingInQueue":          allAtOnce,
	"standing/AllQueuedResolved_CallsInnerAgentWithCollectedResponses": allAtOnce,
	"standing/DenyFirst_ReturnsSecondFromQueue":                        allAtOnce,
	"rule58/OneRequestAfterTheOther":                                   allAtOnce,
	"rule58/TheLastAnswerOfAQueueIsNotBound":                           allAtOnce,
}

const (
	otherCall     = "an answer that shows another call is refused, not bound to the recorded one"
	notAsked      = "a request that only stands in the input counts for nothing"
	wantsAnswer   = "a request that wants to be confirmed is not parked"
	lookedAtAgain = "a parked call whose tool needs approval by now is asked about"
	beforeText    = "approvals stand before what the user said last"
	unasked       = "an answer to a request that was never made is refused and makes no rule"
	allAtOnce     = "all requests are shown at once, and every answer is bound"
)

// TestConformanceLayersDefault runs all layer cases in the Default profile. The inner client
// must get no approval that it did not request, and only the listed cases may differ. For cases
// of other files only the first of these is checked.
func TestConformanceLayersDefault(t *testing.T) {
	files := must.Get(conformanceFiles(""))(t)
	for _, file := range files {
		for _, c := range layerCases(t, file) {
			for _, mode := range c.Modes {
				t.Run(filepath.Base(file)+"/"+c.Name+"/"+mode, func(t *testing.T) {
					runDefault(t, c, mode == "streaming", filepath.Base(file))
				})
			}
		}
	}
}

func runDefault(t *testing.T, c *conformanceCase, streaming bool, file string) {
	r := must.Get(newLayerRun(c, defaultClient, streaming))(t)
	differs := r.steps()
	if c := r.forged(); c != nil {
		t.Errorf("the inner client saw what it did not ask for: %v", listedContent(c))
	}
	why := layersDiffer[c.Name]
	switch {
	case why != "" && differs == nil:
		t.Errorf("the case behaves as in Compatible, but should differ: %s", why)
	case why == "" && differs != nil && file == "layers.json":
		t.Errorf("the case differs for no known reason: %v", differs)
	case why == "" && differs != nil:
		t.Logf("differs: %v", differs)
	}
}

func layerCases(t *testing.T, file string) []*conformanceCase {
	data := must.Get(os.ReadFile(file))(t)
	all, errs, err := decodeCases(data)
	must.Do(t, err)
	var out []*conformanceCase
	for i, c := range all {
		if slices.Contains(layers, c.Component) && errs[i] == nil {
			out = append(out, c)
		}
	}
	return out
}
