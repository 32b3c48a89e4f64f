// Package gosdk has a server and a client of the official Go SDK of MCP for tests, so that their
// messages are independent of our own code.
package gosdk

import (
	"context"
	"encoding/json"
	"fmt"
	"net/http"
	"os"

	"github.com/modelcontextprotocol/go-sdk/jsonrpc"
	sdk "github.com/modelcontextprotocol/go-sdk/mcp"
)

// Variable makes a test binary that calls Main a server on its standard
// streams.
const Variable = "ASSENT_TEST_MCP_GO_SDK"

// Main serves on standard input and output if Variable is set, and reports whether it was.
func Main() bool {
	if os.Getenv(Variable) == "" {
		return false
	}
	if err := newServer().Run(context.Background(), &sdk.StdioTransport{}); err != nil {
		fmt.Fprintln(os.Stderr, err)
		os.Exit(1)
	}
	return true
}

// Streamable serves at one address, without sessions as in 2026-07-28,
// or with them.
func Streamable(sessions bool) http.Handler {
	s := newServer()
	return sdk.NewStreamableHTTPHandler(
		func(*http.Request) *sdk.Server { return s },
		&sdk.StreamableHTTPOptions{Stateless: !sessions},
	)
}

// Old serves by HTTP+SSE, the transport of 2024-11-05.
func Old() http.Handler {
	s := newServer()
	return sdk.NewSSEHandler(func(*http.Request) *sdk.Server { return s }, nil)
}

// newServer returns a server that has a tool for each kind of content, and
// resources, prompts and completions.
func newServer() *sdk.Server {
	s := sdk.NewServer(&sdk.Implementation{Name: "everything", Version: "1"}, &sdk.ServerOptions{
		CompletionHandler: complete,
	})
	for name, content := range contents() {
		result := &sdk.CallToolResult{Content: content}
		s.AddTool(tool(name), func(context.Context, *sdk.CallToolRequest) (*sdk.CallToolResult, error) {
			return result, nil
		})
	}

	s.AddTool(tool("echo"), echo)
	s.AddTool(tool("reports"), reports)
	s.AddTool(tool("fails"), fails)
	s.AddTool(tool("breaks"), breaks)
	addResources(s)
	addPrompts(s)
	return s
}

// schema contains keywords that schema readers tend to lose.
const schema = `{"$schema":"https://json-schema.org/draft/2020-12/schema","type":"object",` +
	`"properties":{"a":{"$ref":"#/$defs/a"},"n":{"type":"integer","maximum":9007199254740993}},` +
	`"$defs":{"a":{"$anchor":"a","type":["string","null"]}},"if":{"required":["a"]},"then":{"required":["n"]},"x-own":[1.0]}`

func tool(name string) *sdk.Tool {
	no := false
	return &sdk.Tool{
		Name:        name,
		Title:       "The tool " + name,
		Description: "Does " + name + ".",
		InputSchema: json.RawMessage(schema),
		Annotations: &sdk.ToolAnnotations{ReadOnlyHint: true, OpenWorldHint: &no},
	}
}

// contents returns the kinds of content that a result can have, by the name of a tool.
func contents() map[string][]sdk.Content {
	text := &sdk.TextContent{Text: "größe <&>\u2028 \x01", Annotations: &sdk.Annotations{Priority: 0.5}}
	image := &sdk.ImageContent{Data: []byte{0, 1, 255}, MIMEType: "image/png"}
	resource := &sdk.EmbeddedResource{Resource: &sdk.ResourceContents{
		URI:      "test://inside",
		MIMEType: "text/plain",
		Text:     "inside",
	}}
	return map[string][]sdk.Content{
		"text":     {text},
		"image":    {image},
		"audio":    {&sdk.AudioContent{Data: []byte{1, 2, 3}, MIMEType: "audio/wav"}},
		"resource": {resource},
		"link":     {&sdk.ResourceLink{URI: "test://text", Name: "text", Description: "A text."}},
		"mixed":    {text, image, resource, text},
		"nothing":  {},
	}
}

// echo returns its arguments as content, structure and _meta.
func echo(_ context.Context, r *sdk.CallToolRequest) (*sdk.CallToolResult, error) {
	return &sdk.CallToolResult{
		Meta:              sdk.Meta{"example.com/got": r.Params.Meta["example.com/sent"]},
		Content:           []sdk.Content{&sdk.TextContent{Text: string(r.Params.Arguments)}},
		StructuredContent: r.Params.Arguments,
	}, nil
}

// reports sends three progress reports.
func reports(ctx context.Context, r *sdk.CallToolRequest) (*sdk.CallToolResult, error) {
	for i := range 3 {
		err := r.Session.NotifyProgress(ctx, &sdk.ProgressNotificationParams{
			ProgressToken: r.Params.GetProgressToken(),
			Progress:      float64(i) + 0.5,
			Total:         3,
			Message:       fmt.Sprint("step ", i),
		})
		if err != nil {
			return nil, err
		}
	}

	return &sdk.CallToolResult{}, nil
}

func fails(context.Context, *sdk.CallToolRequest) (*sdk.CallToolResult, error) {
	return &sdk.CallToolResult{IsError: true, Content: []sdk.Content{&sdk.TextContent{Text: "it failed"}}}, nil
}

func breaks(context.Context, *sdk.CallToolRequest) (*sdk.CallToolResult, error) {
	return nil, &jsonrpc.Error{Code: 17, Message: "it broke", Data: json.RawMessage(`{"at":[1,2]}`)}
}

func addResources(s *sdk.Server) {
	s.AddResource(&sdk.Resource{
		URI:      "test://text",
		Name:     "text",
		MIMEType: "text/plain",
		Size:     4,
	}, read(&sdk.ResourceContents{MIMEType: "text/plain", Text: "text"}))
	s.AddResource(
		&sdk.Resource{URI: "test://bytes", Name: "bytes"},
		read(&sdk.ResourceContents{Blob: []byte{0, 255}}),
	)
	s.AddResourceTemplate(
		&sdk.ResourceTemplate{URITemplate: "test://of/{id}", Name: "template"},
		read(&sdk.ResourceContents{Text: "of"}),
	)
}

func read(c *sdk.ResourceContents) sdk.ResourceHandler {
	return func(_ context.Context, r *sdk.ReadResourceRequest) (*sdk.ReadResourceResult, error) {
		found := *c
		found.URI = r.Params.URI
		return &sdk.ReadResourceResult{Contents: []*sdk.ResourceContents{&found}}, nil
	}
}

func addPrompts(s *sdk.Server) {
	s.AddPrompt(&sdk.Prompt{
		Name:        "greet",
		Description: "Greets.",
		Arguments:   []*sdk.PromptArgument{{Name: "whom", Required: true}},
	}, func(_ context.Context, r *sdk.GetPromptRequest) (*sdk.GetPromptResult, error) {
		return &sdk.GetPromptResult{Messages: []*sdk.PromptMessage{{
			Role:    "user",
			Content: &sdk.TextContent{Text: "Greet " + r.Params.Arguments["whom"]},
		}}}, nil
	})
}

func complete(_ context.Context, r *sdk.CompleteRequest) (*sdk.CompleteResult, error) {
	return &sdk.CompleteResult{Completion: sdk.CompletionResultDetails{
		Values: []string{r.Params.Argument.Value + "ra"},
		Total:  1,
	}}, nil
}
