package gosdk

import (
	"context"
	"encoding/json"
	"net/http"

	sdk "github.com/modelcontextprotocol/go-sdk/mcp"
)

// Client is a client of the SDK, connected to a server by HTTP.
type Client struct{ session *sdk.ClientSession }

// Connect connects a client. It speaks the newest version that the
// server has.
func Connect(ctx context.Context, url string, by *http.Client) (*Client, error) {
	c := sdk.NewClient(&sdk.Implementation{Name: "go-sdk", Version: "1"}, nil)
	session, err := c.Connect(ctx, &sdk.StreamableClientTransport{Endpoint: url, HTTPClient: by}, nil)
	if err != nil {
		return nil, err
	}
	return &Client{session}, nil
}

// Close ends the conversation.
func (c *Client) Close() error { return c.session.Close() }

// Version returns the version of the protocol that both speak.
func (c *Client) Version() string { return c.session.InitializeResult().ProtocolVersion }

// Tools returns the input schemas of all tools by name.
func (c *Client) Tools(ctx context.Context) (map[string]string, error) {
	out := map[string]string{}
	for t, err := range c.session.Tools(ctx, nil) {
		if err != nil {
			return nil, err
		}
		text, err := json.Marshal(t.InputSchema)
		if err != nil {
			return nil, err
		}
		out[t.Name] = string(text)
	}

	return out, nil
}

// Call calls a tool, and returns the result as JSON.
func (c *Client) Call(ctx context.Context, name string, args map[string]any) (string, error) {
	return written(c.session.CallTool(ctx, &sdk.CallToolParams{Name: name, Arguments: args}))
}

// Read reads a resource, and returns the result as JSON.
func (c *Client) Read(ctx context.Context, uri string) (string, error) {
	return written(c.session.ReadResource(ctx, &sdk.ReadResourceParams{URI: uri}))
}

// Prompt gets a prompt, and returns the result as JSON.
func (c *Client) Prompt(ctx context.Context, name string) (string, error) {
	return written(c.session.GetPrompt(ctx, &sdk.GetPromptParams{Name: name}))
}

func written[T any](result T, err error) (string, error) {
	if err != nil {
		return "", err
	}
	text, err := json.Marshal(result)
	return string(text), err
}
