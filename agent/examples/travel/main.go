// Command travel plans a trip, asks, and continues with the answer in another process. Nothing
// runs between two commands.
//
//	go run ./examples/travel plan "a trip to Lisbon"   # ends with a request
//	go run ./examples/travel pending                   # lists open requests
//	go run ./examples/travel answer ID yes             # goes on
//	go run ./examples/travel answer ID no "too early"
//	go run ./examples/travel answer ID edit '{"flight":"LH 1166","price":189}'
//	go run ./examples/travel answer ID data '{"name":"Ann Lee"}'
//
// Flags go before the command: -dir for the folder of the trips, -model openai:NAME or
// anthropic:NAME for a real model, -decisions for the owner's choices
// (docs/contracts/decisions.md).
package main

import (
	"context"
	"errors"
	"flag"
	"fmt"
	"io"
	"os"
	"path/filepath"

	"github.com/assent-dev/assent/agent"
	"github.com/assent-dev/assent/agent/content"
	"github.com/assent-dev/assent/agent/examples/internal/model"
	"github.com/assent-dev/assent/agent/examples/internal/stage"
	"github.com/assent-dev/assent/agent/filestore"
	"github.com/assent-dev/assent/resolve"
)

func main() {
	err := run(context.Background(), os.Args[1:], os.Stdout, os.Getenv)
	if err != nil && !errors.Is(err, flag.ErrHelp) {
		stage.NewPage(os.Stderr, "", "").Line("travel", err.Error())
		os.Exit(1)
	}
}

func run(ctx context.Context, args []string, out io.Writer, env func(string) string) error {
	flags := flag.NewFlagSet("travel", flag.ContinueOnError)
	dir := flags.String("dir", "", "where trips and bookings are kept (default: a folder in the user's cache)")
	name := flags.String("model", "", "openai:NAME or anthropic:NAME; left out, a script plays the model")
	decisions := stage.Decisions(flags)
	if err := flags.Parse(args); err != nil {
		return err
	}
	owner, err := stage.Owner(*decisions)
	if err != nil {
		return err
	}
	chosen, err := model.New(*name, env, script{})
	if err != nil {
		return err
	}
	o, err := newOffice(*dir, chosen, owner, page{stage.NewPage(out, "traveller", "agent")})
	if err != nil {
		return err
	}
	return errors.Join(o.do(ctx, flags.Args()), o.page.Err)
}

// office has the travel agent and its threads.
type office struct {
	agent agent.Agent
	store *filestore.Store
	page  page
}

func newOffice(dir string, client agent.ChatClient, owner resolve.Options, p page) (*office, error) {
	if dir == "" {
		cache, err := os.UserCacheDir()
		if err != nil {
			return nil, fmt.Errorf("name a folder with -dir: %w", err)
		}
		dir = filepath.Join(cache, "assent-travel")
	}

	store, err := filestore.New(filepath.Join(dir, "threads"))
	if err != nil {
		return nil, err
	}
	rules, err := decider(owner)
	if err != nil {
		return nil, err
	}
	loop := agent.NewFunctionInvoking(client, agent.LoopConfig{Decider: rules})
	return &office{
		store: store,
		page:  p,
		agent: agent.NewChatAgent(loop, agent.ChatAgentConfig{
			Name:         "travel",
			Instructions: instructions,
			Store:        store,
			Tools: []agent.Tool{
				searchFlights(),
				&bookFlight{ledger: filepath.Join(dir, "bookings.jsonl")},
			},
		}),
	}, nil
}

const instructions = "You book trips. Look for flights first, then book one: prefer a direct one. Say in a sentence " +
	"what you did."

var errUsage = errors.New(`expected plan TEXT, pending, or answer ID and one of yes, no, edit JSON, data JSON`)

func (o *office) do(ctx context.Context, args []string) error {
	switch {
	case len(args) == 2 && args[0] == "plan":
		return o.plan(ctx, args[1])
	case len(args) == 1 && args[0] == "pending":
		return o.pending(ctx)
	case len(args) >= 3 && args[0] == "answer":
		return o.answer(ctx, args[1], args[2], args[3:])
	}

	return errUsage
}

// plan begins a trip in a new thread.
func (o *office) plan(ctx context.Context, wish string) error {
	thread, err := o.newThread(ctx)
	if err != nil {
		return err
	}
	return o.goOn(ctx, thread, content.UserText(wish))
}

// newThread takes the next free name. Only one process can save a thread under that name.
func (o *office) newThread(ctx context.Context) (*agent.Thread, error) {
	ids, err := o.store.List(ctx)
	if err != nil {
		return nil, err
	}
	for n := len(ids) + 1; ; n++ {
		thread := agent.NewThread(fmt.Sprintf("trip-%d", n))
		if err := o.store.Save(ctx, thread); !errors.Is(err, agent.ErrConflict) {
			return thread, err
		}
	}
}

// pending lists the open requests of all trips.
func (o *office) pending(ctx context.Context) error {
	open := 0
	err := o.each(ctx, func(t *agent.Thread, p agent.Pending) bool {
		o.page.Title("%s since %s", t.ID, p.Since.Format("2006-01-02 15:04 MST"))
		o.page.request(p.Request)
		open++
		return true
	})
	if err != nil {
		return err
	}
	o.page.Title("%d open", open)
	return nil
}

// each calls a function with every open request until the function returns false.
func (o *office) each(ctx context.Context, see func(*agent.Thread, agent.Pending) bool) error {
	ids, err := o.store.List(ctx)
	if err != nil {
		return err
	}
	for _, id := range ids {
		thread, err := o.store.Load(ctx, id)
		if err != nil {
			return err
		}
		for _, p := range thread.Pending() {
			if !see(thread, p) {
				return nil
			}
		}
	}

	return nil
}

// answer answers a request and continues the trip.
func (o *office) answer(ctx context.Context, id, word string, more []string) error {
	var of *agent.Thread
	var request content.InputRequest
	err := o.each(ctx, func(t *agent.Thread, p agent.Pending) bool {
		if p.Request.InputRequestID() == id {
			of, request = t, p.Request
		}
		return request == nil
	})
	if err != nil {
		return err
	}
	if request == nil {
		return fmt.Errorf("nothing is asked under %s, or not any more", id)
	}
	response, err := answerTo(request, word, more)
	if err != nil {
		return err
	}
	return o.goOn(ctx, of, content.NewMessage(content.User, response))
}

// goOn runs the agent on a thread until it needs its user or is done. The agent saves the
// thread.
func (o *office) goOn(ctx context.Context, t *agent.Thread, message *content.Message) error {
	o.page.Title("%s", t.ID)
	o.page.message(message)
	resp, err := o.agent.Run(ctx, t, message)
	if err != nil {
		return err
	}
	for _, m := range resp.Messages {
		o.page.message(m)
	}
	for _, r := range resp.Refused {
		o.page.Line("refused", string(r.Reason)+": "+r.Detail)
	}
	state := "is settled"
	if len(t.Pending()) > 0 {
		state = "waits; this process ends"
	}
	o.page.Title("%s %s", t.ID, state)
	return nil
}
