package serve

import (
	"context"
	"encoding/json"
	"errors"
	"fmt"
	"net/http"
	"time"

	"github.com/assent-dev/assent/agent"
	"github.com/assent-dev/assent/agent/a2a"
	"github.com/assent-dev/assent/agent/content"
	"github.com/assent-dev/assent/internal/wait"
)

// Card contains the fields of the agent card in addition to the name.
type Card struct {
	URL         string // public URL of this host
	Description string
	Version     string  // version of the agent; "1" by default
	Skills      []Skill // by default one skill with the agent's name
}

// Skill describes something that the agent can do.
type Skill struct {
	ID          string   `json:"id"`
	Name        string   `json:"name"`
	Description string   `json:"description"`
	Tags        []string `json:"tags"`
}

// A2A serves an agent over A2A 1.0: SendMessage, SendStreamingMessage, GetTask, SubscribeToTask
// and CancelTask, and the agent card at /.well-known/agent-card.json, which needs no token.
//
// Each message without a task id begins a task with its own thread. A context only groups
// tasks. A message with the id of an earlier one returns the task that the earlier one began,
// and runs nothing. A run continues after its caller has disconnected. A run that a killed
// process left behind is continued by the next request for its task, unless the thread shows
// that the run had ended.
type A2A struct {
	*host
	card []byte
}

// NewA2A returns a host. Close ends its runs.
func NewA2A(cfg Config, card Card) (*A2A, error) {
	h, err := newHost(cfg)
	if err != nil {
		return nil, err
	}
	if card.URL == "" {
		return nil, errors.New("serve: the card needs the URL of the host")
	}
	text, err := json.Marshal(cardOf(cfg.Agent.Name(), card))
	if err != nil {
		return nil, fmt.Errorf("write the agent's card: %w", err)
	}
	return &A2A{host: h, card: text}, nil
}

func cardOf(name string, card Card) map[string]any {
	if card.Skills == nil {
		card.Skills = []Skill{{
			ID:          name,
			Name:        name,
			Description: card.Description,
			Tags:        []string{},
		}}
	}

	if card.Version == "" {
		card.Version = "1"
	}
	return map[string]any{
		"name":        name,
		"description": card.Description,
		"version":     card.Version,
		"supportedInterfaces": []map[string]string{{
			"url":             card.URL,
			"protocolBinding": "JSONRPC",
			"protocolVersion": a2a.Version,
		}},
		"capabilities":       map[string]any{"streaming": true},
		"defaultInputModes":  []string{"text/plain", a2a.ResponseMediaType},
		"defaultOutputModes": []string{"text/plain", a2a.RequestMediaType},
		"skills":             card.Skills,
		"securitySchemes": map[string]any{
			"bearer": map[string]any{"httpAuthSecurityScheme": map[string]string{"scheme": "Bearer"}},
		},
		"securityRequirements": []map[string]any{{"schemes": map[string]any{"bearer": map[string]any{}}}},
	}
}

// ServeHTTP serves the card without authentication and calls to known callers.
func (h *A2A) ServeHTTP(w http.ResponseWriter, r *http.Request) {
	switch {
	case r.Method == http.MethodGet && r.URL.Path == "/.well-known/agent-card.json":
		w.Header().Set("Content-Type", "application/json")
		_, _ = w.Write(h.card) // the client may have disconnected; there is no one to report the error to
	case r.URL.Path != "/" && r.URL.Path != "":
		http.NotFound(w, r)
	case r.Method != http.MethodPost:
		w.Header().Set("Allow", http.MethodPost)
		http.Error(w, "expected a POST of JSON-RPC", http.StatusMethodNotAllowed)
	default:
		if caller, ok := h.caller(w, r); ok {
			h.serve(w, r, caller)
		}
	}
}

// send accepts a message. The returned turn is the one that handles it, or nil if no run is
// needed.
func (h *A2A) send(ctx context.Context, caller string, m *a2a.Message) (*record, *turn, error) {
	id := m.TaskID
	if id == "" {
		id = "task-" + Hash(caller + "\x00" + m.MessageID)[:32]
	}
	key := threadID("a2a", caller, id)
	t, mine, err := h.begin(key)
	if err != nil {
		return nil, nil, err
	}
	if !mine {
		rec, err := h.repeated(ctx, key, t, m)
		if rec == nil && err == nil {
			return h.send(ctx, caller, m)
		}
		return rec, t, err
	}
	thread, rec, err := h.admit(ctx, key, id, m)
	if err != nil || rec.Input == nil {
		h.end(key)
		return rec, nil, err
	}
	t.note()
	shown := *rec
	go h.work(key, t, thread, rec)
	return &shown, t, nil
}

// repeated looks for the message in a task that is running. It returns neither a record nor an
// error if the turn has ended in the meantime.
func (h *A2A) repeated(ctx context.Context, key string, t *turn, m *a2a.Message) (*record, error) {
	if err := wait.For(ctx, t.noted, h.cfg.RunFor); err != nil {
		return nil, err
	}
	_, rec, err := h.load(ctx, key)
	if err != nil {
		return nil, err
	}
	if again, err := rec.isRepeated(m); err != nil || again {
		return rec, err
	}
	if rec.State != a2a.Working && rec.State != a2a.Submitted {
		// The client has seen the result of the turn, which is about to end.
		return nil, wait.For(ctx, t.done, h.cfg.RunFor)
	}
	return nil, unsupported("the task is at work: wait until it asks or has ended")
}

// admit stores a message before it is run. A message that was accepted before is not accepted
// again: then the record has no input.
func (h *A2A) admit(ctx context.Context, key, id string, m *a2a.Message) (*agent.Thread, *record, error) {
	thread, rec, err := h.load(ctx, key)
	if errors.Is(err, errNoTask) && m.TaskID == "" {
		thread, err = agent.NewThread(key), nil
		rec = newRecord(id, m)
	}
	if err != nil {
		return nil, nil, err
	}
	again, err := rec.isRepeated(m)
	if err != nil || again && rec.Input == nil {
		return nil, rec, err
	}
	if !again {
		input, err := rec.input(thread, m)
		if err != nil {
			return nil, nil, err
		}
		rec.take(m, input, h.cfg.Now())
		if err := h.save(ctx, thread, rec); err != nil {
			return nil, nil, err
		}
	}

	return thread, rec, nil
}

// work runs the agent once with the record's input and stores the result.
func (h *A2A) work(key string, t *turn, thread *agent.Thread, rec *record) {
	defer h.end(key)
	var messages []*content.Message
	if rec.Input != nil && !rec.isIn(thread) {
		messages = append(messages, rec.Input)
	}
	resp, err := h.run(t.ctx, thread, messages)
	if err != nil {
		h.cfg.Log.Error("run the agent", "task", rec.TaskID, "error", err)
		if rec.Input == nil || errors.Is(err, agent.ErrConflict) || errors.Is(t.ctx.Err(), context.Canceled) {
			return // a failed look changes nothing; another process has the thread; or the run was cancelled
		}
	}

	if !rec.settle(thread, resp, err, h.cfg.Now()) {
		return
	}
	if err := h.save(context.WithoutCancel(t.ctx), thread, rec); err != nil {
		h.cfg.Log.Error("save a task", "task", rec.TaskID, "error", err)
	}
}

// run runs the agent and turns a panic into an error.
func (h *A2A) run(
	ctx context.Context, thread *agent.Thread, messages []*content.Message,
) (resp *agent.Response, err error) {
	defer func() {
		if p := recover(); p != nil {
			err = fmt.Errorf("the agent panics: %v", p)
		}
	}()
	return h.cfg.Agent.Run(ctx, thread, messages...)
}

// lookFor limits the time that a request for a task waits until the agent has checked for
// answers.
const lookFor = 2 * time.Second

// look returns the current state of a task. If the task waits for people elsewhere, or was left
// behind by a killed process, it is run first.
func (h *A2A) look(ctx context.Context, caller, id string) (*record, error) {
	key := threadID("a2a", caller, id)
	_, rec, err := h.load(ctx, key)
	if err != nil || rec.State != a2a.Working {
		return rec, err
	}
	t, mine, err := h.begin(key)
	if err != nil {
		return rec, nil // too many runs; return the task as stored
	}
	if mine {
		thread, rec, err := h.load(ctx, key)
		if err != nil || rec.State != a2a.Working {
			h.end(key)
			return rec, err
		}
		go h.work(key, t, thread, rec)
	}

	if err := wait.For(ctx, t.done, lookFor); err != nil {
		return nil, err
	}
	_, rec, err = h.load(ctx, key)
	return rec, err
}

// cancel ends a task that has not ended. It ends the task's current run first.
func (h *A2A) cancel(ctx context.Context, caller, id string) (*record, error) {
	key := threadID("a2a", caller, id)
	if _, _, err := h.load(ctx, key); err != nil {
		return nil, err
	}
	for {
		t, mine, err := h.begin(key)
		if err != nil {
			return nil, err
		}
		if mine {
			defer h.end(key)
			return h.canceled(ctx, key)
		}
		t.cancel()
		if err := wait.For(ctx, t.done, h.cfg.RunFor); err != nil {
			return nil, err
		}
	}
}

func (h *A2A) canceled(ctx context.Context, key string) (*record, error) {
	thread, rec, err := h.load(ctx, key)
	if err != nil {
		return nil, err
	}
	if rec.State.Ended() {
		return nil, &rpcError{codeNotCancelable, "the task has ended: it is " + string(rec.State)}
	}
	rec.Input = nil
	rec.say(a2a.Canceled, "The caller canceled the task.", h.cfg.Now())
	if err := h.save(ctx, thread, rec); err != nil {
		return nil, err
	}
	_, held := openRequests(thread)
	for _, p := range held {
		if h.cfg.Withdraw == nil {
			break
		}
		if err := h.cfg.Withdraw(ctx, p.Ref, "the task was canceled"); err != nil {
			h.cfg.Log.Error("withdraw a request", "task", rec.TaskID, "error", err)
		}
	}

	return rec, nil
}
