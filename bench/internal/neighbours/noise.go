package neighbours

import (
	"context"
	"encoding/base64"
	"encoding/json"
	"fmt"
	"io"
	"math/rand/v2"
	"net"
	"net/http"
	"net/url"
	"os"
	"os/exec"
	"strings"
	"sync"
	"time"

	"github.com/assent-dev/assent/internal/wait"
)

// Noise describes the concurrent traffic of one tenant.
type Noise struct {
	Bodies  int // connections that send calls of 2 MB with a million numbers, and then again
	Streams int // event streams
	Polls   int // requests that wait for a change
	SignIns int // sign-ins that come back with made-up codes; half of them were never begun
	Pages   int // people's browsers that open the costliest page, and then again
}

// Worst returns the traffic for which the limits are defined.
func Worst() Noise {
	return Noise{
		Bodies:  24,
		Streams: 1500,
		Polls:   2000,
		SignIns: 400,
		Pages:   8,
	}
}

// bounded limits the noise to the maximum that this tool sends.
func (n Noise) bounded() Noise {
	most := Worst()
	return Noise{
		Bodies:  min(n.Bodies, most.Bodies),
		Streams: min(n.Streams, most.Streams),
		Polls:   min(n.Polls, most.Polls),
		SignIns: min(n.SignIns, most.SignIns),
		Pages:   min(n.Pages, most.Pages),
	}
}

// order is the configuration of the process that makes the noise. It is a separate process, like
// the tenant's programs. In the measuring process, its work would be counted as the server's time.
type order struct {
	Base    string
	Token   string
	Session string // of a person of the tenant
	Request string // that polls wait for, and pages show
	Noise   Noise
	For     time.Duration
}

// orders is the environment variable with a process's order.
const orders = "ASSENT_NEIGHBOURS_NOISE"

// Noisy makes the noise if this process was started for that, and reports whether it was. Programs
// that call Run must call it first.
func Noisy() bool {
	text := os.Getenv(orders)
	if text == "" {
		return false
	}
	var o order
	err := json.Unmarshal([]byte(text), &o)
	if err == nil {
		err = json.NewEncoder(os.Stdout).Encode(o.make())
	}
	if err != nil {
		fmt.Fprintln(os.Stderr, err)
		os.Exit(1)
	}
	return true
}

// send starts a copy of this process that makes the noise.
func (o order) send(ctx context.Context) (answers map[string]int, err error) {
	text, err := json.Marshal(o)
	if err != nil {
		return nil, err
	}
	cmd := exec.CommandContext(context.WithoutCancel(ctx), os.Args[0])
	cmd.Env, cmd.Stderr = append(os.Environ(), orders+"="+string(text)), os.Stderr
	out, err := cmd.Output()
	if err != nil {
		return nil, fmt.Errorf("the noise: %w", err)
	}
	return answers, json.Unmarshal(out, &answers)
}

// make makes the noise, and returns the counts of its outcomes.
func (o order) make() map[string]int {
	ctx, cancel := context.WithTimeout(context.Background(), min(o.For, Longest))
	defer cancel()
	n := &noise{
		base:    o.Base,
		token:   o.Token,
		session: o.Session,
		client:  newClient(),
		answers: map[string]int{},
	}
	n.run(ctx, o.Noise.bounded(), o.Request)
	return n.answers
}

// noise makes traffic until its context ends, and counts the outcomes.
type noise struct {
	base    string
	token   string
	session string
	client  *http.Client
	mu      sync.Mutex
	answers map[string]int // by what was asked for, and the status
}

// newClient returns a client that connects only to this machine, over any number of connections.
func newClient() *http.Client {
	dialer := &net.Dialer{}
	return &http.Client{
		CheckRedirect: func(*http.Request, []*http.Request) error { return http.ErrUseLastResponse },
		Transport: &http.Transport{
			MaxIdleConnsPerHost: 4096,
			DisableCompression:  true,
			DialContext: func(ctx context.Context, network, address string) (net.Conn, error) {
				if err := local(address); err != nil {
					return nil, err
				}
				return dialer.DialContext(ctx, network, address)
			},
		},
	}
}

// The pauses before the next attempt, regardless of Retry-After. All requests begin at the same
// time; later pauses vary between half and one and a half times the value.
const (
	afterWork  = 100 * time.Millisecond // of a body or a page
	afterWatch = 5 * time.Second        // of a stream, a poll or a sign-in
)

func (n *noise) run(ctx context.Context, much Noise, request string) {
	var all sync.WaitGroup
	many := func(count int, rest time.Duration, do func(ctx context.Context, i int)) {
		for i := range count {
			all.Go(func() {
				for ctx.Err() == nil {
					do(ctx, i)
					_ = wait.Pause(ctx, rest/2+rand.N(rest))
				}
			})
		}
	}
	body := call("quote", `{"a":[`+strings.Repeat("1,", 999_980)+`1]}`)
	asked := []byte(`{"call":` + string(call("trade", `{"a":[`+strings.Repeat("1,", 999_980)+`1]}`)) + `}`)
	many(much.Bodies, afterWork, func(ctx context.Context, i int) {
		if i%2 == 0 {
			n.send(ctx, "decide", "POST", "/v1/agents/desk/decide", body)
		} else {
			n.send(ctx, "request", "POST", "/v1/agents/desk/requests", asked)
		}
	})
	many(much.Streams, afterWatch, func(ctx context.Context, _ int) {
		n.send(ctx, "stream", "GET", "/v1/events?after=-1", nil)
	})
	many(much.Polls, afterWatch, func(ctx context.Context, _ int) {
		n.send(ctx, "poll", "GET", "/v1/requests/"+request+"?wait=60s&version=1", nil)
	})
	many(much.SignIns, afterWatch, func(ctx context.Context, i int) { n.signIn(ctx, i%2 == 0) })
	many(
		much.Pages,
		afterWork,
		func(ctx context.Context, _ int) { n.page(ctx, "/requests/"+request+"?show=all") },
	)
	all.Wait()
}

// call writes a call.
func call(tool, args string) []byte {
	return []byte(`{"kind":"tool","tool":"` + tool + `","args":` + args + `}`)
}

// send makes one request, reads the answer as long as it comes, and counts it.
func (n *noise) send(ctx context.Context, what, method, path string, body []byte) {
	var reader io.Reader
	if body != nil {
		reader = strings.NewReader(string(body))
	}
	req, err := http.NewRequestWithContext(ctx, method, n.base+path, reader)
	if err != nil {
		n.count(what, err.Error())
		return
	}
	req.Header.Set("Authorization", "Bearer "+n.token)
	if body != nil {
		req.Header.Set("Content-Type", "application/json")
	}
	n.do(what, req)
}

func (n *noise) do(what string, req *http.Request) {
	resp, err := n.client.Do(req)
	switch {
	case req.Context().Err() != nil:
		if err == nil {
			resp.Body.Close()
		}
		return
	case err != nil:
		n.count(what, "cut off")
		return
	}

	defer resp.Body.Close()
	n.count(what, fmt.Sprint(resp.StatusCode))
	_, _ = io.Copy(io.Discard, resp.Body) // until it ends
}

func (n *noise) count(what, how string) {
	n.mu.Lock()
	defer n.mu.Unlock()
	n.answers[what+" "+how]++
}

// page opens a page as a person who is signed in.
func (n *noise) page(ctx context.Context, path string) {
	req, err := http.NewRequestWithContext(ctx, "GET", n.base+path, nil)
	if err != nil {
		n.count("page", err.Error())
		return
	}
	req.Header.Set("Cookie", n.session)
	n.do("page", req)
}

// signIn calls the sign-in callback with an invalid code, for a sign-in that was begun here or for
// a forged one.
func (n *noise) signIn(ctx context.Context, begun bool) {
	state := "made-up"
	cookie := "__Host-assent-flow=" + forged()
	what := "forged sign-in"
	if begun {
		what = "begun sign-in"
		to, set, err := begin(ctx, n.client, n.base, noisy)
		if err != nil {
			return
		}
		state, cookie = to.Query().Get("state"), set
	}

	back := url.Values{"code": {"made-up"}, "state": {state}}
	req, err := http.NewRequestWithContext(ctx, "GET", n.base+"/auth/callback/"+noisy+"?"+back.Encode(), nil)
	if err != nil {
		n.count(what, err.Error())
		return
	}
	req.Header.Set("Cookie", cookie)
	n.do(what, req)
}

// forged returns a forged sign-in cookie.
func forged() string {
	return base64.RawURLEncoding.EncodeToString([]byte(
		`{"provider":"` + noisy + `","state":"made-up","nonce":"n","verifier":"` + strings.Repeat("v", 43) +
			`","next":"/","expires":"2100-01-01T00:00:00Z"}`))
}
