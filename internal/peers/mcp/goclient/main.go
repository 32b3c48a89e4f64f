// Command goclient drives the official Go client against a gateway and
// prints what it saw as JSON.
package main

import (
	"context"
	"encoding/json"
	"fmt"
	"net/http"
	"net/url"
	"os"
	"os/exec"
	"time"

	"github.com/modelcontextprotocol/go-sdk/mcp"
)

// driver drives one client over one transport.
type driver struct {
	transport, short, long, control, name string
	messages                              []string
}

func main() {
	out, err := drive(context.Background(), os.Args)
	if err == nil {
		err = json.NewEncoder(os.Stdout).Encode(out)
	}
	if err != nil {
		fmt.Fprintln(os.Stderr, err)
		os.Exit(1)
	}
}

func drive(ctx context.Context, a []string) (map[string]any, error) {
	if a[1] == "oauth" {
		return authorized(ctx, a[2:])
	}
	d := &driver{
		transport: a[1],
		short:     a[2],
		long:      a[3],
		control:   a[4],
		name:      a[5],
	}
	return d.run(ctx)
}

func (d *driver) connect(ctx context.Context, to string) (*mcp.ClientSession, error) {
	c := mcp.NewClient(&mcp.Implementation{Name: d.name, Version: "1"}, &mcp.ClientOptions{
		ProgressNotificationHandler: func(_ context.Context, r *mcp.ProgressNotificationClientRequest) {
			d.messages = append(d.messages, r.Params.Message)
		},
	})
	var t mcp.Transport = &mcp.StreamableClientTransport{Endpoint: to}
	if d.transport == "stdio" {
		t = &mcp.CommandTransport{Command: exec.Command("node", "bridge.mjs", to)}
	}
	return c.Connect(ctx, t, nil)
}

func (d *driver) run(ctx context.Context) (map[string]any, error) {
	short, err := d.connect(ctx, d.short)
	if err != nil {
		return nil, err
	}
	defer short.Close()
	long, err := d.connect(ctx, d.long)
	if err != nil {
		return nil, err
	}
	defer long.Close()

	out := map[string]any{"version": short.InitializeResult().ProtocolVersion}
	tools := 0
	for _, err := range short.Tools(ctx, nil) {
		if err != nil {
			return nil, err
		}
		tools++
	}

	out["tools"] = tools
	out["allowed"] = call(ctx, short, "read_file", "/allowed", nil)
	out["denied"] = call(ctx, short, "format_disk", "/denied", nil)
	pending := "/" + d.name + "/pending"
	out["pending"] = call(ctx, short, "write_file", pending, nil)
	d.tell("approve", pending)
	out["approved"] = call(ctx, short, "write_file", pending, nil)

	slow := "/" + d.name + "/slow"
	go func() {
		time.Sleep(3 * time.Second)
		d.tell("approve", slow)
	}()
	out["progress"] = call(ctx, long, "write_file", slow, "p1")
	out["messages"] = d.messages
	late := "/" + d.name + "/late"
	soon, stop := context.WithTimeout(ctx, time.Second)
	defer stop()
	out["timeout"] = call(soon, long, "write_file", late, nil)
	d.tell("approve", late)
	out["after"] = call(ctx, long, "write_file", late, nil)
	d.leave(ctx, long, out)
	return out, nil
}

// leave gives up a call while it runs, and makes it again.
func (d *driver) leave(ctx context.Context, s *mcp.ClientSession, out map[string]any) {
	kept := "/" + d.name + "/kept"
	soon, stop := context.WithTimeout(ctx, 2*time.Second)
	defer stop()
	gone := make(chan any)
	go func() { gone <- call(soon, s, "write_file", kept, nil) }()
	d.tell("approve", kept)
	out["gone"] = <-gone
	d.tell("release", kept)
	out["kept"] = call(ctx, s, "write_file", kept, nil)
}

// tell has the test do something about a path.
func (d *driver) tell(what, path string) {
	r, err := http.Post(d.control+"/"+what+"?path="+url.QueryEscape(path), "", nil)
	if err == nil {
		r.Body.Close()
	}
}

func call(ctx context.Context, s *mcp.ClientSession, name, path string, token any) map[string]any {
	p := &mcp.CallToolParams{Name: name, Arguments: map[string]any{"path": path}}
	if token != nil {
		p.SetProgressToken(token)
	}
	r, err := s.CallTool(ctx, p)
	if err != nil {
		return map[string]any{"failed": err.Error()}
	}
	text := ""
	if len(r.Content) > 0 {
		if t, ok := r.Content[0].(*mcp.TextContent); ok {
			text = t.Text
		}
	}
	return map[string]any{
		"isError":    r.IsError,
		"text":       text,
		"structured": r.StructuredContent,
	}
}
