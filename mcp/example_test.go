package mcp_test

import (
	"context"
	"crypto/rand"
	"encoding/json"
	"fmt"
	"log"
	"net/http"
	"net/http/httptest"
	"os"
	"path/filepath"

	"github.com/assent-dev/assent/approval/hold"
	"github.com/assent-dev/assent/mcp"
	"github.com/assent-dev/assent/mcp/catalog"
	"github.com/assent-dev/assent/mcp/mcptest/gosdk"
	"github.com/assent-dev/assent/mcp/server"
	"github.com/assent-dev/assent/mcp/upstream"
	"github.com/assent-dev/assent/resolve"
	"github.com/assent-dev/assent/schema"
	"github.com/assent-dev/assent/store/sqlite"
)

const exampleAgent = `schema_version: "1.0.0"
metadata: {id: clerk, name: Clerk, version: "1.0.0", description: Repeats what it is told.}
interface: {input: {type: object}, output: {type: object}}
action_space:
  mcp_servers:
    - {alias: parrot, server_ref: parrot, description: Repeats., allowed_tools: [text, {name: echo, approval: true}]}
execution_policy: {id: agf.react, config: {instructions: Repeat., model: any}}
`

// A program puts an MCP server behind approvals: the agent's file decides each call, a function
// asks the user of the program, and a file stores the waiting calls. The server and the client are
// those of the official Go SDK.
func ExampleGateway() {
	dir, err := os.MkdirTemp("", "gateway")
	if err != nil {
		log.Fatal(err)
	}
	defer os.RemoveAll(dir)
	tools := httptest.NewServer(gosdk.Streamable(false)) // the server of somebody
	defer tools.Close()
	ctx, stop := context.WithCancel(context.Background())
	defer stop()

	gateway, parrot, err := newExample(ctx, dir, tools.URL)
	if err != nil {
		log.Fatal(err)
	}
	go parrot.Run(ctx)
	go gateway.Run(ctx)
	clients := server.New(server.Config{Handler: gateway})
	// A program that is started by its client calls clients.Pipe instead.
	front := httptest.NewServer(clients.HTTP(server.HTTPConfig{
		Authenticate: func(*http.Request) (string, *server.Refusal) { return "desk", nil }, // look at a token here
	}))
	defer front.Close()

	client, err := gosdk.Connect(ctx, front.URL, front.Client())
	if err != nil {
		log.Fatal(err)
	}
	defer client.Close()
	for _, text := range []string{"hello", "wipe the disk"} {
		result, err := client.Call(ctx, "echo", map[string]any{"text": text})
		if err != nil {
			log.Fatal(err)
		}
		fmt.Println(textOf(result))
	}
	// Output:
	// May it run? echo {"text":"hello"}
	// {"text":"hello"}
	// May it run? echo {"text":"wipe the disk"}
	// Not run. Somebody denied this call: no wiping here. Do not try it again.
}

// textOf returns the text that a model reads in a result.
func textOf(result string) string {
	var r struct{ Content []struct{ Text string } }
	if err := json.Unmarshal([]byte(result), &r); err != nil || len(r.Content) == 0 {
		return result
	}
	return r.Content[0].Text
}

// newExample returns a gateway before one server, and the connection to it.
func newExample(ctx context.Context, dir, url string) (*mcp.Gateway, *upstream.Server, error) {
	agent, findings := schema.Parse("clerk.agf.yaml", []byte(exampleAgent))
	if agent == nil {
		return nil, nil, fmt.Errorf("the agent: %v", findings)
	}
	plan, err := resolve.Compile(agent, nil, resolve.Options{})
	if err != nil {
		return nil, nil, err
	}
	records, err := sqlite.Open(ctx, filepath.Join(dir, "gateway.db"), sqlite.Options{})
	if err != nil {
		return nil, nil, err
	}
	parrot, err := upstream.New(upstream.Config{Alias: "parrot", URL: url}) // or Command
	if err != nil {
		return nil, nil, err
	}
	identity, err := catalog.AtURL(url)
	if err != nil {
		return nil, nil, err
	}
	key := make([]byte, 32) // keep it as secret and as long as the store
	rand.Read(key)

	gateway, err := mcp.New(mcp.Config{
		Records:   records,
		Namespace: "example",
		Key:       key,
		Plan:      func(context.Context) (*resolve.Plan, error) { return plan, nil },
		People:    hold.NewLocal(nil, answer), // or those of a service: hold.Service, client.People
		Pins:      &mcp.FilePins{File: filepath.Join(dir, "mcp.pins.json")},
		Servers:   []mcp.Server{{Alias: "parrot", Upstream: parrot, Identity: identity}},
		Callers:   []mcp.Caller{{Name: "desk"}},
	})
	return gateway, parrot, err
}

// answer simulates a dialog.
func answer(_ context.Context, v hold.Verdict) hold.Held {
	fmt.Printf("May it run? %s %s\n", v.Call.Tool, v.Call.Args)
	if string(v.Call.Args) == `{"text":"hello"}` {
		return hold.Held{State: hold.Approved}
	}
	return hold.Held{State: hold.Denied, Reason: "no wiping here"}
}
