// Package openai speaks to models over the Chat Completions and
// Responses APIs, with the official SDK as its transport.
//
// What a model writes as arguments is kept as text, letter by letter,
// and goes back so. Calls of an answer that was cut short (by length or
// by a filter) are marked InformationalOnly: half a call is never run.
// A stream gives its calls when it is complete, not before.
//
// Histories are not mended. A result without a call before it, and an
// answer about an MCP call without its request, are refused before
// anything is sent, unless the service keeps the history
// (Options.ConversationID) and may know them. Requests and answers
// about functions, inert calls without results, usage and errors other
// than refusals are never sent. What can't be sent at all is refused;
// such errors are *content.BadError. Texts that two readers could read
// differently are refused in both directions.
//
// The SDK's own NewClient reads OPENAI_API_KEY, OPENAI_ADMIN_KEY,
// OPENAI_ORG_ID, OPENAI_PROJECT_ID, OPENAI_WEBHOOK_SECRET,
// OPENAI_BASE_URL and OPENAI_CUSTOM_HEADERS. NewClient of this package
// reads nothing of the environment; nor does anything else here. The
// SDK tries again twice after connection errors and statuses 408, 409,
// 429 and 5xx (Config.Request changes that), never in the middle of a
// stream.
package openai

import (
	"context"
	"encoding/json"
	"fmt"
	"io"
	"iter"
	"net/http"

	"github.com/assent-dev/assent/agent"
	"github.com/assent-dev/assent/agent/content"
	"github.com/assent-dev/assent/internal/jsonmsg"

	sdk "github.com/openai/openai-go/v3"
	"github.com/openai/openai-go/v3/option"
	"github.com/openai/openai-go/v3/packages/ssestream"
)

// ExtraKey is the key of Options.Extra under which a request may have
// members of its own: a json.RawMessage of an object.
const ExtraKey = "openai"

// Config are the choices for an adapter. The zero value needs a model in the
// options of every request.
type Config struct {
	Model string // for requests whose options name none
	// Store lets the service keep responses (Responses only). Then each
	// response names its conversation, and a request that names it
	// sends only what is new. Without it nothing is kept, and
	// conversation ids are refused.
	Store bool
	// Strict holds arguments and structured answers to their schemas;
	// the service accepts fewer schemas then.
	Strict bool
	// Include asks for more in the answer (Responses only), such as
	// "reasoning.encrypted_content" where the service doesn't give that
	// by itself. Models that don't reason may refuse it.
	Include []string
	// Extra are members of every request, such as
	// {"reasoning":{"effort":"low"}}. One that the adapter writes
	// itself is an error.
	Extra json.RawMessage
	// Request changes how requests are made: retries, timeouts, headers.
	Request []option.RequestOption
}

// NewClient returns the SDK's client for one address and key, whatever
// the environment says. An empty address is the public service; others
// include the version, such as http://localhost:8000/v1. The client is
// for NewChat and NewResponses: its services are not set up.
func NewClient(baseURL, key string, more ...option.RequestOption) sdk.Client {
	opts := []option.RequestOption{option.WithEnvironmentProduction()}
	if baseURL != "" {
		opts = append(opts, option.WithBaseURL(baseURL))
	}
	if key != "" {
		opts = append(opts, option.WithAPIKey(key))
	}
	return sdk.Client{Options: append(opts, more...)}
}

// NewChat returns a model behind the Chat Completions API. It keeps no
// history at the service, and has no hosted tools.
func NewChat(client sdk.Client, cfg Config) agent.ChatClient {
	return &model{client, cfg, chat{cfg}}
}

// NewResponses returns a model behind the Responses API.
func NewResponses(client sdk.Client, cfg Config) agent.ChatClient {
	return &model{client, cfg, responses{cfg}}
}

// model is a ChatClient over one of the APIs.
type model struct {
	client sdk.Client
	cfg    Config
	api    api
}

// api is what the two APIs differ in.
type api interface {
	path() string
	// request writes the body.
	request(messages []*content.Message, opt *agent.Options, stream bool) ([]byte, error)
	// answer returns a reader of one answer.
	answer(opt *agent.Options) answer
}

// answer reads what a model answers.
type answer interface {
	// whole reads an answer that came at once.
	whole(src []byte) ([]*agent.Update, error)
	// event reads one event of a stream; over says that nothing more is
	// to come.
	event(src []byte) (updates []*agent.Update, over bool, err error)
	// end is called when the stream ends without saying so.
	end() ([]*agent.Update, error)
}

// Respond answers the messages. Errors are *content.BadError (nothing
// was sent, or the answer is unreadable), *StatusError, ErrCut, or
// those of the context and the connection.
func (m *model) Respond(
	ctx context.Context,
	messages []*content.Message,
	opt *agent.Options,
) (*agent.Response, error) {
	opt = opt.Clone()
	res, err := m.post(ctx, messages, opt, false)
	if err != nil {
		return nil, err
	}
	defer func() { _ = res.Body.Close() }()
	src, err := io.ReadAll(io.LimitReader(res.Body, int64(jsonmsg.Limits().MaxBytes)+1))
	if err != nil {
		return nil, cut(ctx, err)
	}
	updates, err := m.api.answer(opt).whole(src)
	if err != nil {
		return nil, unreadable(err)
	}
	return agent.Join(updates), nil
}

// Stream is Respond piece by piece.
func (m *model) Stream(
	ctx context.Context, messages []*content.Message, opt *agent.Options,
) iter.Seq2[*agent.Update, error] {
	return func(yield func(*agent.Update, error) bool) {
		opt := opt.Clone()
		res, err := m.post(ctx, messages, opt, true)
		if err != nil {
			yield(nil, err)
			return
		}
		defer func() { _ = res.Body.Close() }()
		if err := pump(
			ctx,
			ssestream.NewDecoder(res),
			m.api.answer(opt),
			jsonmsg.Limits().MaxBytes,
			yield,
		); err != nil {
			yield(nil, err)
		}
	}
}

// pump hands on what the events say until the answer is over or its
// reader stops. All events together have room for so many bytes.
func pump(
	ctx context.Context, events ssestream.Decoder, a answer, room int, yield func(*agent.Update, error) bool,
) error {
	for {
		updates, over, err := next(ctx, events, a, &room)
		for _, u := range updates {
			if !yield(u, nil) {
				return nil
			}
		}
		if err != nil || over {
			return unreadable(err)
		}
	}
}

func next(ctx context.Context, events ssestream.Decoder, a answer, room *int) ([]*agent.Update, bool, error) {
	if !events.Next() {
		if err := events.Err(); err != nil {
			return nil, true, cut(ctx, err)
		}
		updates, err := a.end()
		return updates, true, err
	}

	data := events.Event().Data
	if *room -= len(data); *room < 0 {
		return nil, true, bad(content.BadJSON, "", "the stream is too long")
	}
	return a.event(data)
}

// post sends a request. The body is written here and goes out as it is; keys,
// addresses and retries are the SDK's.
func (m *model) post(
	ctx context.Context, messages []*content.Message, opt *agent.Options, stream bool,
) (*http.Response, error) {
	if opt.Model == "" {
		opt.Model = m.cfg.Model
	}
	body, err := m.api.request(messages, opt, stream)
	if err != nil {
		return nil, fmt.Errorf("openai: the request: %w", badMessage(err))
	}
	var res *http.Response
	if err := m.client.Post(ctx, m.api.path(), body, &res, m.cfg.Request...); err != nil {
		return nil, statusError(res, err)
	}
	return res, nil
}
