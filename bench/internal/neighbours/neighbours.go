package neighbours

import (
	"bytes"
	"context"
	"encoding/json"
	"errors"
	"fmt"
	"io"
	"net/http"
	"slices"
	"strings"
	"sync"
	"time"
)

// Config is one measurement.
type Config struct {
	Bin   string // the assent binary
	Noise Noise
	For   time.Duration // how long the noise lasts; a minute at most
}

// Longest limits the noise of one measurement.
const Longest = time.Minute

// Result holds the measurements of the quiet tenant.
type Result struct {
	Before, During Times           // of decide, every 50 ms
	SignIns        []time.Duration // each without the time to type a password
	Answers        []time.Duration // a page, and the vote on it, without the time that a form is not armed
	Failures       []string        // of the quiet tenant's exchanges
	Faults         []string        // that the server logged
	Memory         int64           // the most that the server had at a time, in bytes
	Posts          int64           // codes that the provider was asked to exchange
	Noise          map[string]int  // what became of the noise
}

// Times are durations in order.
type Times []time.Duration

// At returns the time within which a fraction of all durations is.
func (t Times) At(fraction float64) time.Duration {
	if len(t) == 0 {
		return 0
	}
	return t[min(len(t)-1, int(fraction*float64(len(t))))]
}

const (
	every  = 50 * time.Millisecond // a decision of the quiet tenant is asked for
	typing = 3 * time.Second       // for a password
)

// Run measures once.
func Run(ctx context.Context, cfg Config) (*Result, error) {
	w, err := start(ctx, cfg.Bin)
	if err != nil {
		return nil, err
	}
	defer w.close()
	m := &measurement{world: w, client: newClient(), out: &Result{}}
	if err := m.prepare(ctx); err != nil {
		return nil, err
	}
	calm, cancel := context.WithTimeout(ctx, 3*time.Second)
	m.out.Before = m.decisions(calm)
	cancel()
	err = m.under(ctx, cfg)
	return m.out, err
}

// measurement is the state of one measurement.
type measurement struct {
	*world
	client          *http.Client
	loud, still     string // tokens
	session, target string // of the noisy tenant: a session, and the request that all polls wait for
	mu              sync.Mutex
	out             *Result
}

// prepare creates tokens, and a call whose page is expensive to display.
func (m *measurement) prepare(ctx context.Context) (err error) {
	if m.loud, err = m.token(ctx, noisy, "loud", "decide,request,read"); err != nil {
		return err
	}
	if m.still, err = m.token(ctx, quiet, "still", "decide,request"); err != nil {
		return err
	}
	if m.session, err = m.signIn(ctx, m.client, noisy, 0); err != nil {
		return err
	}
	m.target, err = m.open(ctx, m.loud, `{"amount":1,"text":"`+strings.Repeat("а ", 300_000)+`"}`)
	return err
}

// post makes one API request.
func (m *measurement) post(
	ctx context.Context,
	token, path string,
	body []byte,
) (status int, text []byte, err error) {
	req, err := http.NewRequestWithContext(ctx, "POST", m.base+path, bytes.NewReader(body))
	if err != nil {
		return 0, nil, err
	}
	req.Header.Set("Authorization", "Bearer "+token)
	req.Header.Set("Content-Type", "application/json")
	resp, err := m.client.Do(req)
	if err != nil {
		return 0, nil, err
	}
	defer resp.Body.Close()
	text, err = io.ReadAll(resp.Body)
	return resp.StatusCode, text, err
}

// open asks people about a trade, and returns the request's id.
func (m *measurement) open(ctx context.Context, token, args string) (string, error) {
	status, text, err := m.post(
		ctx,
		token,
		"/v1/agents/desk/requests",
		[]byte(`{"call":`+string(call("trade", args))+`}`),
	)
	if err != nil {
		return "", err
	}
	var opened struct{ Request struct{ ID string } }
	if err := json.Unmarshal(text, &opened); err != nil || opened.Request.ID == "" {
		return "", fmt.Errorf("open a request: status %d: %.300s", status, text)
	}
	return opened.Request.ID, nil
}

// decisions requests decisions at a fixed rate until the context ends.
func (m *measurement) decisions(ctx context.Context) Times {
	body := call("quote", `{"symbol":"ACME","amount":5}`)
	pace := time.NewTicker(every)
	defer pace.Stop()
	var out Times
	for ctx.Err() == nil {
		began := time.Now()
		status, text, err := m.post(context.WithoutCancel(ctx), m.still, "/v1/agents/desk/decide", body)
		out = append(out, time.Since(began))
		if err != nil || status != http.StatusOK || !strings.Contains(string(text), `"outcome":"allow"`) {
			m.failed(fmt.Errorf("decide: status %d: %.200s: %w", status, text, errors.Join(err, errAnswer)))
		}
		select {
		case <-pace.C:
		case <-ctx.Done():
		}
	}

	slices.Sort(out)
	return out
}

var errAnswer = errors.New("not the answer that was expected")

func (m *measurement) failed(err error) {
	m.mu.Lock()
	defer m.mu.Unlock()
	m.out.Failures = append(m.out.Failures, err.Error())
}

// under measures while the other tenant makes its noise.
func (m *measurement) under(ctx context.Context, cfg Config) error {
	ctx, cancel := context.WithTimeout(ctx, min(cfg.For, Longest))
	defer cancel()
	var all sync.WaitGroup
	var failed error
	all.Go(func() {
		order := order{
			Base:    m.base,
			Token:   m.loud,
			Session: m.session,
			Request: m.target,
			Noise:   cfg.Noise.bounded(),
			For:     min(cfg.For, Longest),
		}
		m.out.Noise, failed = order.send(ctx)
	})
	all.Go(func() { m.out.During = m.decisions(ctx) })
	all.Go(func() { m.people(ctx) })
	all.Wait()
	m.out.Posts, m.out.Faults = m.idp.posts.Load(), m.faults()
	var err error
	m.out.Memory, err = m.memory()
	return errors.Join(failed, err)
}

// people sign in, look and answer, one after the other.
func (m *measurement) people(ctx context.Context) {
	for i := 0; ctx.Err() == nil; i++ {
		if err := m.person(context.WithoutCancel(ctx), i); err != nil {
			m.failed(err)
		}
	}
}

func (m *measurement) person(ctx context.Context, i int) error {
	id, err := m.open(ctx, m.still, fmt.Sprintf(`{"amount":%d}`, i))
	if err != nil {
		return err
	}
	began := time.Now()
	session, err := m.signIn(ctx, m.client, quiet, typing)
	if err != nil {
		return fmt.Errorf("sign in: %w", err)
	}
	signed := time.Now()
	if err := m.approve(ctx, m.client, session, id); err != nil {
		return fmt.Errorf("answer: %w", err)
	}
	m.mu.Lock()
	defer m.mu.Unlock()
	m.out.SignIns = append(m.out.SignIns, signed.Sub(began)-typing)
	m.out.Answers = append(m.out.Answers, time.Since(signed)-armed)
	return nil
}
