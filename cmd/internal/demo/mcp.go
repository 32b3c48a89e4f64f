package demo

import (
	"bufio"
	"cmp"
	"context"
	"encoding/json"
	"errors"
	"fmt"
	"io"
	"net"
	"net/http"
	"os"
	"path/filepath"
	"regexp"
	"strings"

	"github.com/assent-dev/assent/cmd/internal/config"
	"github.com/assent-dev/assent/cmd/internal/term"
	"github.com/assent-dev/assent/mcp/server"
	"github.com/assent-dev/assent/mcp/wire"
	"github.com/assent-dev/assent/server/openapi"
)

// shelf is an MCP server with one tool, which writes files into a
// directory.
type shelf struct{ dir string }

const shelfTools = `{"tools":[{"name":"write_file","description":"Writes a file.","inputSchema":{"type":"object",` +
	`"properties":{"path":{"type":"string"},"text":{"type":"string"}},"required":["path","text"]}}]}`

// Describe implements [server.Handler].
func (shelf) Describe(context.Context, string) server.Description {
	tools := json.RawMessage(`{"tools":{}}`)
	return server.Description{Capabilities: tools, ModernCapabilities: tools}
}

// Notified implements [server.Handler].
func (shelf) Notified(context.Context, *server.Request) {}

// Listen implements [server.Handler]. Nothing here changes.
func (shelf) Listen(context.Context, *server.Request, server.Topics, server.Tell) (server.Topics, *wire.Error) {
	return server.Topics{}, nil
}

// Handle implements [server.Handler].
func (s shelf) Handle(_ context.Context, r *server.Request, _ *server.Exchange) (json.RawMessage, *wire.Error) {
	switch r.Method {
	case "tools/list":
		return json.RawMessage(shelfTools), nil
	case wire.MethodCall:
		return s.write(r)
	}

	return nil, wire.Fail(wire.CodeMethodNotFound, "this server has tools only")
}

func (s shelf) write(r *server.Request) (json.RawMessage, *wire.Error) {
	c, bad := wire.ReadCall(r.Params)
	if bad != nil {
		return nil, bad
	}
	said := s.put(c.Arguments)
	text, err := said.Append(nil, r.Modern)
	if err != nil {
		return nil, wire.Fail(wire.CodeInternal, "the result can't be written")
	}
	return text, nil
}

// put executes a call and returns its result.
func (s shelf) put(arguments []byte) wire.Said {
	var args struct{ Path, Text string }
	err := json.Unmarshal(arguments, &args)
	if err == nil {
		err = s.file(args.Path, args.Text)
	}
	if err != nil {
		return wire.Said{Text: err.Error(), IsError: true}
	}
	return wire.Said{Text: "wrote " + args.Path}
}

// file writes a file in the directory, and never outside of it.
func (s shelf) file(path, text string) error {
	root, err := os.OpenRoot(s.dir)
	if err != nil {
		return err
	}
	defer root.Close()
	return root.WriteFile(path, []byte(text), 0o600)
}

// serve serves by HTTP until stop is called.
func (s shelf) serve() (address string, stop func() error, err error) {
	at, err := net.Listen("tcp", "127.0.0.1:0")
	if err != nil {
		return "", nil, err
	}
	endpoint := server.New(server.Config{Handler: s}).HTTP(server.HTTPConfig{Authenticate: anybody})
	answers := &http.Server{Handler: endpoint}
	go func() { _ = answers.Serve(at) }() // ends with stop
	return "http://" + at.Addr().String(), answers.Close, nil
}

// anybody accepts every client that can reach the loopback address.
func anybody(*http.Request) (string, *server.Refusal) { return "gateway", nil }

// demoGateway is the template of the gateway's file: the service's address, the rules, and the
// server's address.
const demoGateway = `agent: desk.agf.yaml
%s
server: %s
server_token_file: runtime.token
callers: {name: desk, hold: 500ms}
upstream: {alias: files, url: "%s", networks: [127.0.0.0/8]}
`

// gateway runs an MCP gateway for a shelf, and returns a client of it. They end with ctx. stop
// waits for that.
func (a demo) gateway(
	ctx context.Context, dir, api, runtime, decisions string,
) (c *mcpClient, stop func() error, err error) {
	address, closeShelf, err := shelf{dir: dir}.serve()
	if err != nil {
		return nil, nil, err
	}
	cfg, err := a.gatewayFile(dir, api, runtime, decisions, address)
	if err != nil {
		return nil, nil, errors.Join(err, closeShelf())
	}
	c = a.connect(ctx, cfg)
	stop = func() error { return errors.Join(c.in.Close(), <-c.ended, closeShelf()) }
	if _, err := c.ask("initialize", demoHello); err != nil {
		return nil, nil, errors.Join(err, stop())
	}
	return c, stop, nil
}

// connect runs a gateway and returns a client of it.
func (a demo) connect(ctx context.Context, cfg config.MCP) *mcpClient {
	theirs, in := io.Pipe()
	out, ours := io.Pipe()
	c := &mcpClient{in: in, out: bufio.NewScanner(out), ended: make(chan error, 1)}
	go func() {
		err := a.Backend.MCP(ctx, cfg, term.Streams{In: theirs, Out: ours, Err: io.Discard})
		_ = ours.CloseWithError(cmp.Or(err, io.EOF)) // what the client reads next
		c.ended <- err
	}()
	return c
}

// gatewayFile writes the gateway's file, and reads it like any other.
func (a demo) gatewayFile(dir, api, runtime, decisions, address string) (cfg config.MCP, err error) {
	decides := "policies: ."
	if decisions != "" {
		decides = fmt.Sprintf("decisions: %q", decisions)
	}
	file := filepath.Join(dir, "mcp.yaml")
	text := fmt.Sprintf(demoGateway, decides, api, address)
	err = os.WriteFile(filepath.Join(dir, "runtime.token"), []byte(runtime), 0o600)
	if err == nil {
		err = os.WriteFile(file, []byte(text), 0o600)
	}
	if err != nil {
		return cfg, err
	}
	return a.MCP(config.MCPFlags{File: file})
}

// mcpClient is a client of the gateway, like that of an agent.
type mcpClient struct {
	in    io.WriteCloser
	out   *bufio.Scanner
	ended chan error // how the gateway ended
	last  int        // id of a request
}

const demoHello = `{"protocolVersion":"2025-11-25","capabilities":{},"clientInfo":{"name":"demo","version":"1"}}`

// mcpAnswer is an answer of the gateway.
type mcpAnswer struct {
	ID     int
	Error  *struct{ Message string }
	Result struct{ Content []struct{ Text string } }
}

// text returns the text that an agent reads in the answer.
func (a *mcpAnswer) text() (text string, err error) {
	if a.Error != nil {
		return "", errors.New(a.Error.Message)
	}
	for _, c := range a.Result.Content {
		text += c.Text
	}
	return text, nil
}

// ask sends a request, and returns the text of its result.
func (c *mcpClient) ask(method, params string) (string, error) {
	c.last++
	_, err := fmt.Fprintf(
		c.in,
		`{"jsonrpc":"2.0","id":%d,"method":%q,"params":%s}`+"\n",
		c.last,
		method,
		params,
	)
	var answer mcpAnswer
	for err == nil && answer.ID != c.last {
		err = c.read(&answer)
	}
	if err != nil {
		return "", err
	}
	return answer.text()
}

// read reads the next message.
func (c *mcpClient) read(answer *mcpAnswer) error {
	if !c.out.Scan() {
		return fmt.Errorf("the MCP gateway ended: %w", cmp.Or(c.out.Err(), io.EOF))
	}
	return json.Unmarshal(c.out.Bytes(), answer)
}

// The call that the agent makes of its MCP server.
const (
	demoTool = "files/write_file"
	demoCall = `{"path":"report.txt","text":"bought 20000 of ACME"}`
)

// mcpStep calls a tool of an MCP server as an agent does: it makes the call, reads that it must
// wait, and makes the same call again.
func (d *demoDesk) mcpStep(ctx context.Context) error {
	d.Printf("%s\n", term.Bold.Of("It writes a file, with a tool of an MCP server behind the gateway."))
	d.Printf("agent   calls %s of an MCP server, %s\n", demoTool, demoCall)
	params := `{"name":"write_file","arguments":` + demoCall + `}`
	for asked := ""; ; {
		told, err := d.mcp.ask("tools/call", params)
		if err != nil {
			return err
		}
		id := regexp.MustCompile(`apr_[0-9a-z]+`).FindString(told)
		switch {
		case !strings.HasPrefix(told, "Not run yet.") || id == "":
			d.Printf("        the same call again: %s\n\n", term.Bold.Of(term.Ready(told)))
			return d.Done()
		case id == asked:
			continue // the gateway doesn't know yet how people decided
		}

		asked = id
		if err := d.untilDecided(ctx, id, told); err != nil {
			return err
		}
	}
}

// untilDecided prints what the agent reads, and waits for people.
func (d *demoDesk) untilDecided(ctx context.Context, id, told string) error {
	first, _, _ := strings.Cut(told, ", until") // and what to do: to make the same call again
	d.Printf("        %s: %s).\n", term.Yellow.Of("told"), term.Ready(first))
	if err := d.Done(); err != nil {
		return err
	}
	if d.auto {
		if err := d.approveIt(ctx, id, openapi.GrantOffer{}); err != nil {
			return err
		}
	}
	decided, err := d.runtime.WaitDecided(ctx, id)
	if err == nil {
		d.Printf("        %s by %s\n", term.Green.Of(string(decided.State)), decided.By)
	}

	return err
}
