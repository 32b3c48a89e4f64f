// Package anthropic is an agent.ChatClient for Anthropic's Messages API, based on the official
// SDK.
//
// System messages and instructions become the system prompt. All other messages become
// alternating turns of user and assistant. Each function call must have exactly one result at
// the start of the next user turn. Otherwise the request fails (ErrHistory) before it is sent.
// Contents that only the loop needs are not sent: marked calls without results, approvals of
// function calls, and usage.
//
// Reasoning (content.Reasoning) is sent back unchanged and in place. Without the provider's
// signature it is left out, because the API rejects it. Blocks that this package doesn't know,
// such as those of tools that the service runs, are *content.Unknown and are sent back byte for
// byte.
//
// # Environment
//
// Unless WithoutEnvironment is given, the SDK reads ANTHROPIC_BASE_URL, and takes its
// credential from the first of: ANTHROPIC_API_KEY; ANTHROPIC_AUTH_TOKEN; the profile named by
// ANTHROPIC_PROFILE; ANTHROPIC_FEDERATION_RULE_ID with ANTHROPIC_ORGANIZATION_ID,
// ANTHROPIC_IDENTITY_TOKEN(_FILE), ANTHROPIC_SERVICE_ACCOUNT_ID and ANTHROPIC_WORKSPACE_ID; the
// active profile in the directory given by ANTHROPIC_CONFIG_DIR, XDG_CONFIG_HOME, APPDATA or
// the home directory. WithAPIKey does not disable these: an ANTHROPIC_AUTH_TOKEN is sent in
// addition to the key. If the SDK finds no credential, it reads ANTHROPIC_CUSTOM_HEADERS and
// ANTHROPIC_WEBHOOK_SIGNING_KEY. Its tracing reads variables that begin with
// ANTHROPIC_OPEN_TELEMETRY. net/http always reads proxy variables, unless WithSDK sets an HTTP
// client with a transport that doesn't.
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

// DefaultMaxTokens limits an answer if neither the options of a request nor WithMaxTokens do.
// The API requires a limit.
const DefaultMaxTokens = 4096

// Parameters is the key in agent.Options.Extra for additional parameters of one request, such
// as "thinking" or "tool_choice". The value is a map[string]any. These parameters are merged
// with those of WithParameters and override them. A parameter that this package writes itself
// is an error.
const Parameters = "anthropic"

// The supported version of the MCP connector.
const mcpBeta = "mcp-client-2025-11-20"

// Option configures a client.
type Option func(*client)

// WithAPIKey sets the API key.
func WithAPIKey(key string) Option { return WithSDK(option.WithAPIKey(key)) }

// WithBaseURL sets the base URL of the API.
func WithBaseURL(url string) Option { return WithSDK(option.WithBaseURL(url)) }

// WithoutEnvironment ignores all environment variables and profiles that the SDK would read,
// and disables its tracing. A later WithSDK can enable tracing again.
func WithoutEnvironment() Option {
	return WithSDK(option.WithoutEnvironmentDefaults(), option.WithoutOpenTelemetry())
}

// WithSDK passes options to the SDK unchanged, such as the HTTP client and the number of
// retries after temporary failures (2 by default; a stream that has begun is never retried).
func WithSDK(options ...option.RequestOption) Option {
	return func(c *client) { c.options = append(c.options, options...) }
}

// WithModel sets the model for requests that name none.
func WithModel(model string) Option { return func(c *client) { c.model = model } }

// WithMaxTokens limits the answers to requests without their own limit.
func WithMaxTokens(n int) Option { return func(c *client) { c.maxTokens = n } }

// WithParameters sets additional parameters for every request. See Parameters.
func WithParameters(p map[string]any) Option {
	return func(c *client) { c.parameters = maps.Clone(p) }
}

// New returns a client for the Messages API. Its errors are *RequestError for requests that
// can't be sent, *StatusError for errors of the service, including those in the middle of a
// stream, and errors that wrap ErrBadResponse or ErrCut for invalid responses.
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

// Respond requests a whole message. If the answer may take longer than the service keeps an
// idle connection open, it is streamed.
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

// collect does the same as agent.Collect, but returns no partial response.
func collect(stream iter.Seq2[*agent.Update, error]) (*agent.Response, error) {
	r, err := agent.Collect(stream)
	if err != nil {
		return nil, err
	}
	return r, nil
}

// Stream requests a message in pieces. Calls are yielded only when they are complete. Only the
// last update has a FinishReason, and only if the service reported that the message is
// complete.
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

// request builds the parts of the request that depend on messages and options.
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

// options returns the SDK options for this request.
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
