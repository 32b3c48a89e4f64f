package agent

import (
	"context"
	"crypto/rand"
	"encoding/json"
	"errors"
	"fmt"
	"iter"
	"slices"
	"time"

	"github.com/assent-dev/assent/agent/content"
	"github.com/assent-dev/assent/agent/internal/reid"
	"github.com/assent-dev/assent/approval/info"
)

// Errors of a Flow.
var (
	// ErrWaiting ends a run of a flow that needs an answer of its user. The flow function must
	// return it, unchanged or wrapped.
	ErrWaiting = errors.New("the flow waits for its user")
	// ErrStepLost is returned if a step was begun by a process that no longer exists. The step
	// is not begun again, because it is not known whether it took effect.
	ErrStepLost = errors.New("a step was begun and never ended")
	// ErrExpired is returned if a question was not answered in time. It doesn't mean that the
	// user declined.
	ErrExpired = errors.New("nobody answered in time")
	// ErrDeclined is returned if the user said no or gave no data.
	ErrDeclined = errors.New("the user declined")
)

// FlowConfig configures a flow agent.
type FlowConfig struct {
	Store ThreadStore // keeps the threads; a step is saved when it ends
	Audit Audit
	Now   func() time.Time                 // the clock; time.Now if nil
	NewID func(key string) (string, error) // makes request ids; if nil, an id is the key with a random tail
}

// NewFlow returns an agent that is not a chat loop: run is a program of steps that may ask the
// user questions in between. Each run starts from the beginning. Steps that have ended return
// their stored results without being done again, and answered questions return their answers.
// So run must be deterministic: anything that can differ between runs belongs in a step.
//
// If run returns nil, or an error that is ErrDeclined or ErrExpired, the flow has ended, and
// the next message starts it from the beginning. After any other error the next run continues
// from the step that failed.
func NewFlow(name string, cfg FlowConfig, run func(ctx context.Context, f *Flow) error) Agent {
	if cfg.Now == nil {
		cfg.Now = time.Now
	}
	if cfg.NewID == nil {
		cfg.NewID = func(key string) (string, error) {
			tail, err := randomTail(rand.Reader)
			return key + tail, err
		}
	}

	return &flowAgent{name, cfg, run}
}

type flowAgent struct {
	name string
	cfg  FlowConfig
	run  func(ctx context.Context, f *Flow) error
}

// Flow gives a running flow its input, steps and questions. Keys name steps and questions. Each
// key may be used once in a flow.
type Flow struct {
	agent  *flowAgent
	t      *Thread
	state  flowState
	said   []*content.Message // messages to show, from the beginning of the flow
	heard  []*content.Message // the user's messages in this run
	later  int                // number of messages in heard that were added to Later
	used   []string           // keys of this run
	opened []string           // questions that this run asked
}

// flowState is the state of a flow that is stored in its thread.
type flowState struct {
	Input messagesJSON        `json:"input"`
	Steps map[string]flowStep `json:"steps"`
	Later messagesJSON        `json:"later,omitempty"`
	Begun bool                `json:"begun,omitempty"` // a run of it has ended or waits
	Said  int                 `json:"said"`            // number of messages that earlier runs showed
}

type flowStep struct {
	Ended  bool            `json:"ended"`
	Result json.RawMessage `json:"result,omitempty"`
}

// Input returns the messages that started the flow.
func (f *Flow) Input() []*content.Message { return f.state.Input }

// Say shows a message. A message that an earlier run showed is not shown again.
func (f *Flow) Say(text string) { f.said = append(f.said, content.AssistantText(text)) }

// Step does something once and unmarshals its result into a value. Pass a nil value to ignore
// the result. An error of do is not stored: the next run does the step again. If the thread has
// a store, the step is saved before it begins and after it has ended. A step that a crash
// interrupted returns ErrStepLost in every later run.
func (f *Flow) Step(ctx context.Context, key string, do func(context.Context) (any, error), into any) error {
	if err := f.use(key); err != nil {
		return err
	}
	step, begun := f.state.Steps[key]
	if begun && !step.Ended {
		return fmt.Errorf("step %q: %w", key, ErrStepLost)
	}
	if !begun {
		var err error
		if step, err = f.doStep(ctx, key, do); err != nil {
			return err
		}
	}

	if into == nil {
		return nil
	}
	if err := json.Unmarshal(step.Result, into); err != nil {
		return fmt.Errorf("the result of step %q: %w", key, err)
	}
	return nil
}

func (f *Flow) doStep(ctx context.Context, key string, do func(context.Context) (any, error)) (flowStep, error) {
	f.state.Steps[key] = flowStep{}
	if err := f.save(ctx); err != nil {
		delete(f.state.Steps, key)
		return flowStep{}, err
	}
	result, err := guarded(func() (any, error) { return do(ctx) })
	if err != nil {
		delete(f.state.Steps, key)
		return flowStep{}, errors.Join(fmt.Errorf("step %q: %w", key, err), f.save(context.WithoutCancel(ctx)))
	}

	if result == nil {
		result = json.RawMessage("null")
	}
	step := flowStep{Ended: true, Result: result}
	f.state.Steps[key] = step
	return step, f.save(context.WithoutCancel(ctx)) // the step is done, so save it even if the caller has cancelled
}

// use marks a key as used. Two steps with the same key would share one result.
func (f *Flow) use(key string) error {
	if slices.Contains(f.used, key) {
		return fmt.Errorf("the key %q is used twice in this flow: expected one for each step and question", key)
	}
	f.used = append(f.used, key)
	return nil
}

// Approve asks for consent to a text. It returns ErrDeclined for a no. If it returns
// ErrWaiting, the flow must return that error. The items in says are shown as context to the
// person who is asked.
func (f *Flow) Approve(ctx context.Context, key, text string, says ...info.Item) error {
	answer, err := f.Ask(ctx, key, &content.TextApprovalRequest{Text: text, Note: content.Note{Context: says}})
	if err != nil {
		return err
	}
	if content.Rejects(answer) {
		return declined(key, answer)
	}
	return nil
}

// declined returns ErrDeclined with the user's reason.
func declined(key string, answer content.InputResponse) error {
	if reason := reasonOf(answer); reason != "" {
		return fmt.Errorf("%q: %w: %s", key, ErrDeclined, reason)
	}
	return fmt.Errorf("%q: %w", key, ErrDeclined)
}

// Data asks for data that a JSON Schema describes and unmarshals it into a value. It returns
// ErrDeclined if the user gave no data. If it returns ErrWaiting, the flow must return that
// error. The items in says are shown as context to the person who is asked.
func (f *Flow) Data(
	ctx context.Context, key, text string, schema json.RawMessage, into any, says ...info.Item,
) error {
	answer, err := f.Ask(ctx, key, &content.StructuredInputRequest{
		Text:   text,
		Schema: schema,
		Note:   content.Note{Context: says},
	})
	if err != nil {
		return err
	}
	response, ok := answer.(*content.StructuredInputResponse)
	if !ok || response.Declined {
		return declined(key, answer)
	}
	if into == nil {
		return nil
	}
	if err := json.Unmarshal(response.Data, into); err != nil {
		return fmt.Errorf("the data of %q: %w", key, err)
	}
	return nil
}

// Ask asks the user any request. The request gets a new id.
func (f *Flow) Ask(ctx context.Context, key string, q content.InputRequest) (content.InputResponse, error) {
	if err := f.use(key); err != nil {
		return nil, err
	}
	if err := askable(q); err != nil {
		return nil, fmt.Errorf("question %q: %w", key, err)
	}
	if it := f.t.pendingCall(key); it != nil && len(it.Asks) == 1 {
		switch {
		case it.Stage == open:
			return nil, ErrWaiting
		case it.Asks[0].Answer == nil:
			return nil, fmt.Errorf("%q: %w", key, ErrExpired)
		}

		return by(it.By, reid.Response(it.Asks[0].Answer, it.Asks[0].Request.InputRequestID())), nil
	}

	id, err := f.agent.cfg.NewID(key)
	if err != nil {
		return nil, fmt.Errorf("make a request id: %w", err)
	}
	asked := reid.Request(q, id)
	a := &ask{
		Request: asked,
		Since:   f.agent.cfg.Now().UTC(),
		Expires: content.NoteOf(asked).Expires,
	}
	it := &item{
		Call:  &content.FunctionCall{CallID: key, Name: f.agent.name},
		Stage: open,
		Asks:  []*ask{a},
	}
	if err := f.agent.audit(ctx, f.t, Event{
		Type:      "requested",
		RequestID: id,
		CallID:    key,
	}); err != nil {
		return nil, err
	}

	f.t.batches = append(f.t.batches, &batch{Items: []*item{it}})
	f.opened = append(f.opened, key)
	return nil, ErrWaiting
}

// Later returns the user's messages since the flow began, without answers.
func (f *Flow) Later() []*content.Message { return f.state.Later }

func (a *flowAgent) Name() string { return a.name }

// Run runs the flow again from its beginning. Finished steps and answered questions return
// their stored results.
func (a *flowAgent) Run(ctx context.Context, t *Thread, messages ...*content.Message) (*Response, error) {
	f, refused, err := a.begin(ctx, t, messages)
	if err != nil {
		return nil, err
	}
	if f == nil { // a late answer doesn't start the flow
		return &Response{Refused: refused}, nil
	}
	_, err = guarded(func() (any, error) { return nil, a.run(ctx, f) })
	if err == nil && len(f.opened) > 0 {
		err = fmt.Errorf("the flow ended although it asks %q: return ErrWaiting", f.opened[0])
	}
	// the flow has ended; the next message starts it again
	if errors.Is(err, ErrDeclined) || errors.Is(err, ErrExpired) {
		t.Messages = append(t.Messages, f.heard...)
		f.end()
		return nil, errors.Join(err, t.Save(context.WithoutCancel(ctx)))
	}
	if err != nil && !errors.Is(err, ErrWaiting) {
		f.forgetOpened()
		f.state.Later = f.state.Later[:len(f.state.Later)-f.later] // the caller will send them again
		return nil, errors.Join(err, f.save(context.WithoutCancel(ctx)))
	}
	f.state.Begun = true
	t.Messages = append(t.Messages, f.heard...)
	resp := &Response{Refused: refused, Messages: slices.Clone(f.said[min(f.state.Said, len(f.said)):])}
	t.Messages = append(t.Messages, resp.Messages...)
	f.state.Said = len(f.said)
	if err == nil {
		f.end()
		return resp, t.Save(ctx)
	}
	asked := content.NewMessage(content.Assistant)
	for _, p := range t.Pending() {
		asked.Contents = append(asked.Contents, p.Request)
	}
	resp.Messages = append(resp.Messages, asked)
	return resp, f.save(ctx)
}

// Stream yields the response of Run with one update for each message.
func (a *flowAgent) Stream(
	ctx context.Context,
	t *Thread,
	messages ...*content.Message,
) iter.Seq2[*Update, error] {
	return func(yield func(*Update, error) bool) {
		StreamOf(a.Run(ctx, t, messages...))(yield)
	}
}

// forgetOpened drops the questions of a run that failed, because they have not been shown.
func (f *Flow) forgetOpened() {
	f.t.batches = slices.DeleteFunc(f.t.batches, func(b *batch) bool {
		return slices.Contains(f.opened, b.Items[0].Call.ID())
	})
}

// begin loads the flow of a thread, or starts one, and applies answers. It returns a nil Flow
// if there is no flow and the messages contain only answers.
func (a *flowAgent) begin(ctx context.Context, t *Thread, messages []*content.Message) (*Flow, []Refusal, error) {
	if err := checkInput(t, messages); err != nil {
		return nil, nil, err
	}
	if a.cfg.Store != nil {
		t.Keep(a.cfg.Store)
	}
	f := &Flow{agent: a, t: t}
	going, err := t.Get(f.key(), &f.state)
	if err != nil {
		return nil, nil, err
	}
	in := readInput(t, false, messages, 0)
	f.hear(going, in.history)
	if f.state.Steps == nil {
		f.state.Steps = map[string]flowStep{}
	}
	if err := a.expire(ctx, t); err != nil {
		return nil, nil, err
	}
	hits, refused := t.match(in)
	for _, hit := range hits {
		yes := !content.Rejects(hit.answer)
		e := Event{
			Type:      "answered",
			RequestID: hit.answer.InputResponseTo(),
			CallID:    hit.item.Call.ID(),
			Approved:  &yes,
			By:        answerer(hit.answer),
			Detail:    reasonOf(hit.answer),
		}
		if err := a.audit(ctx, t, e); err != nil {
			return nil, nil, err
		}
		hit.ask.Answer = hit.answer
		hit.item.Stage = done
		hit.item.By = e.By
		t.close(hit.item, hit.ask, howAnswered)
	}

	for _, no := range refused {
		if err := a.audit(ctx, t, no.event()); err != nil {
			return nil, nil, err
		}
	}
	if !going && len(in.answers)+len(in.refused) > 0 && len(in.history) == 0 {
		return nil, refused, nil
	}
	return f, refused, nil
}

// hear stores the user's messages other than answers. They are the input of the flow until one
// of its runs has ended or asked a question, and later messages after that.
func (f *Flow) hear(going bool, said []*content.Message) {
	f.heard = said
	switch {
	case going && f.state.Begun:
		f.state.Later, f.later = append(f.state.Later, said...), len(said)
	case len(said) > 0 || !going:
		f.state.Input = said
	default:
		f.heard = f.state.Input
	}
}

// expire closes questions that were not answered in time.
func (a *flowAgent) expire(ctx context.Context, t *Thread) error {
	now := a.cfg.Now()
	for it, q := range t.openAsks() {
		if q.Expires.IsZero() || now.Before(q.Expires) {
			continue
		}
		e := Event{
			Type:      howExpired,
			RequestID: q.Request.InputRequestID(),
			CallID:    it.Call.ID(),
		}
		if err := a.audit(ctx, t, e); err != nil {
			return err
		}
		it.Stage = done
		t.close(it, q, howExpired)
	}

	return nil
}

func (a *flowAgent) audit(ctx context.Context, t *Thread, e Event) error {
	e.Tool = a.name
	return a.cfg.Audit.record(ctx, t, a.cfg.Now().UTC(), e)
}

func (f *Flow) key() string { return "flow/" + f.agent.name }

// save puts the state of the flow into the thread and saves the thread.
func (f *Flow) save(ctx context.Context) error {
	if err := f.t.Put(f.key(), f.state); err != nil {
		return err
	}
	return f.t.Save(ctx)
}

// end removes the state of a flow that has ended and closes its open questions.
func (f *Flow) end() {
	for it, a := range f.t.openAsks() {
		f.t.close(it, a, howElsewhere)
	}
	f.t.Drop(f.key())
	f.t.batches = nil
}
