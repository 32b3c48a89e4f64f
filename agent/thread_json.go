package agent

import (
	"bytes"
	"encoding/json"
	"errors"
	"fmt"
	"slices"
	"strconv"
	"strings"
	"time"

	"github.com/assent-dev/assent/agent/content"
	"github.com/assent-dev/assent/internal/jsonmsg"
	"github.com/assent-dev/assent/value"
)

// threadVersion names the form in which threads are stored. A reader refuses any later one, and what it doesn't know in this one.
const threadVersion = 1

// VersionError says that a thread was stored by a newer release.
type VersionError struct{ Version int }

// Error names both versions.
func (e *VersionError) Error() string {
	return fmt.Sprintf("the thread has version %d, this release reads up to %d: use the release that stored it, or a newer one", e.Version, threadVersion)
}

type threadJSON struct {
	Version        int                        `json:"version"`
	ID             string                     `json:"id"`
	Revision       int64                      `json:"revision"`
	ConversationID string                     `json:"conversation_id,omitempty"`
	Messages       messagesJSON               `json:"messages"`
	Pending        []batchJSON                `json:"pending"`
	Closed         []closedRequest            `json:"closed,omitempty"`
	HeldBack       messagesJSON               `json:"held_back,omitempty"`
	HeldTries      int                        `json:"held_tries,omitempty"`
	State          map[string]json.RawMessage `json:"state,omitempty"`
}

type batchJSON struct {
	MessageID      string     `json:"message_id,omitempty"`
	AuthorName     string     `json:"author_name,omitempty"`
	ConversationID string     `json:"conversation_id,omitempty"`
	Calls          []itemJSON `json:"calls"`
}

type itemJSON struct {
	Call     *contentJSON    `json:"call,omitempty"` // that of a service's question stands in its request
	Asked    *contentJSON    `json:"asked,omitempty"`
	Lead     []contentJSON   `json:"lead,omitempty"`
	Stage    stage           `json:"stage"`
	Service  bool            `json:"service,omitempty"`
	Asks     []askJSON       `json:"asks,omitempty"`
	State    json.RawMessage `json:"state,omitempty"`
	Poll     bool            `json:"poll,omitempty"`
	Result   json.RawMessage `json:"result,omitempty"`
	Rejected bool            `json:"rejected,omitempty"`
	By       string          `json:"by,omitempty"`
	Ground   ground          `json:"ground,omitzero"`
	Key      string          `json:"key,omitempty"`
	// Unrecorded says that the record of the end is missing.
	Unrecorded bool `json:"unrecorded,omitempty"`
	Tries      int  `json:"tries,omitempty"`
}

type askJSON struct {
	Request contentJSON  `json:"request"`
	Inner   string       `json:"inner,omitempty"`
	Since   time.Time    `json:"since"`
	Expires time.Time    `json:"expires,omitzero"`
	Ref     string       `json:"ref,omitempty"`
	Answer  *contentJSON `json:"answer,omitempty"`
}

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

// MarshalJSON is Encode. Beware that json.Marshal rewrites <, > and & in what it gets, so that a call comes back in other letters, with the
// same meaning.
func (t *Thread) MarshalJSON() ([]byte, error) { return t.Encode() }

// Encode writes the whole thread, open requests included (docs/contracts/thread.md). Arguments keep every letter.
func (t *Thread) Encode() ([]byte, error) {
	out := threadJSON{Version: threadVersion, ID: t.ID, Revision: t.Revision, ConversationID: t.ConversationID, Messages: t.Messages,
		Pending: []batchJSON{}, Closed: t.closed, HeldBack: t.heldBack, HeldTries: t.heldTries, State: t.State}
	for _, b := range t.batches {
		out.Pending = append(out.Pending, b.json())
	}
	raw, err := jsonmsg.Marshal(out) // arguments stay as they were written
	if err != nil {
		return nil, fmt.Errorf("write thread %q: %w", t.ID, err)
	}
	return raw, nil
}

func (b *batch) json() batchJSON {
	out := batchJSON{MessageID: b.MessageID, AuthorName: b.AuthorName, ConversationID: b.ConversationID}
	for _, it := range b.Items {
		row := itemJSON{Call: optional(it.Call), Stage: it.Stage, Service: it.Service, State: it.State, Poll: it.Poll,
			Result: it.Result, Rejected: it.Rejected, By: it.By, Ground: it.Ground, Key: it.Key, Unrecorded: it.Unrecorded, Tries: it.Tries}
		if it.Service {
			row.Call = nil
		}
		if it.Asked != nil {
			row.Asked = optional(it.Asked)
		}
		for _, c := range it.Lead {
			row.Lead = append(row.Lead, contentJSON{c})
		}
		for _, a := range it.Asks {
			row.Asks = append(row.Asks, a.json())
		}
		out.Calls = append(out.Calls, row)
	}
	return out
}

func (a *ask) json() askJSON {
	out := askJSON{Request: contentJSON{a.Request}, Inner: a.Inner, Since: a.Since, Expires: a.Expires, Ref: a.Ref}
	if a.Answer != nil {
		out.Answer = optional(a.Answer)
	}
	return out
}

// UnmarshalJSON reads what MarshalJSON writes. A thread of a later version is a *VersionError; whatever else can't be read whole is an
// error too: half a thread could run a call twice. The thread is changed only when there is no error.
func (t *Thread) UnmarshalJSON(data []byte) error {
	in, err := readThread(data)
	if err != nil {
		return err
	}
	out := Thread{ID: in.ID, Revision: in.Revision, ConversationID: in.ConversationID, Messages: in.Messages, State: in.State,
		closed: in.Closed, heldBack: in.HeldBack, heldTries: in.HeldTries, store: t.store}
	for i, b := range in.Pending {
		batch, err := b.batch()
		if err != nil {
			return fmt.Errorf("read a thread: pending[%d]: %w", i, err)
		}
		out.batches = append(out.batches, batch)
	}
	if err := out.checkIDs(); err != nil {
		return fmt.Errorf("read a thread: %w", err)
	}
	*t = out
	return nil
}

// readThread reads the messages, which are nearly all of a thread, where they stand, and the rest as one small document.
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
	dec := json.NewDecoder(bytes.NewReader(rest))
	dec.DisallowUnknownFields()
	bad := dec.Decode(in)
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
		return fmt.Errorf("read a thread: expected a version from 1 to %d, found %d", threadVersion, head.Version)
	}
	return nil
}

// checkIDs refuses two requests of one id: an answer would find one of them.
func (t *Thread) checkIDs() error {
	seen := map[string]bool{}
	for _, b := range t.batches {
		for _, it := range b.Items {
			for _, a := range it.Asks {
				id := a.Request.InputRequestID()
				if seen[id] && a.Answer == nil && !it.Service {
					return fmt.Errorf("pending: two requests have the id %q", id)
				}
				seen[id] = true
			}
		}
	}
	return nil
}

func (b batchJSON) batch() (*batch, error) {
	if len(b.Calls) == 0 {
		return nil, errors.New("calls: expected at least one")
	}
	out := &batch{MessageID: b.MessageID, AuthorName: b.AuthorName, ConversationID: b.ConversationID}
	for i, row := range b.Calls {
		it, err := row.item()
		if err != nil {
			return nil, fmt.Errorf("calls[%d]: %w", i, err)
		}
		out.Items = append(out.Items, it)
	}
	return out, nil
}

func (row itemJSON) item() (*item, error) {
	call, err := row.call()
	if err != nil {
		return nil, err
	}
	it := &item{Call: call, Stage: row.Stage, Service: row.Service, State: row.State, Poll: row.Poll, Result: row.Result,
		Rejected: row.Rejected, By: row.By, Ground: row.Ground, Key: row.Key, Unrecorded: row.Unrecorded, Tries: row.Tries}
	if row.Asked != nil {
		var ok bool
		if it.Asked, ok = row.Asked.Content.(content.ToolCall); !ok {
			return nil, fmt.Errorf("asked: expected a call, found a %T", row.Asked.Content)
		}
	}
	for _, c := range row.Lead {
		it.Lead = append(it.Lead, c.Content)
	}
	for _, a := range row.Asks {
		asked, err := a.ask()
		if err != nil {
			return nil, err
		}
		it.Asks = append(it.Asks, asked)
	}
	return it, it.check()
}

func (row itemJSON) call() (content.ToolCall, error) {
	if row.Call == nil {
		if q, ok := row.question(); ok && row.Service {
			return calledBy(q), nil
		}
		return nil, errors.New("call: expected one")
	}
	call, ok := row.Call.Content.(content.ToolCall)
	if !ok {
		return nil, fmt.Errorf("call: expected a call, found a %T", row.Call.Content)
	}
	return call, nil
}

func (row itemJSON) question() (content.InputRequest, bool) {
	if len(row.Asks) == 0 {
		return nil, false
	}
	q, ok := row.Asks[0].Request.Content.(content.InputRequest)
	return q, ok
}

func (a askJSON) ask() (*ask, error) {
	q, ok := a.Request.Content.(content.InputRequest)
	if !ok {
		return nil, fmt.Errorf("request: expected a request, found a %T", a.Request.Content)
	}
	out := &ask{Request: q, Inner: a.Inner, Since: a.Since, Expires: a.Expires, Ref: a.Ref}
	if a.Answer != nil {
		if out.Answer, ok = a.Answer.Content.(content.InputResponse); !ok {
			return nil, fmt.Errorf("answer: expected a response, found a %T", a.Answer.Content)
		}
	}
	return out, nil
}

// rejected tells whether the one thing that was asked about a call was refused. What a suspended function asked is for it to judge.
func (it *item) rejected() bool {
	_, approval := it.Asks[0].Answer.(*content.ToolApprovalResponse)
	return approval && it.State == nil && content.Rejects(it.Asks[0].Answer)
}

// flowAnswer holds for the questions of flows, which have answers and no results.
func flowAnswer(it *item) bool { return len(it.Asks) == 1 }

// check refuses what no loop writes and what would be acted upon wrongly.
func (it *item) check() error {
	_, function := it.Call.(*content.FunctionCall)
	answered := !slices.ContainsFunc(it.Asks, func(a *ask) bool { return a.Answer == nil })
	stages := []stage{open, approved, running, external, done}
	switch {
	case !slices.Contains(stages, it.Stage):
		var names []string
		for _, s := range stages {
			names = append(names, string(s))
		}
		return fmt.Errorf("stage: expected one of %s, found %q", strings.Join(names, ", "), it.Stage)
	case !it.Service && !function:
		return fmt.Errorf("call: only calls of functions run here, found a %T", it.Call)
	case it.Service && (len(it.Asks) != 1 || it.Stage != open && !answered || it.Stage == running || it.Stage == external):
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
