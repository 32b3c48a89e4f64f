package agent

import (
	"context"
	"encoding/json"
	"errors"
	"fmt"

	"github.com/assent-dev/assent/agent/content"
)

// Thread is one conversation with one agent: its history, the requests
// that are open, and the state of layers. It can be stored between any
// two runs and loaded by another process. It serves one run at a time.
//
// Messages hold no open request: a model can be given them as they are.
// What is asked stands beside them (Pending) until it is answered, as
// the first proposal of the design had it.
type Thread struct {
	ID             string
	ConversationID string             // of a service that keeps the history; then Messages stay empty
	Messages       []*content.Message // what a model may see
	// State is the bag of layers and of custom agents, by name.
	State map[string]json.RawMessage

	batches []*batch
	closed  []closedRequest
	// heldBack is what the user wrote while a service-held conversation
	// waited for results.
	heldBack  []*content.Message
	heldTries int // runs with them that failed
	// Revision counts the saves; a ThreadStore refuses to save over another.
	Revision int64

	store ThreadStore
}

// ThreadStore keeps threads between runs.
type ThreadStore interface {
	// Load returns a thread, or ErrNoThread.
	Load(ctx context.Context, id string) (*Thread, error)
	// Save writes a thread durably and adds one to its Revision. When
	// the stored revision is not the thread's, it writes nothing and
	// returns ErrConflict: another process went on with the thread.
	Save(ctx context.Context, t *Thread) error
}

// LoadOrNew returns the stored thread of an id, or a new one.
func LoadOrNew(ctx context.Context, store ThreadStore, id string) (*Thread, error) {
	t, err := store.Load(ctx, id)
	if errors.Is(err, ErrNoThread) {
		return NewThread(id), nil
	}
	return t, err
}

// Errors of a ThreadStore.
var (
	ErrNoThread = errors.New("there is no such thread")
	ErrConflict = errors.New("the thread was changed by another process; load it again")
)

// NewThread returns an empty thread with an id of the caller's choice.
func NewThread(id string) *Thread { return &Thread{ID: id, State: map[string]json.RawMessage{}} }

// Keep names the store that Save writes to. The loop saves before and
// after it runs an approved call, so that none runs twice whatever
// crashes.
func (t *Thread) Keep(store ThreadStore) { t.store = store }

// Save writes the thread to its store; without one it does nothing.
func (t *Thread) Save(ctx context.Context) error {
	if t.store == nil {
		return nil
	}
	if err := t.store.Save(ctx, t); err != nil {
		return fmt.Errorf("save the thread: %w", err)
	}
	return nil
}

// Get reads a state into a value; it is false when there is none.
func (t *Thread) Get(key string, into any) (bool, error) {
	raw, ok := t.State[key]
	if !ok {
		return false, nil
	}
	if err := json.Unmarshal(raw, into); err != nil {
		return true, fmt.Errorf("the state %q of the thread: %w", key, err)
	}
	return true, nil
}

// Put keeps a value as a state.
func (t *Thread) Put(key string, v any) error {
	raw, err := json.Marshal(v)
	if err != nil {
		return fmt.Errorf("the state %q of the thread: %w", key, err)
	}
	if t.State == nil {
		t.State = map[string]json.RawMessage{}
	}
	t.State[key] = raw
	return nil
}

// Drop forgets a state.
func (t *Thread) Drop(key string) { delete(t.State, key) }
