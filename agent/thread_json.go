package agent

import (
	"bytes"
	"encoding/json"
	"errors"
	"fmt"
	"slices"
	"strconv"

	"github.com/assent-dev/assent/agent/content"
	"github.com/assent-dev/assent/internal/jsonmsg"
	"github.com/assent-dev/assent/value"
)

// threadVersion is the version of the storage format. Reading fails for later versions and for
// unknown members.
const threadVersion = 1

// VersionError is returned for a thread that a newer release stored.
type VersionError struct{ Version int }

// Error names both versions.
func (e *VersionError) Error() string {
	return fmt.Sprintf("the thread has version %d, this release reads up to %d: "+
		"use the release that stored it, or a newer one", e.Version, threadVersion)
}

type threadJSON struct {
	Version        int                        `json:"version"`
	ID             string                     `json:"id"`
	Revision       int64                      `json:"revision"`
	ConversationID string                     `json:"conversation_id,omitempty"`
	Messages       messagesJSON               `json:"messages"`
	Pending        batches                    `json:"pending"`
	Closed         []closedRequest            `json:"closed,omitempty"`
	HeldBack       messagesJSON               `json:"held_back,omitempty"`
	HeldTries      int                        `json:"held_tries,omitempty"`
	State          map[string]json.RawMessage `json:"state,omitempty"`
}

// itemJSON is the stored form of an item, including its contents.
type itemJSON struct {
	Call  *contentJSON  `json:"call,omitempty"` // left out for a request of the service, which contains the call
	Asked *contentJSON  `json:"asked,omitempty"`
	Lead  []contentJSON `json:"lead,omitempty"`
	*itemFields
}

// itemFields are the members of an item that encoding/json handles by itself.
type itemFields item

// askJSON is the stored form of an ask, including its contents.
type askJSON struct {
	Request contentJSON `json:"request"`
	*askFields
	Answer *contentJSON `json:"answer,omitempty"`
	By     string       `json:"by,omitempty"` // the person who answered; the .NET format has no place for it
}

// askFields are the members of an ask that encoding/json handles by itself.
type askFields ask

// messagesJSON are messages in .NET's format.
type messagesJSON []*content.Message

// MarshalJSON writes a list, never null.
func (m messagesJSON) MarshalJSON() ([]byte, error) { return content.DotNet().AppendMessages(nil, m) }

// UnmarshalJSON reads the output of MarshalJSON.
func (m *messagesJSON) UnmarshalJSON(data []byte) error {
	out, err := content.DotNet().DecodeMessages(data)
	*m = out
	return err
}

// contentJSON is a content in .NET's format.
type contentJSON struct{ content.Content }

// MarshalJSON writes the content.
func (c contentJSON) MarshalJSON() ([]byte, error) {
	return content.DotNet().AppendContent(nil, c.Content)
}

// UnmarshalJSON reads the output of MarshalJSON.
func (c *contentJSON) UnmarshalJSON(data []byte) (err error) {
	c.Content, err = content.DotNet().DecodeContent(data)
	return err
}

func optional(c content.Content) *contentJSON {
	if c == nil {
		return nil
	}
	return &contentJSON{c}
}

// MarshalJSON does the same as Encode. Note that json.Marshal escapes <, > and & in its output,
// so a stored call may be spelled differently, with the same meaning.
func (t *Thread) MarshalJSON() ([]byte, error) { return t.Encode() }

// Encode writes the whole thread including open requests (docs/contracts/thread.md). Arguments
// are written letter by letter.
func (t *Thread) Encode() ([]byte, error) {
	// jsonmsg.Marshal doesn't escape HTML characters, so arguments are not changed.
	raw, err := jsonmsg.Marshal(threadJSON{
		Version:        threadVersion,
		ID:             t.ID,
		Revision:       t.Revision,
		ConversationID: t.ConversationID,
		Messages:       t.Messages,
		Pending:        append(batches{}, t.batches...),
		Closed:         t.closed,
		HeldBack:       t.heldBack,
		HeldTries:      t.heldTries,
		State:          t.State,
	})
	if err != nil {
		return nil, fmt.Errorf("write thread %q: %w", t.ID, err)
	}
	return raw, nil
}

// MarshalJSON writes the item with its contents.
func (it *item) MarshalJSON() ([]byte, error) {
	row := itemJSON{itemFields: (*itemFields)(it)}
	if !it.Service {
		row.Call = optional(it.Call)
	}
	row.Asked = optional(it.Asked)
	for _, c := range it.Lead {
		row.Lead = append(row.Lead, contentJSON{c})
	}
	return jsonmsg.Marshal(row)
}

// MarshalJSON writes the ask with its contents.
func (a *ask) MarshalJSON() ([]byte, error) {
	return jsonmsg.Marshal(askJSON{
		Request:   contentJSON{a.Request},
		askFields: (*askFields)(a),
		Answer:    optional(a.Answer),
		By:        answerer(a.Answer),
	})
}

// UnmarshalJSON reads the output of MarshalJSON. A thread of a later version returns a
// *VersionError. Any part that can't be read is an error too, because an incomplete thread
// could run a call twice. On an error the thread is not changed.
func (t *Thread) UnmarshalJSON(data []byte) error {
	in, err := readThread(data)
	if err != nil {
		return err
	}
	out := Thread{
		ID:             in.ID,
		Revision:       in.Revision,
		ConversationID: in.ConversationID,
		Messages:       in.Messages,
		State:          in.State,
		batches:        in.Pending,
		closed:         in.Closed,
		heldBack:       in.HeldBack,
		heldTries:      in.HeldTries,
		store:          t.store,
	}
	if err := out.checkIDs(); err != nil {
		return fmt.Errorf("read a thread: %w", err)
	}
	*t = out
	return nil
}

// readThread decodes the messages directly from data, since they make up nearly all of a
// thread, and the other members as one small document.
func readThread(data []byte) (in threadJSON, err error) {
	rest := []byte("{")
	seen := map[string]bool{}
	var messages []byte
	for m, err := range value.SplitObject(data) {
		switch {
		case err != nil:
			return in, fmt.Errorf("read a thread: %w", err)
		case seen[m.Key]:
			return in, fmt.Errorf("read a thread: %s stands twice", strconv.Quote(m.Key))
		case m.Key == "messages":
			messages = m.Raw
		default:
			if len(rest) > 1 {
				rest = append(rest, ',')
			}
			rest = append(append(append(rest, jsonText(m.Key)...), ':'), m.Raw...)
		}

		seen[m.Key] = true
	}

	if err := readRest(append(rest, '}'), &in); err != nil {
		return in, err
	}
	if in.Messages, err = content.DotNet().DecodeMessages(messages); err != nil {
		return in, fmt.Errorf("read a thread: messages: %w", err)
	}
	return in, nil
}

// readRest checks the version before it reports errors in other members.
func readRest(rest []byte, in *threadJSON) error {
	bad := strictly(rest, in)
	var head struct {
		Version int `json:"version"`
	}
	if err := json.Unmarshal(rest, &head); err != nil && bad == nil {
		return fmt.Errorf("read a thread: %w", err)
	}
	switch {
	case head.Version > threadVersion:
		return &VersionError{head.Version}
	case bad != nil:
		return fmt.Errorf("read a thread: %w", bad)
	case head.Version < 1:
		return fmt.Errorf(
			"read a thread: expected a version from 1 to %d, found %d",
			threadVersion,
			head.Version,
		)
	}

	return nil
}

// checkIDs returns an error if two requests have the same id, since an answer would reach only
// one of them.
func (t *Thread) checkIDs() error {
	seen := map[string]bool{}
	for it := range t.items() {
		for _, a := range it.Asks {
			id := a.Request.InputRequestID()
			if seen[id] && a.Answer == nil && !it.Service {
				return fmt.Errorf("pending: two requests have the id %q", id)
			}
			seen[id] = true
		}
	}

	return nil
}

// strictly decodes JSON and rejects unknown members.
func strictly(data []byte, into any) error {
	dec := json.NewDecoder(bytes.NewReader(data))
	dec.DisallowUnknownFields()
	return dec.Decode(into)
}

// batches and items are lists whose decoding errors name the index.
type (
	batches []*batch
	items   []*item
)

// UnmarshalJSON reads the batches of a thread.
func (all *batches) UnmarshalJSON(data []byte) error {
	return readEach(data, "pending", (*[]*batch)(all), (*batch).check)
}

// UnmarshalJSON reads the calls of a batch.
func (all *items) UnmarshalJSON(data []byte) error {
	return readEach(data, "calls", (*[]*item)(all), (*item).check)
}

func readEach[T any](data []byte, name string, into *[]*T, check func(*T) error) error {
	var rows []json.RawMessage
	if err := json.Unmarshal(data, &rows); err != nil {
		return fmt.Errorf("%s: %w", name, err)
	}
	for i, row := range rows {
		one := new(T)
		err := strictly(row, one)
		if err == nil {
			err = check(one)
		}
		if err != nil {
			return fmt.Errorf("%s[%d]: %w", name, i, err)
		}
		*into = append(*into, one)
	}

	return nil
}

func (b *batch) check() error {
	if len(b.Items) == 0 {
		return errors.New("calls: expected at least one")
	}
	return nil
}

// UnmarshalJSON reads the output of MarshalJSON.
func (it *item) UnmarshalJSON(data []byte) error {
	row := itemJSON{itemFields: (*itemFields)(it)}
	if err := strictly(data, &row); err != nil {
		return err
	}
	if slices.Contains(it.Asks, nil) {
		return errors.New("asks: expected requests, found one that is null")
	}
	for _, c := range row.Lead {
		it.Lead = append(it.Lead, c.Content)
	}
	switch {
	case row.Call == nil && it.Service && len(it.Asks) > 0:
		it.Call = calledBy(it.Asks[0].Request)
	case row.Call == nil:
		return errors.New("call: expected one")
	}

	if err := take(row.Asked, "asked: expected a call", &it.Asked); err != nil {
		return err
	}
	return take(row.Call, "call: expected a call", &it.Call)
}

// take converts an optional stored content to an expected type.
func take[T content.Content](stored *contentJSON, expected string, into *T) error {
	if stored == nil {
		return nil
	}
	var ok bool
	if *into, ok = stored.Content.(T); !ok {
		return fmt.Errorf("%s, found a %T", expected, stored.Content)
	}
	return nil
}

// UnmarshalJSON reads the output of MarshalJSON.
func (a *ask) UnmarshalJSON(data []byte) error {
	row := askJSON{askFields: (*askFields)(a)}
	if err := strictly(data, &row); err != nil {
		return err
	}
	if err := take(&row.Request, "request: expected a request", &a.Request); err != nil {
		return err
	}
	err := take(row.Answer, "answer: expected a response", &a.Answer)
	by(row.By, a.Answer)

	return err
}

// rejected reports whether the approval request for a call was answered with a rejection.
// Answers to a suspended function don't count, since the function itself handles them.
func (it *item) rejected() bool {
	_, approval := it.Asks[0].Answer.(*content.ToolApprovalResponse)
	return approval && it.State == nil && content.Rejects(it.Asks[0].Answer)
}

// flowAnswer reports whether the item may be a question of a flow, which has an answer and no
// result.
func flowAnswer(it *item) bool { return len(it.Asks) == 1 }

// check returns an error for states that no loop writes and that the loop would handle wrongly.
func (it *item) check() error {
	_, function := it.Call.(*content.FunctionCall)
	answered := !slices.ContainsFunc(it.Asks, func(a *ask) bool { return a.Answer == nil })
	switch {
	case !slices.Contains([]stage{open, approved, running, external, done}, it.Stage):
		return fmt.Errorf("stage: expected one of open, approved, running, external, done, found %q", it.Stage)
	case !it.Service && !function:
		return fmt.Errorf("call: only calls of functions run here, found a %T", it.Call)
	case it.Service && (len(it.Asks) != 1 || it.Stage != open && !answered || it.Stage == running ||
		it.Stage == external):
		return fmt.Errorf("a question of the service with %d requests in stage %q", len(it.Asks), it.Stage)
	case it.Stage == open && (len(it.Asks) == 0 || answered):
		return fmt.Errorf("an open call of which nothing is asked")
	case it.Stage == approved && it.State == nil && (len(it.Asks) == 0 || !answered || it.rejected()):
		return fmt.Errorf("an approved call that nobody approved")
	case it.Stage == done && !it.Service && len(it.Result) == 0 && !flowAnswer(it):
		return fmt.Errorf("a call that has ended without a result")
	}

	return nil
}
