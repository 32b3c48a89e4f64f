// Package agent runs chat models that must sometimes stop and ask a person.
//
// A run ends either with an answer or with user-input requests in its response
// (Response.UserInputRequests). To continue, run the agent again with the answers on the same
// Thread. This may happen in another process. NewFunctionInvoking makes the loop that calls
// tools. A plan (ByPlan), a marker on the tool (RequireApproval), or both decide which calls
// need approval.
//
// An answer applies once, and only to the recorded call that its request showed. Open requests
// never make a thread unusable. An approved call is decided again when it runs. Package compat
// has a loop that behaves like the one of the .NET library instead, including its security
// holes, for programs that need the same behavior.
package agent

import (
	"context"
	"encoding/json"
	"errors"
	"iter"
	"maps"
	"slices"
	"strings"

	"github.com/assent-dev/assent/agent/content"
)

// ChatClient is a chat model, or a layer around one.
type ChatClient interface {
	// Respond answers the messages. It doesn't change them or the options, except for the loop
	// of package compat, which marks calls as handled.
	Respond(ctx context.Context, messages []*content.Message, opt *Options) (*Response, error)
	// Stream does the same as Respond in pieces. The sequence ends after the first error, which
	// may follow some pieces.
	Stream(ctx context.Context, messages []*content.Message, opt *Options) iter.Seq2[*Update, error]
}

// Options go with each request to a model. A nil *Options is the same as the zero value. Layers
// must change only a Clone, which also carries the history of the agent above.
type Options struct {
	// ConversationID names a conversation whose history the service keeps. If it is set, the
	// messages are only the new ones.
	ConversationID string
	Instructions   string
	Model          string
	Temperature    *float64
	MaxTokens      int
	Tools          []Tool
	// Schema is the JSON Schema that the answer must match, for models that support one. If it
	// is nil, the answer is text.
	Schema json.RawMessage
	// Thread keeps open requests and the state of layers between runs. If it is nil, nothing is
	// kept.
	Thread *Thread
	// Fresh is the number of messages at the end that are new in this run. A value of -1 means
	// none. Zero means all messages after the last one whose role is neither user nor tool.
	Fresh int
	// Extra holds settings for adapters.
	Extra map[string]any

	history *history // history of the agent above
}

// Clone copies the options, including the slice of tools, so that tools can be added to the
// copy. A nil receiver returns the zero value.
func (o *Options) Clone() *Options {
	if o == nil {
		return &Options{}
	}
	out := *o
	out.Tools = slices.Clone(o.Tools)
	out.Extra = maps.Clone(o.Extra)
	return &out
}

// errOtherLoop is returned to a loop of another package if calls of the thread wait for the
// loop of this package. Only this package's loop can continue them.
var errOtherLoop = errors.New("calls of this thread wait for the loop of package agent, " +
	"which alone can go on with them")

// ClaimCalls declares that a loop of another package runs the calls of this run. It returns an
// error if calls of the thread wait for the loop of this package: an approved call could run
// twice.
func (o *Options) ClaimCalls() error {
	if o == nil || o.Thread == nil {
		return nil
	}
	if len(o.Thread.batches) > 0 {
		return errOtherLoop
	}
	o.historyOf(o.Thread).loopRuns()
	return nil
}

// Response is the answer of a run or of a model.
type Response struct {
	Messages       []*content.Message
	ID             string
	Model          string
	ConversationID string // set if the service keeps the history
	FinishReason   string // "stop", "length", "tool_calls", "content_filter" or a value of the provider
	Usage          *content.Usage
	// Refused lists the answers in the input that were not applied, each with the reason.
	Refused []Refusal
}

// Text returns the texts of all messages, joined by line breaks.
func (r *Response) Text() string {
	var texts []string
	for _, m := range r.Messages {
		if text := m.Text(); text != "" {
			texts = append(texts, text)
		}
	}
	return strings.Join(texts, "\n")
}

// UserInputRequests returns the requests to the user, in order. The run is over. Run the agent
// again with the answers.
func (r *Response) UserInputRequests() []content.InputRequest {
	return slices.Collect(content.All[content.InputRequest](r.Messages))
}

// Refusal is an answer that was not applied. It changed nothing.
type Refusal struct {
	RequestID string        `json:"request_id"`
	Reason    RefusalReason `json:"reason"`
	Detail    string        `json:"detail"`
}

func (no Refusal) event() Event {
	return Event{
		Type:      "refused",
		RequestID: no.RequestID,
		Detail:    string(no.Reason) + ": " + no.Detail,
	}
}

// RefusalReason is the reason why an answer was not applied. Reasons may be added, but a reason
// never changes its meaning.
type RefusalReason string

// The reasons of a Refusal.
const (
	UnknownRequest RefusalReason = "unknown_request" // this thread never made such a request
	ClosedRequest  RefusalReason = "closed_request"  // already answered, superseded or expired
	OtherCall      RefusalReason = "other_call"      // the answer shows a different call than the request
	WrongKind      RefusalReason = "wrong_kind"      // a response of a different kind than the request
	Contradiction  RefusalReason = "contradiction"   // several answers that differ; a rejection among them is applied
	RepeatedAnswer RefusalReason = "repeated_answer" // the same answer again
	BadAnswer      RefusalReason = "bad_answer"      // data or edited arguments that the schema rejects
	NotOfUser      RefusalReason = "not_of_user"     // in a message of another role; models and tools can't answer
	HeldElsewhere  RefusalReason = "held_elsewhere"  // the holder's people decide; answers in the messages don't count
)

// Update is one piece of a streamed response.
type Update struct {
	Role           content.Role
	AuthorName     string
	MessageID      string
	Contents       []content.Content
	ID             string
	Model          string
	ConversationID string
	FinishReason   string
	Refused        []Refusal
}

// Collect reads a stream to its end and joins its updates. On an error it returns the response
// up to that point together with the error.
func Collect(stream iter.Seq2[*Update, error]) (*Response, error) {
	var all []*Update
	for u, err := range stream {
		if err != nil {
			return Join(all), err
		}
		all = append(all, u)
	}

	return Join(all), nil
}
