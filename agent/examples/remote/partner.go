package main

import (
	"context"
	_ "embed"
	"encoding/json"
	"errors"
	"fmt"
	"iter"
	"net"
	"net/http"
	"os"
	"path/filepath"

	"github.com/assent-dev/assent/agent"
	"github.com/assent-dev/assent/agent/content"
	"github.com/assent-dev/assent/agent/examples/internal/stage"
	"github.com/assent-dev/assent/agent/filestore"
	"github.com/assent-dev/assent/agent/serve"
	"github.com/assent-dev/assent/client"
	"github.com/assent-dev/assent/resolve"
	"github.com/assent-dev/assent/schema"
)

//go:embed rental.agf.yaml
var rentalFile []byte

// partner is the remote agent. It rents vans. Each van needs an approval by the caller, or by
// people at the desk.
type partner struct {
	dir   string          // of its threads and of its list of rented vans
	token string          // of its only caller
	desk  string          // URL of an assent server, or ""
	key   string          // token for that server
	owner resolve.Options // the owner's choices, with a desk
}

// serve serves the agent on a listener: over A2A at / and over AG-UI at /agui.
func (p partner) serve(at net.Listener) error {
	cfg, err := p.config()
	if err != nil {
		return err
	}
	tasks, err := serve.NewA2A(cfg, serve.Card{
		URL:         "http://" + at.Addr().String() + "/",
		Description: "Rents vans.",
	})
	if err != nil {
		return err
	}
	defer tasks.Close()
	runs, err := serve.NewAGUI(cfg)
	if err != nil {
		return err
	}
	defer runs.Close()
	mux := http.NewServeMux()
	mux.Handle("/", tasks)
	mux.Handle("/agui", runs)
	return http.Serve(at, mux)
}

func (p partner) config() (serve.Config, error) {
	store, err := filestore.New(filepath.Join(p.dir, "tasks"))
	if err != nil {
		return serve.Config{}, err
	}
	loop := agent.LoopConfig{}
	var tool agent.Tool = agent.RequireApproval(p.rentVan())
	cfg := serve.Config{
		Store:   store,
		Callers: serve.Tokens(map[string]string{serve.Hash(p.token): "planner"}),
	}
	if p.desk != "" {
		desk, err := client.New(p.desk, p.key, client.Options{})
		if err != nil {
			return cfg, err
		}
		plan, err := rentalPlan(p.owner)
		if err != nil {
			return cfg, err
		}
		holder := client.Holder(desk, "rental")
		loop.Decider = agent.ByPlan(plan, agent.PlanOptions{Principal: "planner", Session: "remote"})
		loop.Holder, cfg.Withdraw = holder, holder.Cancel
		tool = p.rentVan()
	}

	cfg.Agent = agent.NewChatAgent(
		agent.NewFunctionInvoking(rental{}, loop),
		agent.ChatAgentConfig{Name: "rental", Tools: []agent.Tool{tool}},
	)
	return cfg, nil
}

// rentVan rents a van and writes it into a file.
func (p partner) rentVan() agent.Function {
	return agent.NewFunction("rent_van", "Rents a van.", nil, func(_ context.Context, args json.RawMessage) (
		any, error,
	) {
		f, err := os.OpenFile(filepath.Join(p.dir, "rented.jsonl"), os.O_APPEND|os.O_CREATE|os.O_WRONLY, 0o600)
		if err != nil {
			return nil, err
		}
		_, err = fmt.Fprintf(f, "%s\n", args)
		if closed := f.Close(); err == nil {
			err = closed
		}
		return "rented", err
	})
}

// rental plays a model that rents a van for every caller, and then reports the result.
type rental struct{}

// Respond returns the next message.
func (rental) Respond(
	_ context.Context, messages []*content.Message, _ *agent.Options,
) (*agent.Response, error) {
	for _, result := range stage.ResultsIn(messages) {
		return stage.Says(&content.Text{Text: "rent_van gave " + string(result)}), nil
	}
	return stage.Says(&content.FunctionCall{
		CallID:    "call_1",
		Name:      "rent_van",
		Arguments: json.RawMessage(`{"day":"Friday","price":120}`),
	}), nil
}

// Stream returns the response as one update.
func (r rental) Stream(
	ctx context.Context, messages []*content.Message, opt *agent.Options,
) iter.Seq2[*agent.Update, error] {
	return agent.StreamOf(r.Respond(ctx, messages, opt))
}

func rentalPlan(owner resolve.Options) (*resolve.Plan, error) {
	rental, findings := schema.Parse("rental.agf.yaml", rentalFile)
	if rental == nil {
		return nil, errors.New(findings[0].Message)
	}
	return resolve.Compile(rental, nil, owner)
}
