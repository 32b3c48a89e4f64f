package agent

import (
	"context"
	"encoding/json"
	"errors"
	"fmt"

	"github.com/assent-dev/assent/agent/content"
)

// Thread is one conversation with one agent: its history, open requests, and the state of
// layers. It can be stored between any two runs and loaded by another process. Only one run may
// use it at a time.
//
// Messages contain no open requests, so they can be passed to a model unchanged. Open requests
// are kept separately (Pending) until they are answered.
type Thread struct {
	ID             string
	ConversationID string             // conversation of a service that keeps the history; Messages then stay empty
	Messages       []*content.Message // messages that a model may see
	// State holds the state of layers and custom agents, by name.
	State map[string]json.RawMessage

	batches []*batch
	closed  []closedRequest
	// heldBack are messages that the user wrote while a conversation kept by the service waited
	// for results.
	heldBack  []*content.Message
	heldTries int // failed runs with these messages
	// Revision counts the saves. A ThreadStore refuses to overwrite a different revision.
	Revision int64

	store ThreadStore
}

// ThreadStore keeps threads between runs.
type ThreadStore interface {
	// Load returns a thread, or ErrNoThread.
	Load(ctx context.Context, id string) (*Thread, error)
	// Save writes a thread durably and increments its Revision. If the stored revision differs
	// from the thread's, another process has continued the thread: Save writes nothing and
	// returns ErrConflict.
	Save(ctx context.Context, t *Thread) error
}

// LoadOrNew loads a thread, or returns a new one if the store doesn't have it.
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

// NewThread returns an empty thread with an id that the caller chooses.
func NewThread(id string) *Thread { return &Thread{ID: id, State: map[string]json.RawMessage{}} }

// Keep sets the store that Save writes to. The loop saves before and after it runs an approved
// call, so that no call runs twice after a crash.
func (t *Thread) Keep(store ThreadStore) { t.store = store }

// Save writes the thread to its store. Without a store it does nothing.
func (t *Thread) Save(ctx context.Context) error {
	if t.store == nil {
		return nil
	}
	if err := t.store.Save(ctx, t); err != nil {
		return fmt.Errorf("save the thread: %w", err)
	}
	return nil
}

// Get unmarshals a state into a value. It returns false if there is no such state.
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

// Put stores a value as a state.
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

// Drop deletes a state.
func (t *Thread) Drop(key string) { delete(t.State, key) }
