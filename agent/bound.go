package agent

import (
	"context"
	"crypto/rand"
	"encoding/hex"
	"errors"
	"fmt"
	"io"
	"iter"
	"slices"
	"time"

	"github.com/assent-dev/assent/agent/content"
)

// ErrThreadNeeded is returned if a call needs approval, or a function asks the user, and the
// options have no thread that could keep the request. The call has not been approved and has
// not run to its end.
var ErrThreadNeeded = errors.New("a call needs approval, and there is no thread to keep the request in: " +
	"set Options.Thread, or run a NewChatAgent on a thread")

// Errors of a missing or faulty model.
var (
	ErrNoModel   = errors.New("the loop was made without a model")
	ErrNoAnswer  = errors.New("the model returned neither a response nor an error")
	ErrNilUpdate = errors.New("the model streamed a nil update")
)

// errGone ends a run after the reader of its stream has stopped reading.
var errGone = errors.New("the reader of the stream has gone")

// These constants record how a request ended.
const (
	howAnswered   = "answered"
	howSuperseded = "superseded"
	howExpired    = "expired"
	howAgain      = "asked again"
	howElsewhere  = "settled elsewhere"
	howWithdrawn  = "withdrawn" // the turn that made the request was not finished
)

// boundLoop is the loop of the Default profile. It takes open requests only from the thread.
// Copies of requests in the messages are ignored.
type boundLoop struct {
	model ChatClient
	cfg   LoopConfig

	schemas *schemas // compiled schemas of the tools
}

// NewFunctionInvoking returns the loop around a model. The loop runs the functions that the
// model calls, requests approval for calls that need it, and continues when answers arrive.
// After a person has rejected a call, the loop asks about the same call again only once the
// user has written something.
func NewFunctionInvoking(model ChatClient, cfg LoopConfig) ChatClient {
	if cfg.MaxTurns == 0 {
		cfg.MaxTurns = 40
	}
	if cfg.Now == nil {
		cfg.Now = time.Now
	}
	if cfg.Rand == nil {
		cfg.Rand = rand.Reader
	}
	return &boundLoop{model, cfg, &schemas{}}
}

// newID makes a request id from a call id. By default the id can't be guessed, so an answer
// that was meant for another thread doesn't match a request here.
func (l *boundLoop) newID(callID string) (string, error) {
	if l.cfg.RequestID != nil {
		return l.cfg.RequestID(callID), nil
	}
	tail, err := randomTail(l.cfg.Rand)
	return "ficc_" + callID + tail, err
}

func randomTail(from io.Reader) (string, error) {
	var b [8]byte
	if _, err := io.ReadFull(from, b[:]); err != nil {
		return "", fmt.Errorf("random bytes: %w", err)
	}
	return "." + hex.EncodeToString(b[:]), nil
}

// Respond runs until the model has answered or a person must be asked.
func (l *boundLoop) Respond(ctx context.Context, messages []*content.Message, opt *Options) (*Response, error) {
	r := l.begin(opt, nil)
	if err := r.do(ctx, messages); err != nil {
		return nil, err
	}
	return r.out.resp, nil
}

// Stream does the same as Respond in pieces: text is passed on as it arrives, calls when their
// turn is complete.
func (l *boundLoop) Stream(
	ctx context.Context,
	messages []*content.Message,
	opt *Options,
) iter.Seq2[*Update, error] {
	return func(yield func(*Update, error) bool) {
		r := l.begin(opt, func(u *Update) bool { return yield(u, nil) })
		if err := r.do(ctx, messages); err != nil && !errors.Is(err, errGone) {
			yield(nil, err)
		}
	}
}

// run is the state of one run of a boundLoop.
type run struct {
	*boundLoop
	opt     *Options
	t       *Thread
	lasting bool     // the caller provided the thread, so requests can be kept
	adds    *history // what this run adds to the thread of an agent; nil without an agent
	out     *sink
	history []*content.Message // the messages for the model's next turn
	turn    int
	failed  *Failures
	made    []string // request ids that this run made
	fresh   []*batch // batches that this run made
	stopped bool     // a function call ended the run (Invocation.Stop)
	unsent  bool     // the history has grown since the model last saw it
	unseen  error    // why the holder could not be reached
	resumed bool     // the history contains messages that had been held back
}

func (l *boundLoop) begin(opt *Options, yield func(*Update) bool) *run {
	r := &run{
		boundLoop: l,
		opt:       opt.Clone(),
		out:       &sink{resp: &Response{}, yield: yield},
		failed:    NewFailures(l.cfg.MaxErrors),
	}
	r.t, r.lasting = r.opt.Thread, r.opt.Thread != nil
	if !r.lasting {
		r.t = NewThread("")
	}
	r.adds = r.opt.historyOf(r.t)
	r.adds.loopRuns()
	return r
}

func (r *run) do(ctx context.Context, messages []*content.Message) error {
	err := r.try(ctx, messages)
	if err == nil {
		err = r.holdQuestions(ctx)
	}
	if err != nil {
		r.takeBack(ctx)
		return r.dropHeldBack(err)
	}
	r.adds.recordFinished(r.t)
	if r.resumed {
		r.t.heldBack, r.t.heldTries = nil, 0
	}
	if r.opt.ConversationID != "" && r.unsent {
		r.t.heldBack = r.history
	}
	return nil
}

// dropHeldBack drops the user's held-back messages after two failed runs with them: if the
// service rejects one of them, every later run would fail too. Function results are kept.
func (r *run) dropHeldBack(err error) error {
	if !r.resumed || errors.Is(err, errGone) {
		return err
	}
	if r.t.heldTries++; r.t.heldTries < 2 {
		return err
	}
	before := len(r.t.heldBack)
	r.t.heldBack = slices.DeleteFunc(
		r.t.heldBack,
		func(m *content.Message) bool { return m.Role != content.ToolRole },
	)
	r.t.heldTries = 0
	if len(r.t.heldBack) < before {
		return fmt.Errorf("what was written while the conversation waited is dropped, send it again: %w", err)
	}

	return err
}

func (r *run) try(ctx context.Context, messages []*content.Message) error {
	if r.model == nil {
		return ErrNoModel
	}
	in := readInput(r.t, r.lasting, messages, FirstNew(messages, r.opt.Fresh))
	if err := r.takeIn(ctx, in); err != nil {
		return err
	}
	if err := r.runApproved(ctx); err != nil {
		return err
	}
	return r.goOn(ctx, in)
}

// takeBack removes the requests of a run that failed, or whose stream was not read to its end,
// because the turn that made them is not in the history. Batches with calls that were begun on
// an approval stay.
func (r *run) takeBack(ctx context.Context) {
	for _, b := range r.fresh {
		if slices.ContainsFunc(b.Items, (*item).begun) {
			continue
		}
		r.t.batches = slices.DeleteFunc(r.t.batches, func(other *batch) bool { return other == b })
		for _, it := range b.Items {
			r.forget(ctx, it)
			for _, a := range it.Asks { // if cancelling fails, the request expires
				_ = r.cancel(context.WithoutCancel(ctx), a, "the run that asked was not finished")
			}
		}
	}
}

// begun reports whether the call was begun, or claimed, on an approval.
func (it *item) begun() bool {
	return it.Key != "" ||
		!it.Service && len(it.Asks) > 0 && (it.Stage == running || it.Stage == done && !it.Rejected)
}

// forget closes the open requests of a call whose turn is taken back. A user who saw them in
// the stream and answers later gets a refusal that says so.
func (r *run) forget(ctx context.Context, it *item) {
	for _, a := range it.Asks {
		if a.Answer == nil {
			r.t.close(it, a, howWithdrawn)
			e := Event{Type: howWithdrawn, RequestID: a.Request.InputRequestID()}
			_ = r.record(context.WithoutCancel(ctx), it, e) // the run has failed already
		}
	}
}

// goOn adds finished batches to the history and lets the model continue, unless the run must
// wait for an answer or there is nothing new for the model.
func (r *run) goOn(ctx context.Context, in input) error {
	if r.opt.ConversationID == "" {
		r.opt.ConversationID = r.t.waitingConversation()
	}
	added, err := r.addFinished(in)
	if err != nil {
		return err
	}
	if r.unseen != nil && !added && !in.more {
		return r.unseen
	}
	if r.t.waiting() && (!in.more || r.opt.ConversationID != "") {
		return r.holdBack(in)
	}
	if r.stopped || !added && !in.more && len(in.answers)+len(in.refused)+len(in.results) > 0 {
		return r.surface(nil)
	}
	return r.turns(ctx)
}

// holdBack ends a run without calling the model, because the model can't continue before a
// request is answered. If the service keeps the history, messages that the user wrote meanwhile
// wait too: the service accepts no other message before the results.
func (r *run) holdBack(in input) error {
	if in.more && r.opt.ConversationID != "" {
		r.t.heldBack = append(r.t.heldBack, in.history[in.anchor:]...)
	}
	r.unsent = false
	return r.surface(nil)
}

// addFinished adds finished batches to the history and shows them to the caller.
func (r *run) addFinished(in input) (added bool, err error) {
	r.history, r.unsent = slices.Clip(tidyFor(r.opt, in.history[:in.anchor])), true
	for _, b := range r.t.batches {
		if !b.finished() || r.adds.hasBatch(b) {
			continue
		}
		added = true
		if err := r.addBatch(b); err != nil {
			return added, err
		}
	}

	r.adds.userSpeaks()
	if len(r.t.heldBack) > 0 && !r.t.waiting() {
		r.history = append(r.history, r.t.heldBack...)
		r.resumed = true
		added = true
	}
	r.history = append(r.history, tidyFor(r.opt, in.history[in.anchor:])...)
	return added, nil
}

// addBatch adds one finished batch to the history and shows the caller the calls that ran here
// and their results.
func (r *run) addBatch(b *batch) error {
	for _, m := range b.messages(r.cfg.DotNetOrder) {
		r.adds.add(m)
		// the service already has the messages that it made itself
		if r.opt.ConversationID == "" || m.Role != content.Assistant {
			r.history = append(r.history, m)
		}
		shown := slices.DeleteFunc(slices.Clone(m.Contents), func(c content.Content) bool {
			return isQuestion(c) || b.leads(c)
		})
		if len(shown) == 0 {
			continue
		}
		if err := r.out.message(m.With(cloneCalls(shown))); err != nil {
			return err
		}
	}

	return nil
}

// leads reports whether c is reasoning that the caller was shown when the calls were asked
// about.
func (b *batch) leads(c content.Content) bool {
	return slices.ContainsFunc(b.Items, func(it *item) bool { return slices.Contains(it.Lead, c) })
}

// cloneCalls replaces calls that are shown with copies, so that the caller can't change the
// calls in the thread.
func cloneCalls(contents []content.Content) []content.Content {
	for i, c := range contents {
		if call, ok := c.(*content.FunctionCall); ok {
			contents[i] = content.CloneCall(call)
		}
	}
	return contents
}

// isQuestion reports whether c is a request or an answer that is passed between the model's
// service and the user. The user has already seen it.
func isQuestion(c content.Content) bool {
	switch c.(type) {
	case content.InputRequest, content.InputResponse:
		return true
	}
	return false
}

// tidyFor applies tidy unless a service keeps the history: then the service has the calls, and
// the messages hold only the results.
func tidyFor(opt *Options, messages []*content.Message) []*content.Message {
	if opt.ConversationID != "" {
		return messages
	}
	return tidy(messages)
}

// surface ends a run by showing the requests and calls that still wait, except those of the
// batch that this run has already shown.
func (r *run) surface(shown *batch) error {
	var contents []content.Content
	for _, b := range r.t.batches {
		for _, it := range b.Items {
			if b != shown {
				contents = append(contents, it.visible()...)
			}
		}
	}

	if len(contents) == 0 {
		return nil
	}
	return r.out.message(content.NewMessage(content.Assistant, contents...))
}

// sink collects the response of a run and, if the run is streamed, passes its updates on.
type sink struct {
	resp  *Response
	yield func(*Update) bool // nil if the run is not streamed
}

// message adds a whole message to the response and streams it.
func (s *sink) message(m *content.Message) error {
	s.resp.Messages = append(s.resp.Messages, m)
	return s.update(&Update{
		Role:       m.Role,
		AuthorName: m.AuthorName,
		MessageID:  m.ID,
		Contents:   m.Contents,
	})
}

// update streams an update whose contents are added to the response by other code. It returns
// errGone if the reader has stopped.
func (s *sink) update(u *Update) error {
	if s.yield != nil && !s.yield(u) {
		return errGone
	}
	return nil
}

// refuse adds refused answers to the response and streams them.
func (s *sink) refuse(all []Refusal) error {
	if len(all) == 0 {
		return nil
	}
	s.resp.Refused = append(s.resp.Refused, all...)
	return s.update(&Update{Refused: all})
}
