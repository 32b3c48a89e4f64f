// Package anthropic is an agent.ChatClient for the Messages API of
// Anthropic, over the official SDK.
//
// System messages and instructions go to the system prompt; everything
// else becomes turns of user and assistant that follow one another
// strictly. Each call of a function has exactly one result at the start
// of the next user turn, or the request is refused here (ErrHistory)
// before it is sent. What only the loop needs never reaches a model:
// inert calls without results, approvals of function calls, usage.
//
// What the model thought (content.Reasoning) goes back unchanged and in
// place; without the provider's seal it is left out, since the API
// takes no other. Blocks that this package does not know, such as those
// of tools that the service runs, are *content.Unknown and go back byte
// for byte.
//
// # Environment
//
// Unless WithoutEnvironment is given, the SDK reads ANTHROPIC_BASE_URL,
// and takes its credential from the first of: ANTHROPIC_API_KEY;
// ANTHROPIC_AUTH_TOKEN; the profile named by ANTHROPIC_PROFILE;
// ANTHROPIC_FEDERATION_RULE_ID with ANTHROPIC_ORGANIZATION_ID,
// ANTHROPIC_IDENTITY_TOKEN(_FILE), ANTHROPIC_SERVICE_ACCOUNT_ID and
// ANTHROPIC_WORKSPACE_ID; the active profile in the directory that
// ANTHROPIC_CONFIG_DIR, XDG_CONFIG_HOME, APPDATA or the home directory
// leads to. WithAPIKey does not undo these: an ANTHROPIC_AUTH_TOKEN is
// sent beside the key. Where it finds no credential it reads
// ANTHROPIC_CUSTOM_HEADERS and ANTHROPIC_WEBHOOK_SIGNING_KEY. Its
// tracing looks at variables that begin with ANTHROPIC_OPEN_TELEMETRY.
// Proxy variables are read by net/http, always, unless WithSDK brings
// an HTTP client with a transport without them.
package anthropic

import (
	"cmp"
	"context"
	"iter"
	"maps"
	"net/http"

	sdk "github.com/anthropics/anthropic-sdk-go"
	"github.com/anthropics/anthropic-sdk-go/option"
	"github.com/anthropics/anthropic-sdk-go/packages/ssestream"

	"github.com/assent-dev/assent/agent"
	"github.com/assent-dev/assent/agent/content"
)

// DefaultMaxTokens bounds an answer when neither the options of a request nor
// WithMaxTokens do; the API wants a bound.
const DefaultMaxTokens = 4096

// Parameters is the key in agent.Options.Extra of further parameters of
// one request (a map[string]any), such as "thinking" or "tool_choice".
// They go beside those of WithParameters and win over them. A parameter
// that this package writes itself is refused.
const Parameters = "anthropic"

// The version of the MCP connector that is spoken.
const mcpBeta = "mcp-client-2025-11-20"

// Option is a choice for New.
type Option func(*client)

// WithAPIKey sets the key of the account.
func WithAPIKey(key string) Option { return WithSDK(option.WithAPIKey(key)) }

// WithBaseURL sets where the API is.
func WithBaseURL(url string) Option { return WithSDK(option.WithBaseURL(url)) }

// WithoutEnvironment ignores every environment variable and every
// profile that the SDK would read, and turns its tracing off; a later
// WithSDK can turn it on again.
func WithoutEnvironment() Option {
	return WithSDK(option.WithoutEnvironmentDefaults(), option.WithoutOpenTelemetry())
}

// WithSDK passes options to the SDK as they are, such as the HTTP
// client and how often a request that failed in passing is repeated (2
// times by default; a stream that has begun never is).
func WithSDK(options ...option.RequestOption) Option {
	return func(c *client) { c.options = append(c.options, options...) }
}

// WithModel sets the model for requests that name none.
func WithModel(model string) Option { return func(c *client) { c.model = model } }

// WithMaxTokens bounds the answers to requests that have no bound of
// their own.
func WithMaxTokens(n int) Option { return func(c *client) { c.maxTokens = n } }

// WithParameters sets further parameters of every request; see Parameters.
func WithParameters(p map[string]any) Option {
	return func(c *client) { c.parameters = maps.Clone(p) }
}

// New returns a client of the Messages API. Its errors are
// *RequestError for what can't be sent, *StatusError for what the
// service refused, also in the middle of a stream, and errors that wrap
// ErrBadResponse or ErrCut for what came back.
func New(options ...Option) agent.ChatClient {
	c := &client{maxTokens: DefaultMaxTokens}
	for _, o := range options {
		o(c)
	}
	c.sdk = sdk.NewClient(c.options...)
	return c
}

type client struct {
	sdk        sdk.Client
	options    []option.RequestOption
	model      string
	maxTokens  int
	parameters map[string]any
}

// Respond asks for a whole message. When the answer may take longer than the
// service keeps a silent connection, it is streamed.
func (c *client) Respond(
	ctx context.Context, messages []*content.Message, opt *agent.Options,
) (*agent.Response, error) {
	q, err := c.request(messages, opt)
	if err != nil {
		return nil, err
	}
	timeout, err := sdk.CalculateNonStreamingTimeout(q.maxTokens, q.model, c.sdk.Options)
	if err != nil {
		return collect(c.stream(ctx, q))
	}
	var raw []byte
	options := append(q.options(), option.WithRequestTimeout(timeout))
	if err := c.sdk.Post(ctx, q.path(), q.body(false), &raw, options...); err != nil {
		return nil, callError(err)
	}
	return parseResponse(raw)
}

// collect is agent.Collect without half a response.
func collect(stream iter.Seq2[*agent.Update, error]) (*agent.Response, error) {
	r, err := agent.Collect(stream)
	if err != nil {
		return nil, err
	}
	return r, nil
}

// Stream asks for a message piece by piece. Calls come whole. Only the
// last update has a FinishReason, and only when the service said that
// the message is complete.
func (c *client) Stream(
	ctx context.Context, messages []*content.Message, opt *agent.Options,
) iter.Seq2[*agent.Update, error] {
	return func(yield func(*agent.Update, error) bool) {
		q, err := c.request(messages, opt)
		if err != nil {
			yield(nil, err)
			return
		}
		c.stream(ctx, q)(yield)
	}
}

func (c *client) stream(ctx context.Context, q *request) iter.Seq2[*agent.Update, error] {
	return func(yield func(*agent.Update, error) bool) {
		var raw *http.Response
		options := append(q.options(), option.WithHeader("Accept", "text/event-stream"))
		if err := c.sdk.Post(ctx, q.path(), q.body(true), &raw, options...); err != nil {
			yield(nil, callError(err))
			return
		}
		events := ssestream.NewDecoder(raw)
		defer func() { _ = events.Close() }()
		readStream(raw.StatusCode, events, yield)
	}
}

// request builds everything that depends on messages and options.
func (c *client) request(messages []*content.Message, opt *agent.Options) (*request, error) {
	opt = opt.Clone()
	q := &request{model: cmp.Or(opt.Model, c.model), maxTokens: cmp.Or(opt.MaxTokens, c.maxTokens)}
	if err := q.check(opt); err != nil {
		return nil, err
	}
	if err := q.addMessages(opt.Instructions, messages); err != nil {
		return nil, err
	}
	if err := q.addTools(opt.Tools); err != nil {
		return nil, err
	}
	return q, q.addParameters(c.parameters, opt)
}

// options are those of the SDK for this request.
func (q *request) options() []option.RequestOption {
	if !q.mcp {
		return nil
	}
	return []option.RequestOption{option.WithHeaderAdd("anthropic-beta", mcpBeta)}
}

func (q *request) path() string {
	if q.mcp {
		return "v1/messages?beta=true"
	}
	return "v1/messages"
}
