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

// ErrThreadNeeded says that a call needs approval and nothing can keep
// the request: the options carry no thread. Nothing has run.
var ErrThreadNeeded = errors.New("a call needs approval, and there is no thread to keep the request in: " +
	"set Options.Thread, or run a NewChatAgent on a thread")

// Errors of what stands in the place of a model.
var (
	ErrNoModel   = errors.New("the loop was made without a model")
	ErrNoAnswer  = errors.New("the model returned neither a response nor an error")
	ErrNilUpdate = errors.New("the model streamed a nil update")
)

// errGone ends a run whose stream nobody reads any more.
var errGone = errors.New("the reader of the stream has gone")

// How requests end.
const (
	howAnswered   = "answered"
	howSuperseded = "superseded"
	howExpired    = "expired"
	howAgain      = "asked again"
	howElsewhere  = "settled elsewhere"
	howWithdrawn  = "withdrawn" // with the turn that asked, which was not finished
)

// boundLoop is the loop of the Default profile. All that it knows of
// open requests stands in the thread; what the messages say of them
// counts for nothing.
type boundLoop struct {
	model ChatClient
	cfg   LoopConfig

	schemas *schemas // of the tools
}

// NewFunctionInvoking returns the loop around a model: it runs the
// functions that the model calls, asks where approval is needed, and
// goes on from the answers. A call that a person rejected is asked about
// again only when the user has written something.
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

// newID makes a request id of a call id. By default it can't be
// guessed, so that an answer meant for another thread finds nothing
// here.
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

// Respond runs until the model has answered or somebody must be asked.
func (l *boundLoop) Respond(ctx context.Context, messages []*content.Message, opt *Options) (*Response, error) {
	r := l.begin(opt, nil)
	if err := r.do(ctx, messages); err != nil {
		return nil, err
	}
	return r.out.resp, nil
}

// Stream is Respond piece by piece: text passes as it comes, calls when
// their turn is complete.
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

// run is one run of a boundLoop.
type run struct {
	*boundLoop
	opt     *Options
	t       *Thread
	lasting bool     // the thread is the caller's: requests can be kept
	adds    *history // to the thread of an agent; nil without one
	out     *sink
	history []*content.Message // what the model is given next
	turn    int
	failed  *Failures
	made    []string // request ids of this run
	fresh   []*batch // that this run made
	stopped bool     // a call ended the run
	unsent  bool     // the history has not reached the model since it grew
	unseen  error    // why the holder could not be asked
	resumed bool     // held-back messages are in the history
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
	r.adds.tellFinished(r.t)
	if r.resumed {
		r.t.heldBack, r.t.heldTries = nil, 0
	}
	if r.opt.ConversationID != "" && r.unsent {
		r.t.heldBack = r.history
	}
	return nil
}

// dropHeldBack drops, after two failed runs, the messages that the user
// wrote while the conversation waited: the service may be refusing
// them, and would refuse them for ever. Results are kept.
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

// takeBack forgets what a failed run, or one that was not read to its
// end, has asked: its turn is not in the history. Calls that were begun
// on an approval stay.
func (r *run) takeBack(ctx context.Context) {
	for _, b := range r.fresh {
		if slices.ContainsFunc(b.Items, (*item).begun) {
			continue
		}
		r.t.batches = slices.DeleteFunc(r.t.batches, func(other *batch) bool { return other == b })
		for _, it := range b.Items {
			r.forget(ctx, it)
			for _, a := range it.Asks { // it expires else
				_ = r.cancel(context.WithoutCancel(ctx), a, "the run that asked was not finished")
			}
		}
	}
}

// begun reports whether a call was begun, or claimed, on an approval.
func (it *item) begun() bool {
	return it.Key != "" ||
		!it.Service && len(it.Asks) > 0 && (it.Stage == running || it.Stage == done && !it.Rejected)
}

// forget ends the requests of a call whose turn is taken back: whoever
// saw them in the stream and answers is told so.
func (r *run) forget(ctx context.Context, it *item) {
	for _, a := range it.Asks {
		if a.Answer == nil {
			r.t.close(it, a, howWithdrawn)
			e := Event{Type: howWithdrawn, RequestID: a.Request.InputRequestID()}
			_ = r.record(context.WithoutCancel(ctx), it, e) // the run has failed already
		}
	}
}

// goOn tells what is finished and lets the model go on, unless it must
// wait for somebody, or there is nothing to tell it.
func (r *run) goOn(ctx context.Context, in input) error {
	if r.opt.ConversationID == "" {
		r.opt.ConversationID = r.t.waitingConversation()
	}
	told, err := r.tell(in)
	if err != nil {
		return err
	}
	if r.unseen != nil && !told && !in.more {
		return r.unseen
	}
	if r.t.waiting() && (!in.more || r.opt.ConversationID != "") {
		return r.holdBack(in)
	}
	if r.stopped || !told && !in.more && len(in.answers)+len(in.refused)+len(in.results) > 0 {
		return r.surface(nil)
	}
	return r.turns(ctx)
}

// holdBack ends a run without asking the model: it can't go on before
// somebody answers. Where the service keeps the history, what the user
// wrote meanwhile waits too, since the service takes nothing else
// before the results.
func (r *run) holdBack(in input) error {
	if in.more && r.opt.ConversationID != "" {
		r.t.heldBack = append(r.t.heldBack, in.history[in.anchor:]...)
	}
	r.unsent = false
	return r.surface(nil)
}

// tell puts finished batches into the history, and shows them to the caller.
func (r *run) tell(in input) (told bool, err error) {
	r.history, r.unsent = slices.Clip(tidyFor(r.opt, in.history[:in.anchor])), true
	for _, b := range r.t.batches {
		if !b.finished() || r.adds.hasTold(b) {
			continue
		}
		told = true
		if err := r.tellBatch(b); err != nil {
			return told, err
		}
	}

	r.adds.userSpeaks()
	if len(r.t.heldBack) > 0 && !r.t.waiting() {
		r.history = append(r.history, r.t.heldBack...)
		r.resumed = true
		told = true
	}
	r.history = append(r.history, tidyFor(r.opt, in.history[in.anchor:])...)
	return told, nil
}

// tellBatch puts one finished batch into the history, and shows what of
// it ran here.
func (r *run) tellBatch(b *batch) error {
	for _, m := range b.messages(r.cfg.DotNetOrder) {
		r.adds.add(m)
		if r.opt.ConversationID == "" || m.Role != content.Assistant { // the service has what it made itself
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

// leads holds for what the caller was shown when the calls were asked about.
func (b *batch) leads(c content.Content) bool {
	return slices.ContainsFunc(b.Items, func(it *item) bool { return slices.Contains(it.Lead, c) })
}

// cloneCalls copies calls that are shown: the thread's own must stay
// what they are.
func cloneCalls(contents []content.Content) []content.Content {
	for i, c := range contents {
		if call, ok := c.(*content.FunctionCall); ok {
			contents[i] = content.CloneCall(call)
		}
	}
	return contents
}

// isQuestion holds for what passes between the model's side and its
// user: the user has seen it.
func isQuestion(c content.Content) bool {
	switch c.(type) {
	case content.InputRequest, content.InputResponse:
		return true
	}
	return false
}

// tidyFor leaves alone what goes to a service that keeps the history:
// it has the calls.
func tidyFor(opt *Options, messages []*content.Message) []*content.Message {
	if opt.ConversationID != "" {
		return messages
	}
	return tidy(messages)
}

// surface ends a run with what still waits, except of a batch that was
// shown in this run.
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

// sink is where a run's response goes.
type sink struct {
	resp  *Response
	yield func(*Update) bool // nil when nobody streams
}

// message adds a whole message to the response.
func (s *sink) message(m *content.Message) error {
	s.resp.Messages = append(s.resp.Messages, m)
	return s.update(&Update{
		Role:       m.Role,
		AuthorName: m.AuthorName,
		MessageID:  m.ID,
		Contents:   m.Contents,
	})
}

// update passes a piece on that the response gets elsewhere.
func (s *sink) update(u *Update) error {
	if s.yield != nil && !s.yield(u) {
		return errGone
	}
	return nil
}

// refuse adds answers that could not act.
func (s *sink) refuse(all []Refusal) error {
	if len(all) == 0 {
		return nil
	}
	s.resp.Refused = append(s.resp.Refused, all...)
	return s.update(&Update{Refused: all})
}
