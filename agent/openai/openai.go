// Package openai calls models over the Chat Completions and Responses APIs, with the official
// SDK as its transport.
//
// Arguments that a model writes are kept as text, letter by letter, and sent back unchanged.
// Calls in an answer that was cut short (by the length limit or a filter) are marked
// InformationalOnly, so that an incomplete call never runs. A stream yields its calls only when
// it is complete.
//
// Histories are not repaired. A result without a preceding call, and an answer about an MCP
// call without its request, are errors before anything is sent, unless the service keeps the
// history (Options.ConversationID) and may have the missing part. Requests and answers about
// functions, marked calls without results, usage, and errors other than refusals are never
// sent. Other contents that can't be sent are errors of type *content.BadError. Texts that two
// parsers could read differently are rejected in both directions.
//
// The SDK's own NewClient reads OPENAI_API_KEY, OPENAI_ADMIN_KEY, OPENAI_ORG_ID,
// OPENAI_PROJECT_ID, OPENAI_WEBHOOK_SECRET, OPENAI_BASE_URL and OPENAI_CUSTOM_HEADERS.
// NewClient of this package doesn't read the environment, and neither does anything else here.
// By default the SDK retries twice after connection errors and statuses 408, 409, 429 and 5xx
// (Config.Request changes that), but never in the middle of a stream.
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

// ExtraKey is the key of Options.Extra for additional members of a request. The value is a
// json.RawMessage with an object.
const ExtraKey = "openai"

// Config configures an adapter. The zero value requires a model in the options of every
// request.
type Config struct {
	Model string // for requests whose options name no model
	// Store lets the service keep responses (Responses API only). Then each response names its
	// conversation, and a request with that id sends only the new messages. Without Store
	// nothing is kept, and conversation ids are errors.
	Store bool
	// Strict requires arguments and structured answers to match their schemas exactly. The
	// service then accepts fewer schemas.
	Strict bool
	// Include requests more data in the answer (Responses API only), such as
	// "reasoning.encrypted_content" if the service doesn't send it by default. Models that
	// don't reason may reject it.
	Include []string
	// Extra contains additional members of every request, such as
	// {"reasoning":{"effort":"low"}}. A member that the adapter writes itself is an error.
	Extra json.RawMessage
	// Request changes how requests are made: retries, timeouts, headers.
	Request []option.RequestOption
}

// NewClient returns the SDK's client for one address and key, and ignores the environment. An
// empty address means the public service. Other addresses include the version, such as
// http://localhost:8000/v1. Use the client only for NewChat and NewResponses: its services are
// not set up.
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

// NewChat returns a model that uses the Chat Completions API. The service keeps no history and
// has no hosted tools.
func NewChat(client sdk.Client, cfg Config) agent.ChatClient {
	return &model{client, cfg, chat{cfg}}
}

// NewResponses returns a model that uses the Responses API.
func NewResponses(client sdk.Client, cfg Config) agent.ChatClient {
	return &model{client, cfg, responses{cfg}}
}

// model is a ChatClient that uses one of the APIs.
type model struct {
	client sdk.Client
	cfg    Config
	api    api
}

// api is the part in which the two APIs differ.
type api interface {
	path() string
	// request writes the body.
	request(messages []*content.Message, opt *agent.Options, stream bool) ([]byte, error)
	// answer returns a reader for one answer.
	answer(opt *agent.Options) answer
}

// answer reads an answer of a model.
type answer interface {
	// whole reads an answer that is not streamed.
	whole(src []byte) ([]*agent.Update, error)
	// event reads one event of a stream. It returns over if no further event is expected.
	event(src []byte) (updates []*agent.Update, over bool, err error)
	// end is called if the stream ends without a final event.
	end() ([]*agent.Update, error)
}

// Respond answers the messages. Errors are *content.BadError (nothing was sent, or the answer
// can't be read), *StatusError, ErrCut, or errors of the context and the connection.
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

// Stream does the same as Respond in pieces.
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

// pump yields the updates of the events until the answer is over or its reader stops. The
// events may have at most room bytes together.
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

// post sends a request. The body is written here and sent unchanged. The SDK handles keys,
// addresses and retries.
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
