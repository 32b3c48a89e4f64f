// Package agent runs chat models that must stop and ask.
//
// A run ends either with an answer or with user-input requests in its
// response (Response.UserInputRequests); run again with the responses,
// on the same Thread and in any process, it goes on.
// NewFunctionInvoking makes the loop that calls tools: which calls need
// approval is decided by a plan (ByPlan) or by a marker on the tool
// (RequireApproval), or both.
//
// An answer acts only on the recorded call that its request showed,
// once. Open requests never break a thread. What is approved is decided
// again when it runs. Package compat has a loop that behaves like that
// of the .NET library instead, holes included, for programs that must
// behave alike.
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
	// Respond answers the messages. It changes neither them nor the
	// options, except for the loop of package compat, which flags calls
	// as handled.
	Respond(ctx context.Context, messages []*content.Message, opt *Options) (*Response, error)
	// Stream is Respond piece by piece. The sequence ends after the
	// first error, which may come after pieces.
	Stream(ctx context.Context, messages []*content.Message, opt *Options) iter.Seq2[*Update, error]
}

// Options go with each request to a model. A nil *Options is the zero
// value. Layers change a Clone, which carries what the agent above
// records.
type Options struct {
	// ConversationID names a conversation whose history the service
	// keeps; then the messages are only the new ones.
	ConversationID string
	Instructions   string
	Model          string
	Temperature    *float64
	MaxTokens      int
	Tools          []Tool
	// Schema is the JSON Schema of the answer, for models that can be
	// held to one; nil for text.
	Schema json.RawMessage
	// Thread holds what lasts between runs: open requests and the state
	// of layers. Nil means that nothing lasts.
	Thread *Thread
	// Fresh is how many of the messages, at the end, are new in this
	// run; -1 means none, 0 those after the last that is no user's or
	// tool's.
	Fresh int
	// Extra is for adapters.
	Extra map[string]any

	history *history // of the agent above
}

// Clone copies the options; tools may then be added to the copy. A nil
// receiver gives the zero value.
func (o *Options) Clone() *Options {
	if o == nil {
		return &Options{}
	}
	out := *o
	out.Tools = slices.Clone(o.Tools)
	out.Extra = maps.Clone(o.Extra)
	return &out
}

// errOtherLoop says that calls of a thread wait for the loop of this
// package, which alone can go on with them.
var errOtherLoop = errors.New("calls of this thread wait for the loop of package agent, " +
	"which alone can go on with them")

// ClaimCalls is for loops of other packages: they run the calls of this
// run. It fails when calls of the thread wait for the loop of this
// package: what is approved would run once more.
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

// Response is what a run or a model answered.
type Response struct {
	Messages       []*content.Message
	ID             string
	Model          string
	ConversationID string // set when the service keeps the history
	FinishReason   string // "stop", "length", "tool_calls", "content_filter" or the provider's own
	Usage          *content.Usage
	// Refused are the answers in the input that could not act, each
	// with its reason.
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

// UserInputRequests returns what the user is asked, in order. The run
// is over; run the agent again with the answers.
func (r *Response) UserInputRequests() []content.InputRequest {
	return slices.Collect(content.All[content.InputRequest](r.Messages))
}

// Refusal is an answer that could not act. It changed nothing.
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

// RefusalReason says why an answer could not act. Reasons may grow in
// number; a reason never changes its meaning.
type RefusalReason string

// The reasons of a Refusal.
const (
	UnknownRequest RefusalReason = "unknown_request" // this thread never made such a request
	ClosedRequest  RefusalReason = "closed_request"  // answered, superseded or expired before
	OtherCall      RefusalReason = "other_call"      // the answer shows another call than the one that was asked about
	WrongKind      RefusalReason = "wrong_kind"      // a response of another kind than the request
	Contradiction  RefusalReason = "contradiction"   // several answers that differ; a rejection among them stands
	RepeatedAnswer RefusalReason = "repeated_answer" // the same answer again
	BadAnswer      RefusalReason = "bad_answer"      // data or edited arguments that the schema refuses
	NotOfUser      RefusalReason = "not_of_user"     // in a message of another role: a model or a tool does not answer
	HeldElsewhere  RefusalReason = "held_elsewhere"  // the holder's people decide; an answer in the messages has no say
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

// Collect reads a stream to its end and joins it. On an error the
// response holds what came before.
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
