package main

import (
	"context"
	"encoding/json"
	"fmt"
	"io"
	"iter"
	"net"
	"net/http"
	"os"
	"strings"

	"github.com/assent-dev/assent/agent"
	"github.com/assent-dev/assent/agent/content"
	"github.com/assent-dev/assent/agent/filestore"
	"github.com/assent-dev/assent/agent/serve"
)

// bank is a model that makes the same three calls whenever a user writes, and then reports their
// results.
type bank struct{}

// Respond answers the messages.
func (bank) Respond(_ context.Context, messages []*content.Message, _ *agent.Options) (*agent.Response, error) {
	last := messages[len(messages)-1]
	if last.Role == content.User {
		call := func(id, name, args string) content.Content {
			return &content.FunctionCall{
				CallID:    id,
				Name:      name,
				Arguments: json.RawMessage(args),
			}
		}
		return said(
			&content.Text{Text: "One moment."},
			call("call_1", "balance", `{}`),
			call("call_2", "transfer", `{"to":"bob","amount":5,"reason":"rent"}`),
			call("call_3", "close_account", `{"id":"9007199254740993"}`),
		), nil
	}

	var told []string
	for _, m := range messages {
		for _, c := range m.Contents {
			if r, ok := c.(*content.FunctionResult); ok {
				told = append(told, r.CallID+": "+string(r.Result))
			}
		}
	}

	return said(&content.Text{Text: strings.Join(told, "; ")}), nil
}

func said(contents ...content.Content) *agent.Response {
	return &agent.Response{Messages: []*content.Message{content.NewMessage(content.Assistant, contents...)}}
}

// Stream is Respond in one piece.
func (b bank) Stream(
	ctx context.Context, messages []*content.Message, opt *agent.Options,
) iter.Seq2[*agent.Update, error] {
	return func(yield func(*agent.Update, error) bool) {
		resp, err := b.Respond(ctx, messages, opt)
		if err != nil {
			yield(nil, err)
			return
		}
		m := resp.Messages[0]
		yield(&agent.Update{Role: m.Role, Contents: m.Contents}, nil)
	}
}

// bankAgent returns an agent of that model, two of whose tools need
// approval.
func bankAgent() agent.Agent {
	echo := func(name string) agent.Function {
		return agent.NewFunction(name, "", nil, func(_ context.Context, args json.RawMessage) (any, error) {
			return "ran " + name + " " + string(args), nil
		})
	}
	return agent.NewChatAgent(agent.NewFunctionInvoking(bank{}, agent.LoopConfig{}), agent.ChatAgentConfig{
		Name: "bank",
		Tools: []agent.Tool{
			echo("balance"),
			agent.RequireApproval(echo("transfer")),
			agent.RequireApproval(echo("close_account")),
		},
	})
}

// callerToken is the token of the one caller of what is served here.
const callerToken = "token-of-the-peer"

// serveAgent serves the bank on a free port of this machine, whose
// address is the first line of the output.
func serveAgent(protocol string, out io.Writer) error {
	dir, err := os.MkdirTemp("", "assent-probe")
	if err != nil {
		return err
	}
	defer os.RemoveAll(dir)
	threads, err := filestore.New(dir)
	if err != nil {
		return err
	}
	listener, err := net.Listen("tcp", "127.0.0.1:0")
	if err != nil {
		return err
	}
	url := "http://" + listener.Addr().String() + "/"
	cfg := serve.Config{
		Agent:   bankAgent(),
		Store:   threads,
		Callers: serve.Tokens(map[string]string{serve.Hash(callerToken): "peer"}),
	}
	var handler http.Handler
	if protocol == "agui" {
		handler, err = serve.NewAGUI(cfg)
	} else {
		handler, err = serve.NewA2A(cfg, serve.Card{URL: url, Description: "A bank."})
	}
	if err != nil {
		return err
	}
	if _, err := fmt.Fprintln(out, url); err != nil {
		return err
	}
	return http.Serve(listener, handler)
}
