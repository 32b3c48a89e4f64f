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

// threadVersion names the form in which threads are stored. A reader
// refuses any later one, and what it doesn't know in this one.
const threadVersion = 1

// VersionError says that a thread was stored by a newer release.
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

// itemJSON is an item with its contents.
type itemJSON struct {
	Call  *contentJSON  `json:"call,omitempty"` // that of a service's question is in its request
	Asked *contentJSON  `json:"asked,omitempty"`
	Lead  []contentJSON `json:"lead,omitempty"`
	*itemFields
}

// itemFields are the members of an item that need no help.
type itemFields item

// askJSON is an ask with its contents.
type askJSON struct {
	Request contentJSON `json:"request"`
	*askFields
	Answer *contentJSON `json:"answer,omitempty"`
	By     string       `json:"by,omitempty"` // who answered: no content carries it
}

// askFields are the members of an ask that need no help.
type askFields ask

// messagesJSON are messages in .NET's shape.
type messagesJSON []*content.Message

// MarshalJSON writes a list, never null.
func (m messagesJSON) MarshalJSON() ([]byte, error) { return content.DotNet().AppendMessages(nil, m) }

// UnmarshalJSON reads what MarshalJSON writes.
func (m *messagesJSON) UnmarshalJSON(data []byte) error {
	out, err := content.DotNet().DecodeMessages(data)
	*m = out
	return err
}

// contentJSON is a content in .NET's shape.
type contentJSON struct{ content.Content }

// MarshalJSON writes the content.
func (c contentJSON) MarshalJSON() ([]byte, error) {
	return content.DotNet().AppendContent(nil, c.Content)
}

// UnmarshalJSON reads what MarshalJSON writes.
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

// MarshalJSON is Encode. Beware that json.Marshal rewrites <, > and &
// in what it gets, so that a call comes back in other letters, with the
// same meaning.
func (t *Thread) MarshalJSON() ([]byte, error) { return t.Encode() }

// Encode writes the whole thread, open requests included
// (docs/contracts/thread.md). Arguments keep every letter.
func (t *Thread) Encode() ([]byte, error) {
	// Arguments stay as they were written.
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

// UnmarshalJSON reads what MarshalJSON writes. A thread of a later
// version is a *VersionError; whatever else can't be read whole is an
// error too: half a thread could run a call twice. The thread is
// changed only when there is no error.
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

// readThread reads the messages, which are nearly all of a thread,
// where they stand, and the rest as one small document.
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

// readRest looks at the version before it judges any other member.
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

// checkIDs refuses two requests of one id: an answer would find one of them.
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

// strictly refuses members that are not known.
func strictly(data []byte, into any) error {
	dec := json.NewDecoder(bytes.NewReader(data))
	dec.DisallowUnknownFields()
	return dec.Decode(into)
}

// batches and items are lists whose errors name the place.
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

// UnmarshalJSON reads what MarshalJSON writes.
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

// take reads a content that must be of some kind, when it is there.
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

// UnmarshalJSON reads what MarshalJSON writes.
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

// rejected reports whether the one thing that was asked about a call
// was refused. What a suspended function asked is for it to judge.
func (it *item) rejected() bool {
	_, approval := it.Asks[0].Answer.(*content.ToolApprovalResponse)
	return approval && it.State == nil && content.Rejects(it.Asks[0].Answer)
}

// flowAnswer holds for the questions of flows, which have answers and
// no results.
func flowAnswer(it *item) bool { return len(it.Asks) == 1 }

// check refuses what no loop writes and what would be acted upon wrongly.
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
