package agent

import (
	"context"
	"encoding/json"
	"errors"
	"testing"

	"github.com/assent-dev/assent/agent/content"
)

// booking is a flow that looks for a seat, asks for consent and data, and books once.
func booking(looks, books *int) Agent {
	return NewFlow("booking", FlowConfig{NewID: func(key string) (string, error) { return "q-" + key, nil }}, func(ctx context.Context, f *Flow) error {
		var seat string
		if err := f.Step(ctx, "look", func(context.Context) (any, error) { *looks++; return "12A", nil }, &seat); err != nil {
			return err
		}
		f.Say("Seat " + seat + " is free.")
		if err := f.Approve(ctx, "take", "Take seat "+seat+"?"); errors.Is(err, ErrDeclined) {
			f.Say("No seat, then.")
			return nil
		} else if err != nil {
			return err
		}
		var who struct{ Name string }
		schema := json.RawMessage(`{"type":"object","properties":{"name":{"type":"string","minLength":1}},"required":["name"]}`)
		if err := f.Data(ctx, "who", "Who flies?", schema, &who); err != nil {
			return err
		}
		if err := f.Step(ctx, "book", func(context.Context) (any, error) { *books++; return nil, nil }, nil); err != nil {
			return err
		}
		f.Say("Booked for " + who.Name + ".")
		return nil
	})
}

func TestFlow(t *testing.T) {
	var looks, books int
	a := booking(&looks, &books)
	thread := NewThread("t")
	resp := mustRun(t, a, thread, content.UserText("a seat, please"))
	expect(t, "first", tell(resp.Messages), "assistant: \"Seat 12A is free.\"\nassistant: q-take?\"Take seat 12A?\"\n")
	thread = reload(t, thread)
	yes := resp.UserInputRequests()[0].(*content.TextApprovalRequest).CreateApproval("")
	resp = mustRun(t, a, thread, answers(yes))
	if len(resp.UserInputRequests()) != 1 || len(resp.Messages) != 1 {
		t.Fatal(tell(resp.Messages))
	}
	who := resp.UserInputRequests()[0].(*content.StructuredInputRequest)
	if _, err := who.CreateResponse(json.RawMessage(`{"name":""}`)); err == nil {
		t.Fatal("the schema accepts an empty name")
	}
	resp = mustRun(t, a, thread, answers(&content.StructuredInputResponse{RequestID: who.RequestID, Data: json.RawMessage(`{"name":""}`)}, yes))
	if len(resp.Refused) != 2 || resp.Refused[0].Reason != BadAnswer || resp.Refused[1].Reason != ClosedRequest {
		t.Fatalf("%+v", resp.Refused)
	}
	data, err := who.CreateResponse(json.RawMessage(`{"name":"Ann"}`))
	if err != nil {
		t.Fatal(err)
	}
	thread = reload(t, thread)
	resp = mustRun(t, a, thread, answers(data))
	expect(t, "last", tell(resp.Messages), "assistant: \"Booked for Ann.\"\n")
	if looks != 1 || books != 1 || len(thread.Pending()) != 0 || len(thread.State) != 0 {
		t.Fatalf("looked %d times, booked %d times, pending %v, state %v", looks, books, thread.Pending(), thread.State)
	}
	expect(t, "history", tell(thread.Messages), "user: \"a seat, please\"\nassistant: \"Seat 12A is free.\"\nassistant: \"Booked for Ann.\"\n")
}

func TestFlowDeclined(t *testing.T) {
	var looks, books int
	a := booking(&looks, &books)
	thread := NewThread("t")
	resp := mustRun(t, a, thread, content.UserText("a seat, please"))
	resp = mustRun(t, a, thread, answers(resp.UserInputRequests()[0].(*content.TextApprovalRequest).CreateRejection("too dear")))
	expect(t, "last", tell(resp.Messages), "assistant: \"No seat, then.\"\n")
	if books != 0 {
		t.Fatal("booked without consent")
	}
}
