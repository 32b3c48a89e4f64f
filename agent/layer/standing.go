package layer

import (
	"context"
	"encoding/json"
	"fmt"
	"log/slog"
	"slices"
	"strings"
	"time"

	"github.com/assent-dev/assent/agent"
	"github.com/assent-dev/assent/agent/content"
)

// StandingState is the name under which Standing keeps rules and open requests in the thread.
const StandingState = "toolApprovalState"

// StandingConfig are the choices for a Standing. The zero value is the default.
type StandingConfig struct {
	Profile agent.Profile
	// Agent is the name that predicates are told.
	Agent string
	// Predicates approve by themselves; the first that says yes does it.
	Predicates []Predicate
	// MaxRounds bounds how often the inner client is asked again with nothing but automatic approvals; 0 means 40. What the round
	// after the last one asks goes to the caller.
	MaxRounds int
	// OneAtATime shows one request after the other. The inner client is asked again when all are answered. Compatible always does it.
	OneAtATime bool
	// MaxAge and MaxUses bound each rule; 0 means 8 hours and 100 uses. Default profile only.
	MaxAge  time.Duration
	MaxUses int
	// AllowToolScope lets people approve all calls of a tool, whatever their arguments. Default profile only.
	AllowToolScope bool
	// Forbids tells of calls that no rule may approve, and whose answers make none. Default profile only.
	Forbids func(call content.ToolCall) bool
	// Tools are known beside those of the options. A rule holds for one definition of its tool.
	Tools []agent.Tool
	// Now is the clock; nil means time.Now.
	Now func() time.Time
	// Log takes warnings; nil means slog.Default().
	Log *slog.Logger
}

// Predicate approves calls without asking.
type Predicate struct {
	// Name is recorded as the reason. In the default profile a predicate without one approves nothing.
	Name    string
	Approve func(ctx context.Context, a Asked) bool
}

// Asked is what a predicate decides about. It must change none of it.
type Asked struct {
	Call     *content.FunctionCall
	Agent    string
	Thread   *agent.Thread
	Messages []*content.Message
	Options  *agent.Options
}

// NewStanding returns a layer that answers requests by rules that people left behind ("always") and by predicates. When all requests of
// a response are answered so, the inner client is asked again.
//
// Default: answers are bound as Binding does it. A rule comes only from an approval that was bound, for the recorded call, and that the
// inner client has taken: not when it refuses the answer or fails, or when nobody reads its stream to the end. A rule has an age, a number
// of uses and the definition of its tool, and compares arguments in canonical form. What was approved automatically and waits for a
// person's answers is looked at again before it goes in: a rule that was revoked meanwhile approves nothing. A request whose automatic
// approval the inner client refuses is a person's to answer from then on. So are all requests of nested agents: no rule and no predicate
// approves them, and no answer to them makes a rule. Without a thread there are no rules and all answers are refused.
//
// Compatible: rules come from answers unchecked, last as long as the thread, and compare the text of each argument.
func NewStanding(inner agent.ChatClient, cfg StandingConfig) agent.ChatClient {
	if cfg.MaxRounds <= 0 {
		cfg.MaxRounds = 40
	}
	if cfg.MaxAge <= 0 {
		cfg.MaxAge = 8 * time.Hour
	}
	if cfg.MaxUses <= 0 {
		cfg.MaxUses = 100
	}
	if cfg.Now == nil {
		cfg.Now = time.Now
	}
	s := &standing{cfg: cfg, warn: newWarner(cfg.Log)}
	begin := s.begin
	if cfg.Profile == agent.Compatible {
		begin = s.beginCompatible
	}
	return &stack{inner, begin}
}

type standing struct {
	cfg  StandingConfig
	warn *warner
}

// standingState is what lasts between runs.
type standingState struct {
	Shown   book              `json:"shown"`             // requests that a person was shown
	Queue   []*request        `json:"queue,omitempty"`   // those that will be shown
	Answers []json.RawMessage `json:"answers,omitempty"` // that wait for the rest of the queue
	Waiting []waiting         `json:"waiting,omitempty"` // automatic approvals that wait for a person's answers
	Rules   []Rule            `json:"rules,omitempty"`
	Wishes  []Rule            `json:"wishes,omitempty"` // rules to be, of answers that the inner client has not taken yet
	Minted  int               `json:"minted,omitempty"` // rules and wishes so far, for ids
	Manual  []string          `json:"manual,omitempty"` // requests for whose automatic approval was refused: a person answers them
}

// waiting is a request that is approved automatically, and by what.
type waiting struct {
	Request *request `json:"request"`
	Rule    string   `json:"rule,omitempty"`
	Reason  string   `json:"reason"`
}

func (s *standingState) whole() bool {
	return s.Shown.whole() && !slices.ContainsFunc(s.Queue, func(q *request) bool { return !q.whole() }) &&
		!slices.ContainsFunc(s.Waiting, func(w waiting) bool { return !w.Request.whole() })
}

// judge is a run of Standing in the default profile.
type judge struct {
	*standing
	ctx    context.Context
	in     input
	t      *agent.Thread
	state  *standingState
	tools  toolbox
	rounds int
	sent   map[string]bool // requests that were approved automatically in this run
}

func (s *standing) begin(ctx context.Context, in input) (*round, error) {
	t := in.thread()
	state, err := load[standingState](t, StandingState)
	if err != nil {
		return nil, err
	}
	j := &judge{s, ctx, in, t, state, toolsOf(in.options, s.cfg.Tools), 0, map[string]bool{}}
	first := in.firstNew()
	got := state.Shown.bind(in.messages, first, j.tools)
	if t == nil {
		s.warn.noThread(ctx, "Standing", "answers are refused and nothing is approved automatically")
		return &round{messages: got.messages, options: withFresh(in.options, got.fresh), refused: got.refused}, nil
	}
	j.expire()
	if len(state.Answers) == 0 {
		state.Wishes = nil // of a run that failed
	}
	for _, a := range got.accepted {
		j.answered(a)
	}
	in.messages, in.options = withoutScopes(got.messages), withFresh(in.options, got.fresh)
	j.in = in
	r, err := j.open(len(got.messages)-got.fresh, got.accepted)
	if err != nil {
		return nil, err
	}
	r.refused = got.refused
	return r, j.keep()
}

func (j *judge) keep() error { return j.t.Put(StandingState, j.state) }

// withoutScopes takes the wish for a rule off the answers: it is granted or not here, and nobody further in needs it.
func withoutScopes(messages []*content.Message) []*content.Message {
	out, _ := rewrite(messages, 0, func(_ at, c content.Content) content.Content {
		a, ok := c.(*content.ToolApprovalResponse)
		if !ok || a.Always == content.AlwaysNot {
			return c
		}
		plain := *a
		plain.Always = content.AlwaysNot
		return &plain
	})
	return out
}

// open begins the first round, or shows the next of the queue.
func (j *judge) open(first int, accepted []settled) (*round, error) {
	var answers []content.Content
	if len(j.state.Queue) > 0 || len(j.state.Answers) > 0 {
		next, err := j.queued(accepted)
		if next != nil || err != nil {
			return next, err
		}
		if answers, err = j.state.collected(); err != nil {
			return nil, err
		}
		j.in.messages, j.in.options = withoutAnswers(j.in.messages, first, j.in.options)
	}
	approved, left := j.settle()
	in := j.in.insertAnswers(append(answers, approved...))
	return j.round(in, left), nil
}

// queued keeps the answers and shows what comes next; nil when the queue is empty.
func (j *judge) queued(accepted []settled) (*round, error) {
	for _, a := range accepted {
		raw, err := writeContent(withoutScope(a.answer))
		if err != nil {
			return nil, fmt.Errorf("an answer can't be kept: %w", err)
		}
		j.state.Answers = append(j.state.Answers, raw)
	}
	j.drain()
	var show []content.Content
	for _, q := range requestsOf(j.state.Shown.Open) {
		show = append(show, q)
	}
	if len(show) == 0 && len(j.state.Queue) > 0 {
		next := j.state.Queue[0].InputRequest
		j.state.Queue = j.state.Queue[1:]
		if err := j.state.Shown.record(next); err != nil {
			return nil, err
		}
		show = append(show, next)
	}
	if len(show) == 0 {
		return nil, nil
	}
	return &round{silent: true, end: func(*agent.Response) (ending, error) { return ending{extra: show}, nil }}, nil
}

func withoutScope(a content.InputResponse) content.InputResponse {
	if a, ok := a.(*content.ToolApprovalResponse); ok {
		plain := *a
		plain.Always = content.AlwaysNot
		return &plain
	}
	return a
}

// drain approves what of the queue has a rule by now.
func (j *judge) drain() {
	j.state.Queue = slices.DeleteFunc(j.state.Queue, func(q *request) bool {
		w := j.match(q.InputRequest)
		if w == nil {
			return false
		}
		w.Request = q
		j.state.Waiting = append(j.state.Waiting, *w)
		return true
	})
}

// collected returns the answers that waited for the queue.
func (s *standingState) collected() ([]content.Content, error) {
	var out []content.Content
	for _, raw := range s.Answers {
		c, err := readContent(raw)
		if err != nil {
			return nil, fmt.Errorf("the state %q of the thread: %w", StandingState, err)
		}
		out = append(out, c)
	}
	s.Answers = nil
	return out, nil
}

// withoutAnswers takes the new answers out of the messages: they stand among the collected ones.
func withoutAnswers(messages []*content.Message, first int, opt *agent.Options) ([]*content.Message, *agent.Options) {
	out, fresh := rewrite(messages, first, func(p at, c content.Content) content.Content {
		if _, ok := c.(content.InputResponse); ok && p.message >= first {
			return nil
		}
		return c
	})
	return out, withFresh(opt, fresh)
}

// settle turns what waits into approvals. What is not approved any more is returned to be asked; what a wish would approve waits on.
func (j *judge) settle() (approved []content.Content, left []content.InputRequest) {
	var wait []waiting
	for _, w := range j.state.Waiting {
		q, ok := w.Request.InputRequest.(*content.ToolApprovalRequest)
		switch {
		case w.Rule != "" && ruleOf(j.state.Wishes, w.Rule) != nil:
			wait = append(wait, w)
		case ok && j.stands(w, q):
			j.sent[q.RequestID] = true
			answer := q.CreateApproval(w.Reason)
			answer.By = strings.TrimPrefix(w.Reason, approvedBy)
			approved = append(approved, answer)
		default:
			left = append(left, w.Request.InputRequest)
		}
	}
	j.state.Waiting = wait
	return approved, left
}

// round asks the inner client. left are requests that must be shown, whether it repeats them or not.
func (j *judge) round(in input, left []content.InputRequest) *round {
	shown := 0
	seen := map[string]bool{}
	take := func(c content.Content) (bool, error) {
		q, ok := c.(content.InputRequest)
		if !ok || inert(c) {
			return true, nil
		}
		seen[q.InputRequestID()] = true
		show, err := j.sort(q, shown)
		if show {
			shown++
		}
		if err != nil {
			return false, err
		}
		return show, j.keep()
	}
	end := func(whole *agent.Response) (ending, error) {
		var e ending
		j.grant()
		again := slices.DeleteFunc(left, func(q content.InputRequest) bool { return seen[q.InputRequestID()] })
		for _, q := range slices.Concat(again, j.groundless()) {
			ok, err := take(q)
			if err != nil {
				return e, err
			}
			if ok {
				e.extra = append(e.extra, q)
			}
		}
		if shown > 0 || len(j.state.Waiting) == 0 {
			return e, j.keep()
		}
		return j.again(in, whole, e)
	}
	return &round{messages: in.messages, options: in.options, told: j.told, take: take, end: end, left: func() { _ = j.keep() }}
}

// sort tells whether a request is shown now. Those that are not wait for their approval or in the queue.
func (j *judge) sort(q content.InputRequest, shown int) (bool, error) {
	j.forget(q.InputRequestID())
	if j.rounds < j.cfg.MaxRounds {
		if w := j.match(q); w != nil {
			snap, err := snapshot(q)
			w.Request = snap
			j.state.Waiting = append(j.state.Waiting, *w)
			return false, err
		}
	}
	if j.cfg.OneAtATime && shown > 0 {
		if e := find(j.state.Shown.Open, q.InputRequestID()); e != nil && sameRequest(e.Request.InputRequest, q) {
			return false, nil // it stands before the person already
		}
		snap, err := snapshot(q)
		j.state.Queue = append(j.state.Queue, snap)
		return false, err
	}
	return true, j.state.Shown.record(q)
}

// forget makes place for a request that comes again, or that a person has answered. Its rule gets the use back.
func (j *judge) forget(id string) {
	j.state.Waiting = slices.DeleteFunc(j.state.Waiting, func(w waiting) bool {
		if w.Request.InputRequestID() != id {
			return false
		}
		for _, rules := range [][]Rule{j.state.Rules, j.state.Wishes} {
			if r := ruleOf(rules, w.Rule); r != nil {
				r.Left++
			}
		}
		return true
	})
	j.state.Queue = slices.DeleteFunc(j.state.Queue, func(q *request) bool { return q.InputRequestID() == id })
}

// again begins another round with the approvals. The inner client sees what a caller with a history of its own would send it.
func (j *judge) again(in input, whole *agent.Response, e ending) (ending, error) {
	approved, left := j.settle()
	if len(approved) == 0 {
		return j.ask(e, left)
	}
	j.rounds++
	opt := in.options.Clone()
	opt.Fresh = 1
	if whole.ConversationID != "" {
		opt.ConversationID = whole.ConversationID
	}
	messages := []*content.Message{content.NewMessage(content.User, approved...)}
	if opt.ConversationID == "" {
		messages = slices.Concat(withoutSettled(in.messages), whole.Messages, messages)
	}
	e.next = j.round(input{messages, opt, in.streaming}, left)
	return e, j.keep()
}

// ask shows what is not approved after all.
func (j *judge) ask(e ending, left []content.InputRequest) (ending, error) {
	for _, q := range left {
		if err := j.state.Shown.record(q); err != nil {
			return e, err
		}
		e.extra = append(e.extra, q)
	}
	return e, j.keep()
}

// withoutSettled leaves out what an earlier round has acted on: answers and the requests that they answer. Those about calls of a
// service stay, because the service reads them again.
func withoutSettled(messages []*content.Message) []*content.Message {
	answered := map[string]bool{}
	each(messages, func(_ at, c content.Content) {
		if a, ok := c.(content.InputResponse); ok && !ofService(c) {
			answered[a.InputResponseTo()] = true
		}
	})
	out, _ := rewrite(messages, 0, func(_ at, c content.Content) content.Content {
		id := ""
		switch c := c.(type) {
		case content.InputResponse:
			id = c.InputResponseTo()
		case content.InputRequest:
			id = c.InputRequestID()
		default:
			return c
		}
		if answered[id] && !ofService(c) {
			return nil
		}
		return c
	})
	return out
}

// ofService holds for halves of an approval of a call that a service makes.
func ofService(c content.Content) bool {
	call := callOf(c)
	_, function := call.(*content.FunctionCall)
	return call != nil && !function
}
