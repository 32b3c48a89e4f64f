package layer

import (
	"context"
	"fmt"
	"log/slog"
	"slices"
	"strings"
	"time"

	"github.com/assent-dev/assent/agent"
	"github.com/assent-dev/assent/agent/content"
	"github.com/assent-dev/assent/agent/internal/rounds"
)

// StandingState is the key of the thread state in which Standing keeps rules and open requests.
const StandingState = "toolApprovalState"

// StandingConfig configures a Standing. The zero value is the default.
type StandingConfig struct {
	// Agent is the agent name that predicates get.
	Agent string
	// Predicates approve requests automatically. The first one that returns true approves.
	Predicates []Predicate
	// MaxRounds limits how often the inner client is called again with only automatic
	// approvals. The default is 40. Requests of the round after the last one are returned to
	// the caller.
	MaxRounds int
	// OneAtATime shows one request at a time. The inner client is called again when all are
	// answered.
	OneAtATime bool
	// MaxAge and MaxUses limit each rule. The defaults are 8 hours and 100 uses.
	MaxAge  time.Duration
	MaxUses int
	// AllowToolScope lets people approve all calls of a tool, with any arguments.
	AllowToolScope bool
	// Forbids reports whether no rule may approve a call. Answers to such calls create no
	// rules.
	Forbids func(call content.ToolCall) bool
	// Tools are known in addition to those of the options. A rule applies to one definition of
	// its tool.
	Tools []agent.Tool
	// Now is the clock. The default is time.Now.
	Now func() time.Time
	// Log receives warnings. The default is slog.Default().
	Log *slog.Logger
}

// Predicate approves calls without asking.
type Predicate struct {
	// Name is recorded as the reason. A predicate without a name approves nothing.
	Name    string
	Approve func(ctx context.Context, a Asked) bool
}

// Asked is the input of a predicate, which must not change it.
type Asked struct {
	Call     *content.FunctionCall
	Agent    string
	Thread   *agent.Thread
	Messages []*content.Message
	Options  *agent.Options
}

// NewStanding returns a layer that answers requests by rules from earlier "always" answers and
// by predicates. If all requests of a response are answered in this way, it calls the inner
// client again.
//
// Answers are matched to requests as in Binding. A rule is created only from an approval that
// was matched, for the recorded call, after the inner client has accepted it. No rule is
// created if the inner client refuses the answer or fails, or if its stream is not read to the
// end. A rule has a maximum age and number of uses, applies to one definition of its tool, and
// compares arguments in canonical form. Automatic approvals that wait for a person's answers to
// other requests are checked again before they are sent, so a rule that was revoked in the
// meantime approves nothing. If the inner client refuses an automatic approval of a request,
// only a person can answer that request from then on. The same applies to all requests of
// nested agents: no rule and no predicate approves them, and answers to them create no rule.
// Without a thread there are no rules and all answers are refused.
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
	s := &standing{cfg: cfg, warn: rounds.NewWarner(cfg.Log)}
	return rounds.New(inner, s.begin)
}

type standing struct {
	cfg  StandingConfig
	warn *rounds.Warner
}

// standingState is the state that is kept between runs.
type standingState = rounds.Standing[Rule]

// judge is a run of Standing in the default profile.
type judge struct {
	*standing
	ctx    context.Context
	in     rounds.Input
	t      *agent.Thread
	state  *standingState
	tools  rounds.Toolbox
	rounds int
	sent   map[string]bool // requests that were approved automatically in this run
}

func (s *standing) begin(ctx context.Context, in rounds.Input) (*rounds.Round, error) {
	t := in.Thread()
	state, err := rounds.Load[standingState](t, StandingState)
	if err != nil {
		return nil, err
	}
	j := &judge{
		standing: s,
		ctx:      ctx,
		in:       in,
		t:        t,
		state:    state,
		tools:    rounds.ToolsOf(in.Options, s.cfg.Tools),
		sent:     map[string]bool{},
	}
	first := in.FirstNew()
	got := book{&state.Shown}.bind(in.Messages, first, j.tools)
	if t == nil {
		s.warn.NoThread(ctx, "Standing", "answers are refused and nothing is approved automatically")
		return &rounds.Round{
			Messages: got.messages,
			Options:  rounds.WithFresh(in.Options, got.fresh),
			Refused:  got.refused,
		}, nil
	}

	j.expire()
	if len(state.Answers) == 0 {
		state.Wishes = nil // from a run that failed
	}
	for _, a := range got.accepted {
		j.answered(a)
	}
	in.Messages, in.Options = rounds.WithoutScopes(got.messages), rounds.WithFresh(in.Options, got.fresh)
	j.in = in
	r, err := j.open(len(got.messages)-got.fresh, got.accepted)
	if err != nil {
		return nil, err
	}
	r.Refused = got.refused
	return r, j.keep()
}

func (j *judge) keep() error { return j.t.Put(StandingState, j.state) }

// open begins the first round, or shows the next request of the queue.
func (j *judge) open(first int, accepted []settled) (*rounds.Round, error) {
	var answers []content.Content
	if len(j.state.Queue) > 0 || len(j.state.Answers) > 0 {
		next, err := j.queued(accepted)
		if next != nil || err != nil {
			return next, err
		}
		if answers, err = j.state.Collected(StandingState); err != nil {
			return nil, err
		}
		j.in.Messages, j.in.Options = withoutAnswers(j.in.Messages, first, j.in.Options)
	}

	approved, left := j.settle()
	in := j.in.InsertAnswers(append(answers, approved...))
	return j.round(in, left), nil
}

// queued stores the answers and returns a round that shows the next request. It returns nil if
// the queue is empty.
func (j *judge) queued(accepted []settled) (*rounds.Round, error) {
	for _, a := range accepted {
		raw, err := rounds.WriteContent(rounds.WithoutScope(a.answer))
		if err != nil {
			return nil, fmt.Errorf("an answer can't be kept: %w", err)
		}
		j.state.Answers = append(j.state.Answers, raw)
	}

	j.drain()
	var show []content.Content
	for _, q := range rounds.RequestsOf(j.state.Shown.Open) {
		show = append(show, q)
	}
	if len(show) == 0 && len(j.state.Queue) > 0 {
		next := j.state.Queue[0].InputRequest
		j.state.Queue = j.state.Queue[1:]
		if err := j.state.Shown.Record(next); err != nil {
			return nil, err
		}
		show = append(show, next)
	}

	if len(show) == 0 {
		return nil, nil
	}
	end := func(*agent.Response) (rounds.Ending, error) { return rounds.Ending{Extra: show}, nil }
	return &rounds.Round{Silent: true, End: end}, nil
}

// drain approves queued requests that match a rule by now.
func (j *judge) drain() {
	j.state.Queue = slices.DeleteFunc(j.state.Queue, func(q *rounds.Request) bool {
		w := j.match(q.InputRequest)
		if w == nil {
			return false
		}
		w.Request = q
		j.state.Waiting = append(j.state.Waiting, *w)
		return true
	})
}

// withoutAnswers removes the new answers from the messages, because they are among the
// collected ones.
func withoutAnswers(
	messages []*content.Message,
	first int,
	opt *agent.Options,
) ([]*content.Message, *agent.Options) {
	out, fresh := rounds.Rewrite(messages, first, func(p rounds.At, c content.Content) content.Content {
		if _, ok := c.(content.InputResponse); ok && p.Message >= first {
			return nil
		}
		return c
	})
	return out, rounds.WithFresh(opt, fresh)
}

// settle turns waiting requests into approvals. It returns those that are no longer approved in
// left, to be asked. Requests that depend on a rule that is not granted yet keep waiting.
func (j *judge) settle() (approved []content.Content, left []content.InputRequest) {
	var wait []rounds.Waiting
	for _, w := range j.state.Waiting {
		q, ok := w.Request.InputRequest.(*content.ToolApprovalRequest)
		switch {
		case w.Rule != "" && ruleOf(j.state.Wishes, w.Rule) != nil:
			wait = append(wait, w)
		case ok && j.stillApproved(w, q):
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

// round calls the inner client. The requests in left must be shown, even if the inner client
// doesn't repeat them.
func (j *judge) round(in rounds.Input, left []content.InputRequest) *rounds.Round {
	shown := 0
	seen := map[string]bool{}
	take := func(c content.Content) (bool, error) {
		q, ok := c.(content.InputRequest)
		if !ok || rounds.Inert(c) {
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
	end := func(whole *agent.Response) (rounds.Ending, error) {
		var e rounds.Ending
		j.grant()
		again := slices.DeleteFunc(left, func(q content.InputRequest) bool { return seen[q.InputRequestID()] })
		for _, q := range slices.Concat(again, j.groundless()) {
			ok, err := take(q)
			if err != nil {
				return e, err
			}
			if ok {
				e.Extra = append(e.Extra, q)
			}
		}

		if shown > 0 || len(j.state.Waiting) == 0 {
			return e, j.keep()
		}
		return j.again(in, whole, e)
	}
	return &rounds.Round{
		Messages: in.Messages,
		Options:  in.Options,
		Told:     j.noteRefused,
		Take:     take,
		End:      end,
		Left:     func() { _ = j.keep() },
	}
}

// sort reports whether a request is shown now. Other requests wait for their approval or in the
// queue.
func (j *judge) sort(q content.InputRequest, shown int) (bool, error) {
	j.forget(q.InputRequestID())
	if j.rounds < j.cfg.MaxRounds {
		if w := j.match(q); w != nil {
			snap, err := rounds.Snapshot(q)
			w.Request = snap
			j.state.Waiting = append(j.state.Waiting, *w)
			return false, err
		}
	}

	if j.cfg.OneAtATime && shown > 0 {
		e := rounds.Find(j.state.Shown.Open, q.InputRequestID())
		if e != nil && rounds.SameRequest(e.Request.InputRequest, q) {
			return false, nil // the person sees it already
		}
		snap, err := rounds.Snapshot(q)
		j.state.Queue = append(j.state.Queue, snap)
		return false, err
	}

	return true, j.state.Shown.Record(q)
}

// forget removes a waiting or queued request that the inner client has repeated or that a
// person has answered. Its rule gets the use back.
func (j *judge) forget(id string) {
	j.state.Waiting = slices.DeleteFunc(j.state.Waiting, func(w rounds.Waiting) bool {
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
	j.state.Queue = slices.DeleteFunc(
		j.state.Queue,
		func(q *rounds.Request) bool { return q.InputRequestID() == id },
	)
}

// again begins another round with the approvals. The inner client gets the messages that a
// caller with its own history would send.
func (j *judge) again(in rounds.Input, whole *agent.Response, e rounds.Ending) (rounds.Ending, error) {
	approved, left := j.settle()
	if len(approved) == 0 {
		return j.ask(e, left)
	}
	j.rounds++
	opt := in.Options.Clone()
	opt.Fresh = 1
	if whole.ConversationID != "" {
		opt.ConversationID = whole.ConversationID
	}
	messages := []*content.Message{content.NewMessage(content.User, approved...)}
	if opt.ConversationID == "" {
		messages = slices.Concat(withoutSettled(in.Messages), whole.Messages, messages)
	}
	e.Next = j.round(rounds.Input{
		Messages:  messages,
		Options:   opt,
		Streaming: in.Streaming,
	}, left)
	return e, j.keep()
}

// ask shows requests that are not approved after all.
func (j *judge) ask(e rounds.Ending, left []content.InputRequest) (rounds.Ending, error) {
	for _, q := range left {
		if err := j.state.Shown.Record(q); err != nil {
			return e, err
		}
		e.Extra = append(e.Extra, q)
	}

	return e, j.keep()
}

// withoutSettled removes answers, and the requests that they answer, if an earlier round has
// handled them. Those about calls of a service stay, because the service reads them again.
func withoutSettled(messages []*content.Message) []*content.Message {
	answered := map[string]bool{}
	rounds.Each(messages, func(_ rounds.At, c content.Content) {
		if a, ok := c.(content.InputResponse); ok && !ofService(c) {
			answered[a.InputResponseTo()] = true
		}
	})
	out, _ := rounds.Rewrite(messages, 0, func(_ rounds.At, c content.Content) content.Content {
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

// ofService reports whether c is a request or an answer about a call that a service makes.
func ofService(c content.Content) bool {
	call := rounds.CallOf(c)
	_, function := call.(*content.FunctionCall)
	return call != nil && !function
}
