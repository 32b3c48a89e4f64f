//go:build bars

package rap

import (
	"bytes"
	"context"
	"encoding/json"
	"errors"
	"fmt"
	"io"
	"net/http"
	"net/http/httptest"
	"os"
	"path/filepath"
	"runtime/debug"
	"slices"
	"strings"
	"sync"
	"sync/atomic"
	"testing"
	"time"

	"github.com/assent-dev/assent/rap"
	"github.com/assent-dev/assent/rap/gateway"
	"github.com/assent-dev/assent/rap/peer"
	"github.com/assent-dev/assent/rap/wire"
	"github.com/assent-dev/assent/resolve"
	"github.com/assent-dev/assent/schema"
	"github.com/assent-dev/assent/store"
	"github.com/assent-dev/assent/store/sqlite"
)

func TestMain(m *testing.M) {
	debug.SetGCPercent(400) // as in assent rap gateway
	os.Exit(m.Run())
}

const agentFile = `
schema_version: "1.0.0"
metadata: {id: clerk, name: Clerk, version: "1.0.0", description: Moves money.}
interface: {input: {type: object}, output: {type: object}}
execution_policy: {id: agf.react, config: {instructions: Be careful., model: any}}
action_space:
  local_tools:
    - alias: transfer
      approval:
        message_template: "Transfer {{tool_args.amount}} to {{tool_args.iban}}?"
        condition: {args_match: {amount: {gt: 10}}}
`

const transferSchema = `{"type":"object","properties":{"amount":{"type":"number"},"iban":{"type":"string"},` +
	`"reason":{"type":"string"}},"required":["amount","iban"]}`

func records(t *testing.T) store.Records {
	s, err := sqlite.Open(t.Context(), filepath.Join(t.TempDir(), "assent.db"), sqlite.Options{})
	if err != nil {
		t.Fatal(err)
	}
	t.Cleanup(func() { s.Close() })
	return s
}

// world has a gateway on SQLite and the runtime that calls it. The runtime stores the URLs for
// answers.
type world struct {
	t       *testing.T
	url     string // of the gateway
	own     *httptest.Server
	client  *http.Client
	mu      sync.Mutex
	answers map[string]string // URLs by id
	asked   atomic.Int64
	ended   atomic.Int64
	ran     atomic.Int64
}

func newWorld(t *testing.T) *world {
	w := &world{t: t, client: client(t), answers: map[string]string{}}
	w.own = httptest.NewServer(w)
	t.Cleanup(w.own.Close)
	agent, findings := schema.Parse("clerk.agf.yaml", []byte(agentFile))
	if agent == nil {
		t.Fatal(findings)
	}
	plan, err := resolve.Compile(agent, nil, resolve.Options{})
	if err != nil {
		t.Fatal(err)
	}
	front := httptest.NewUnstartedServer(nil)
	w.url = "http://" + front.Listener.Addr().String()
	g, err := gateway.New(gateway.Config{
		Common: rap.Common{
			Records:   records(t),
			Namespace: "bench",
			Key:       bytes.Repeat([]byte{7}, 32),
			Plan:      func(context.Context) (*resolve.Plan, error) { return plan, nil },
		},
		Name:      "Bank",
		PublicURL: w.url,
		Within:    time.Hour,
		Rate:      1 << 20,
		Operations: []rap.Operation{{
			Name:        "transfer",
			Description: "Moves money.",
			InputSchema: json.RawMessage(transferSchema),
			Run: func(context.Context, rap.Job) (rap.Outcome, error) {
				w.ran.Add(1)
				return rap.Outcome{Text: "moved"}, nil
			},
		}},
		Callers: []gateway.Caller{{Name: "bench", Callbacks: peer.Config{Allow: []string{w.own.URL}}}},
	})
	if err != nil {
		t.Fatal(err)
	}
	front.Config.Handler = g
	front.Start()
	ctx, stop := context.WithCancel(context.Background())
	ended := make(chan struct{})
	go func() {
		defer close(ended)
		if err := g.Run(ctx); err != nil && !errors.Is(err, context.Canceled) {
			t.Error(err)
		}
	}()
	t.Cleanup(func() {
		stop()
		<-ended
		front.Close()
	})
	return w
}

func client(t *testing.T) *http.Client {
	transport := &http.Transport{MaxIdleConnsPerHost: 256}
	t.Cleanup(transport.CloseIdleConnections)
	return &http.Client{Transport: transport, Timeout: 30 * time.Second}
}

// ServeHTTP receives callbacks.
func (w *world) ServeHTTP(_ http.ResponseWriter, req *http.Request) {
	body, err := io.ReadAll(req.Body)
	if err != nil {
		return
	}
	cb, err := wire.ParseCallback(body)
	switch cb := cb.(type) {
	case *wire.Choice:
		w.mu.Lock()
		w.answers[cb.ID] = strings.Clone(cb.ResponseURL)
		w.mu.Unlock()
		w.asked.Add(1)
	case *wire.Result:
		w.ended.Add(1)
	default:
		w.t.Errorf("%s: %v", body, err)
	}
}

func (w *world) invocation(id string) []byte {
	return (&wire.Invocation{
		Operation:   "transfer",
		ID:          id,
		GroupID:     "thread " + id[len(id)-2:],
		UserID:      "ann",
		CallbackURL: w.own.URL + "/callbacks/" + id,
		Arguments: json.RawMessage(`{"amount":100,"iban":"DE02120300000000202051","reason":"invoice 4711 of the ` +
			`second quarter"}`),
	}).Append(nil)
}

func post(t *testing.T, c *http.Client, url string, body []byte) {
	res, err := c.Post(url, "application/json", bytes.NewReader(body))
	if err != nil {
		t.Error(err)
		return
	}
	defer res.Body.Close()
	_, _ = io.Copy(io.Discard, res.Body)
	if res.StatusCode != http.StatusOK {
		t.Errorf("answered with %d", res.StatusCode)
	}
}

// fill makes calls that wait for people, and returns their ids.
func (w *world) fill(name string, n int) []string {
	ids := make([]string, n)
	for i := range ids {
		ids[i] = fmt.Sprintf("%s_%05d", name, i)
	}
	before := w.asked.Load()
	each(ids, func(id string) { post(w.t, w.client, w.url+"/invoke", w.invocation(id)) })
	w.until("asked", &w.asked, before+int64(n))
	return ids
}

func (w *world) answer(ids []string) {
	before := w.ended.Load()
	each(ids, func(id string) {
		w.mu.Lock()
		url := w.answers[id]
		w.mu.Unlock()
		post(w.t, w.client, url, wire.Answer{ID: id}.Append(nil))
	})
	w.until("ended", &w.ended, before+int64(len(ids)))
}

func (w *world) until(what string, count *atomic.Int64, n int64) {
	w.t.Helper()
	tick := time.NewTicker(time.Millisecond)
	defer tick.Stop()
	for end := time.Now().Add(2 * time.Minute); count.Load() < n; <-tick.C {
		if time.Now().After(end) {
			w.t.Fatalf("%s: %d of %d", what, count.Load(), n)
		}
	}
}

func each(ids []string, do func(id string)) {
	var all sync.WaitGroup
	var next atomic.Int64
	for range 64 {
		all.Go(func() {
			for at := next.Add(1) - 1; at < int64(len(ids)); at = next.Add(1) - 1 {
				do(ids[at])
			}
		})
	}

	all.Wait()
}

// floor starts a handler that only writes the body of each request as one record in one commit.
func floor(t *testing.T) (url string) {
	s := records(t)
	var n atomic.Int64
	front := httptest.NewServer(http.HandlerFunc(func(w http.ResponseWriter, req *http.Request) {
		body, err := io.ReadAll(req.Body)
		if err == nil {
			_, err = s.PutRecord(req.Context(), store.Record{
				Namespace: "floor",
				Key:       fmt.Sprint(n.Add(1)),
				Value:     body,
			})
		}

		if err != nil {
			http.Error(w, err.Error(), http.StatusInternalServerError)
		}
	}))
	t.Cleanup(front.Close)
	return front.URL
}

// times contains the durations of an action, one for each scheduled start.
type times []time.Duration

func (ts times) at(q float64) time.Duration { return ts[int(q*float64(len(ts)-1))] }

// paced runs do at a fixed rate, independently of its duration, and measures from the scheduled
// start.
func paced(rate int, long time.Duration, do func(n int)) times {
	out := make(times, int(long.Seconds()*float64(rate)))
	start, every := time.Now(), time.Second/time.Duration(rate)
	var all sync.WaitGroup
	for n := range out {
		due := start.Add(time.Duration(n) * every)
		<-time.After(time.Until(due))
		all.Go(func() {
			do(n)
			out[n] = time.Since(due)
		})
	}

	all.Wait()
	slices.Sort(out)
	return out
}

// loadAverage returns the load of the machine, if the system reports it.
func loadAverage() string {
	text, err := os.ReadFile("/proc/loadavg")
	if err != nil {
		return "unknown"
	}
	return strings.Join(strings.Fields(string(text))[:1], "")
}
