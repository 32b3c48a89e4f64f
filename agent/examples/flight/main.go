// Command flight books a flight and asks a person in the middle: for a seat in a form, for
// consent to the price, and for a free text. The person answers in the inbox of a running
// `assent serve`. You can end the program at any time and start it again. No question is asked
// twice, and no answer is lost.
//
//	assent serve --dev --dev-person ann --people examples/flight/people.yaml --agents examples/flight/flight.agf.yaml
//	export ASSENT_TOKEN=...   # of `assent token create --name flight --scopes request,read`
//	go run ./examples/flight Lisbon
//
// Flags go before the destination: -dir for the folder of the trips, -person for the person the
// program books for. ASSENT_SERVER is the URL of the service.
package main

import (
	"cmp"
	"context"
	"errors"
	"flag"
	"fmt"
	"io"
	"os"
	"os/signal"
	"path/filepath"
	"time"

	"github.com/assent-dev/assent/agent"
	"github.com/assent-dev/assent/agent/content"
	"github.com/assent-dev/assent/agent/examples/internal/stage"
	"github.com/assent-dev/assent/agent/filestore"
	"github.com/assent-dev/assent/approval"
	"github.com/assent-dev/assent/client"
)

func main() {
	ctx, stop := signal.NotifyContext(context.Background(), os.Interrupt)
	defer stop()
	c, err := open(os.Args[1:], os.Stdout, os.Getenv)
	if err == nil {
		err = errors.Join(c.serve(ctx), c.page.Err)
	}
	if err != nil && !errors.Is(err, flag.ErrHelp) {
		stage.NewPage(os.Stderr, "", "").Line("flight", err.Error())
		os.Exit(1)
	}
}

// open makes the counter from a command line.
func open(args []string, out io.Writer, env func(string) string) (*counter, error) {
	flags := flag.NewFlagSet("flight", flag.ContinueOnError)
	dir := flags.String("dir", "", "where trips and bookings are kept (default: a folder in the user's cache)")
	person := flags.String("person", "ann", "for whom it books, and who is asked")
	if err := flags.Parse(args); err != nil {
		return nil, err
	}
	if flags.NArg() != 1 {
		return nil, errors.New("expected the destination, such as Lisbon")
	}
	folder, err := folderOf(*dir)
	if err != nil {
		return nil, err
	}
	store, err := filestore.New(filepath.Join(folder, "threads"))
	if err != nil {
		return nil, err
	}
	asks, err := people(env, *person)
	if err != nil {
		return nil, err
	}

	return &counter{
		to:    flags.Arg(0),
		dir:   folder,
		store: store,
		asks:  asks,
		page:  stage.NewPage(out, *person, agentID),
		shown: map[string]bool{},
	}, nil
}

func folderOf(dir string) (string, error) {
	if dir != "" {
		return dir, nil
	}
	cache, err := os.UserCacheDir()
	if err != nil {
		return "", fmt.Errorf("name a folder with -dir: %w", err)
	}
	return filepath.Join(cache, "assent-flight"), nil
}

// agentID is the name of the agent in the service's files.
const agentID = "flight"

// people returns the connection to the person in the service's inbox.
func people(env func(string) string, person string) (*agent.HeldQuestions, error) {
	at := cmp.Or(env("ASSENT_SERVER"), "http://127.0.0.1:7717")
	c, err := client.New(at, env("ASSENT_TOKEN"), client.Options{})
	if err != nil {
		return nil, fmt.Errorf("set ASSENT_SERVER and ASSENT_TOKEN: %w", err)
	}
	who := approval.Asker{Token: agentID}
	desk := client.People(agentID, map[string]*client.Client{who.Token: c})
	return &agent.HeldQuestions{
		People:    desk.As(who),
		Watch:     desk.Watch,
		Asker:     agentID,
		Principal: person,
		Within:    24 * time.Hour,
	}, nil
}

// counter books a trip, in as many processes as it needs.
type counter struct {
	to    string
	dir   string
	store agent.ThreadStore
	asks  *agent.HeldQuestions
	page  *stage.Page
	shown map[string]bool // requests that this process has shown
}

// serve completes a trip. It runs the agent until it asks, and again after each answer.
func (c *counter) serve(ctx context.Context) error {
	thread, err := agent.LoadOrNew(ctx, c.store, "to-"+c.to)
	if err != nil {
		return err
	}
	next := content.UserText("A flight to " + c.to)
	switch _, going := thread.State["flow/"+agentID]; {
	case len(thread.Pending()) > 0:
		c.page.Title("%s goes on", thread.ID)
		c.show(requests(thread))
		next, err = c.answers(ctx, thread)
	case going: // the last run was interrupted
		next = nil
	case thread.Revision > 0:
		return c.settled(ctx, thread)
	default:
		c.page.Title("%s", thread.ID)
		c.page.Line("wish", next.Text())
	}

	for err == nil {
		var over bool
		if over, err = c.run(ctx, thread, next); err != nil || over {
			break
		}
		next, err = c.answers(ctx, thread)
	}

	return err
}

// run runs the agent once. It reports whether the agent has no more questions.
func (c *counter) run(ctx context.Context, thread *agent.Thread, said *content.Message) (over bool, err error) {
	var messages []*content.Message
	if said != nil {
		messages = append(messages, said)
	}
	resp, err := booking(c.to, c.dir, c.store).Run(ctx, thread, messages...)
	if err != nil {
		return false, err
	}
	for _, m := range resp.Messages {
		if text := m.Text(); text != "" {
			c.page.Line(agentID, text)
		}
	}
	asked := resp.UserInputRequests()
	c.show(asked)
	if n := len(asked); n > 0 {
		c.page.Line("waits", fmt.Sprintf("for %d of its answers", n))
		return false, nil
	}

	return true, c.settled(ctx, thread)
}

// settled withdraws questions to the person that are no longer needed.
func (c *counter) settled(ctx context.Context, thread *agent.Thread) error {
	_, err := c.asks.Answers(ctx, thread)
	c.page.Title("%s is settled", thread.ID)
	return err
}

func requests(thread *agent.Thread) []content.InputRequest {
	var out []content.InputRequest
	for _, p := range thread.Pending() {
		out = append(out, p.Request)
	}
	return out
}

func (c *counter) show(asked []content.InputRequest) {
	for _, q := range asked {
		if id := q.InputRequestID(); !c.shown[id] {
			c.shown[id] = true
			c.page.Line("asks", textOf(q))
		}
	}
}

func textOf(q content.InputRequest) string {
	switch q := q.(type) {
	case *content.TextApprovalRequest:
		return q.Text
	case *content.StructuredInputRequest:
		return q.Text
	}

	return fmt.Sprintf("a %T", q)
}

// answers waits for the next answers of the person and returns them as a message of the user.
func (c *counter) answers(ctx context.Context, thread *agent.Thread) (*content.Message, error) {
	given, err := c.asks.Wait(ctx, thread)
	if err != nil {
		return nil, err
	}
	m := content.NewMessage(content.User)
	for _, answer := range given {
		c.page.Line("answer", said(answer))
		m.Contents = append(m.Contents, answer)
	}
	return m, nil
}

// said returns an answer in words.
func said(answer content.InputResponse) string {
	switch a := answer.(type) {
	case *content.TextApprovalResponse:
		if a.Approved {
			return "yes, by " + a.By
		}
		return "no: " + a.Reason
	case *content.StructuredInputResponse:
		if a.Declined {
			return "no data: " + a.Reason
		}
		return string(a.Data) + ", by " + a.By
	}

	return fmt.Sprintf("a %T", answer)
}
