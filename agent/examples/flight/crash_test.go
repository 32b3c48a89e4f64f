package main

import (
	"bufio"
	"context"
	"encoding/json"
	"errors"
	"fmt"
	"io"
	"io/fs"
	"os"
	"os/exec"
	"path/filepath"
	"strconv"
	"strings"
	"sync"
	"testing"
	"testing/fstest"
	"time"

	"github.com/assent-dev/assent/agent"
	"github.com/assent-dev/assent/approval"
	"github.com/assent-dev/assent/internal/assenttest"
	"github.com/assent-dev/assent/internal/must"
	"github.com/assent-dev/assent/internal/testwait"
	"github.com/assent-dev/assent/store"
)

// With this variable in its environment, the test binary runs as the example. It stops before
// and after each save of its thread.
const childLife = "FLIGHT_TEST_CHILD"

func TestMain(m *testing.M) {
	if os.Getenv(childLife) == "" {
		os.Exit(m.Run())
	}
	c, err := open(os.Args[1:], os.Stdout, os.Getenv)
	if err == nil {
		c.store = &gated{c.store, bufio.NewReader(os.Stdin)}
		err = c.serve(context.Background())
	}
	if err != nil {
		fmt.Fprintln(os.Stderr, err)
		os.Exit(1)
	}
}

// gated is a store that stops before and after each save.
type gated struct {
	agent.ThreadStore
	in *bufio.Reader
}

func (g *gated) Load(ctx context.Context, id string) (*agent.Thread, error) {
	t, err := g.ThreadStore.Load(ctx, id)
	if err == nil {
		t.Keep(g)
	}
	return t, err
}

func (g *gated) Save(ctx context.Context, t *agent.Thread) error {
	g.gate("save")
	if err := g.ThreadStore.Save(ctx, t); err != nil {
		return err
	}
	g.gate("saved")
	return nil
}

// gate reports the position of the process to its parent. Then it waits until the parent lets
// it continue or kills it.
func (g *gated) gate(point string) {
	fmt.Println("at " + point)
	if _, err := g.in.ReadString('\n'); err != nil {
		os.Exit(3) // the parent is gone
	}
}

// files returns the files of the service.
func files(t *testing.T) fs.FS {
	return fstest.MapFS{
		"agents/flight.agf.yaml": {Data: must.Get(os.ReadFile("flight.agf.yaml"))(t)},
		"people.yaml":            {Data: must.Get(os.ReadFile("people.yaml"))(t)},
		"policies/none.policy.yaml": {Data: []byte(`schema_version: "1.0.0"
policy_ref: flight.none
description: Meets nothing here, since the agent has no tools.
applies: implicit
rules:
  - id: none
    match: {targets: [none]}
    deny: "There is none."
`)},
	}
}

// trip is one booking, in as many processes as it needs.
type trip struct {
	t     *testing.T
	h     *assenttest.Assent
	token string
	dir   string
	to    string
	mu    sync.Mutex
	heard bool // the agent has the seat
}

// TestKilledAtEachSave kills the program with SIGKILL before and after each save of its thread,
// over HTTP. Each question is asked once, and each answer arrives.
func TestKilledAtEachSave(t *testing.T) {
	h := assenttest.New(t, assenttest.Config{Files: files(t), Runs: true})
	token := h.Token(store.Token{Name: agentID, Scopes: []string{"request", "read"}})
	trips := 0
	for at := 1; ; at++ {
		s := &trip{
			t:     t,
			h:     h,
			token: token,
			dir:   t.TempDir(),
			to:    "Lisbon-" + strconv.Itoa(at),
		}
		stop := s.answers()
		killed := s.live(at)
		if killed {
			s.live(0)
		}
		stop()
		trips++
		s.check(trips)
		if !killed {
			break
		}
	}

	if trips < 12 {
		t.Errorf("the thread was saved %d times only", trips/2)
	}
}

// live runs the program to its end, or until it is killed at a gate.
func (s *trip) live(at int) (killed bool) {
	s.t.Helper()
	ctx, stop := context.WithTimeout(s.t.Context(), time.Minute)
	defer stop()
	child := exec.CommandContext(ctx, must.Get(os.Executable())(s.t), "-dir", s.dir, s.to)
	child.Env = append(os.Environ(), childLife+"=1", "ASSENT_SERVER="+s.h.URL, "ASSENT_TOKEN="+s.token)
	var problems strings.Builder
	child.Stderr = &problems
	in, out := must.Get(child.StdinPipe())(s.t), must.Get(child.StdoutPipe())(s.t)
	must.Do(s.t, child.Start())
	gates := 0
	for lines := bufio.NewScanner(out); lines.Scan(); {
		switch line := lines.Text(); {
		case strings.HasPrefix(line, "at "):
			if gates++; gates == at {
				must.Do(s.t, child.Process.Kill())
			}
			_, _ = io.WriteString(in, "on\n") // a killed process doesn't read it
		case strings.Contains(line, `"seat":"3A"`):
			s.mu.Lock()
			s.heard = true
			s.mu.Unlock()
		}
	}

	err := child.Wait()
	var exit *exec.ExitError
	if ctx.Err() != nil {
		s.t.Fatal("the program does not come to an end")
	}
	if errors.As(err, &exit) && !exit.Exited() {
		return true
	}
	if err != nil {
		s.t.Fatalf("%v: %s", err, problems.String())
	}
	return false
}

// answers plays ann, who answers the open questions. She answers the price only when the agent
// has the seat. The returned function stops her.
func (s *trip) answers() (stop func()) {
	ctx, cancel := context.WithCancel(s.t.Context())
	var all sync.WaitGroup
	seen := map[string]bool{}
	all.Go(func() {
		for ctx.Err() == nil {
			changed := s.h.Store.Changed(assenttest.Tenant)
			open, err := s.h.Store.Requests(ctx, assenttest.Tenant, approval.Filter{Limit: 500})
			if err != nil && ctx.Err() == nil {
				s.t.Error(err)
				return
			}
			for i := range open.Requests {
				if id := open.Requests[i].ID; open.Requests[i].State == approval.Pending && !seen[id] {
					seen[id] = true
					all.Go(func() { s.answer(ctx, id) }) // one answer may have to wait for the effect of another
				}
			}

			select {
			case <-changed:
			case <-ctx.Done():
			}
		}
	})

	return func() {
		cancel()
		all.Wait()
	}
}

func (s *trip) answer(ctx context.Context, id string) {
	r, err := s.h.Service.Request(ctx, assenttest.Tenant, id)
	if err != nil {
		s.t.Error(err)
		return
	}
	verdict, data := approval.Submit, ""
	switch {
	case strings.HasPrefix(r.Question.Prompt, "Which seat"):
		data = `{"seat":"3A","bags":2}`
	case strings.HasPrefix(r.Question.Prompt, "Anything"):
		data = `"vegetarian"`
	default:
		verdict = approval.Choose
		testwait.Until(s.t, "the seat's answer to arrive", func() bool {
			s.mu.Lock()
			defer s.mu.Unlock()
			return s.heard || ctx.Err() != nil
		})
	}

	if outcome, err := s.h.Vote(id, "ann", verdict, func(in *approval.VoteInput) {
		if in.Data = []byte(data); data == "" {
			in.Data, in.Choice = nil, new(int)
		}
	}); err != nil || outcome != approval.VoteAnswered {
		s.t.Errorf("ann's answer to %q: %s, %v", r.Question.Prompt, outcome, err)
	}
}

// check expects three questions for each trip so far, an answer to each of them, and the ticket
// with these answers.
func (s *trip) check(trips int) {
	s.t.Helper()
	all := must.Get(s.h.Store.Requests(s.t.Context(), assenttest.Tenant, approval.Filter{Limit: 500}))(s.t).Requests
	asked := map[string]int{}
	for i := range all {
		r := must.Get(s.h.Service.Request(s.t.Context(), assenttest.Tenant, all[i].ID))(s.t)
		asked[r.Question.Prompt]++
		if r.State != approval.Answered {
			s.t.Errorf("%q is %s", r.Question.Prompt, r.State)
		}
	}

	for _, prompt := range []string{
		"Which seat do you want?",
		"Anything that the airline should know?",
	} {
		if asked[prompt] != trips {
			s.t.Errorf("%q was asked %d times for %d trips", prompt, asked[prompt], trips)
		}
	}

	if n := asked["Book TP 531 to "+s.to+" for 249 EUR?"]; n != 1 {
		s.t.Errorf("the price was asked %d times", n)
	}
	var got ticket
	must.Do(s.t, json.Unmarshal(must.Get(os.ReadFile(filepath.Join(s.dir, "ticket-"+s.to+".json")))(s.t), &got))
	want := ticket{
		Flight: "TP 531",
		To:     s.to,
		Seat:   "3A",
		Bags:   2,
		Price:  249,
		Note:   "vegetarian",
	}
	if got != want {
		s.t.Errorf("the ticket is %+v, want %+v", got, want)
	}
}
