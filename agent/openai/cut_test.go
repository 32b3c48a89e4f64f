package openai

import (
	"context"
	"errors"
	"io"
	"net/http"
	"testing"

	"github.com/assent-dev/assent/agent"
	"github.com/assent-dev/assent/agent/content"

	"github.com/openai/openai-go/v3/option"
	"github.com/openai/openai-go/v3/packages/ssestream"
)

// cutStream reads a stream that must break, and returns the response up to that point.
func cutStream(t *testing.T, m agent.ChatClient, opt *agent.Options) *agent.Response {
	t.Helper()
	r, err := agent.Collect(m.Stream(t.Context(), []*content.Message{content.UserText("x")}, opt))
	if !errors.Is(err, ErrCut) || !errors.Is(err, io.ErrUnexpectedEOF) {
		t.Errorf("got %v", err)
	}
	if r.FinishReason != "" || r.ConversationID != "" {
		t.Errorf("a cut answer says that it is finished: %s", show(r))
	}
	return r
}

func TestChatCut(t *testing.T) {
	m := chatOn(t, "chat_cut.json", Config{Model: "m"})
	for range 3 { // broken; ended without a finish reason; ended normally, but too early
		shows(t, cutStream(t, m, nil), "c  ", "assistant c", `  text "So"`)
	}
	if _, err := m.Respond(t.Context(), []*content.Message{content.UserText("x")}, nil); !errors.Is(err, ErrCut) {
		t.Errorf("got %v", err)
	}
}

func TestCancelled(t *testing.T) {
	m := chatOn(t, "chat_stream.json", Config{Model: "gpt-4.1"})
	ctx, cancel := context.WithCancel(t.Context())
	defer cancel()
	var last error
	for u, err := range m.Stream(ctx, []*content.Message{content.UserText("Weather?")}, nil) {
		if u != nil {
			cancel()
		}
		last = err
	}

	// The part that had arrived may be complete. Otherwise the error must be the context's
	// error alone.
	if last != nil && (!errors.Is(last, context.Canceled) || errors.Is(last, ErrCut)) {
		t.Errorf("got %v", last)
	}
	_, err := m.Respond(ctx, []*content.Message{content.UserText("x")}, nil)
	if !errors.Is(err, context.Canceled) {
		t.Errorf("got %v", err)
	}
}

// endless is a stream that repeats the same event forever.
type endless struct{}

func (endless) Next() bool             { return true }
func (endless) Event() ssestream.Event { return ssestream.Event{Data: []byte(`{"id":"c"}`)} }
func (endless) Close() error           { return nil }
func (endless) Err() error             { return nil }

func TestStreamTooLong(t *testing.T) {
	err := pump(t.Context(), endless{}, &chatAnswer{}, 1000, func(*agent.Update, error) bool { return true })
	var got *content.BadError
	if !errors.As(err, &got) {
		t.Errorf("got %v", err)
	}
}

func TestCutByContext(t *testing.T) {
	ctx, cancel := context.WithCancel(t.Context())
	cancel()
	if err := cut(ctx, io.ErrUnexpectedEOF); !errors.Is(err, context.Canceled) || errors.Is(err, ErrCut) {
		t.Errorf("got %v", err)
	}
}

// captured records requests instead of sending them.
type captured struct{ got *http.Request }

func (c *captured) Do(r *http.Request) (*http.Response, error) {
	c.got = r
	return nil, errors.New("no network")
}

func TestPublicService(t *testing.T) {
	t.Setenv("OPENAI_BASE_URL", "https://elsewhere.example/v1")
	t.Setenv("OPENAI_API_KEY", "other")
	var c captured
	client := NewClient("", "k", option.WithHTTPClient(&c), option.WithMaxRetries(0))
	if _, err := NewResponses(client, Config{Model: "m"}).Respond(t.Context(), nil, nil); err == nil {
		t.Error("got an answer without a network")
	}
	if got := c.got.URL.String() + " " + c.got.Header.Get("Authorization"); got != "https://api.openai.com/v1/responses Bearer k" {
		t.Errorf("got %s", got)
	}
}

func TestStopReading(t *testing.T) {
	m := chatOn(t, "chat_stream.json", Config{Model: "gpt-4.1"})
	n := 0
	for range m.Stream(t.Context(), []*content.Message{content.UserText("Weather?")}, nil) {
		n++
		break
	}
	if n != 1 {
		t.Errorf("got %d updates", n)
	}
}

func TestConnectionRefused(t *testing.T) {
	m := NewChat(NewClient("http://127.0.0.1:1/v1", ""), Config{Model: "m"})
	ctx, cancel := context.WithCancel(t.Context())
	cancel()
	_, err := agent.Collect(m.Stream(ctx, nil, nil))
	var status *StatusError
	if err == nil || errors.As(err, &status) {
		t.Errorf("got %v", err)
	}
}
