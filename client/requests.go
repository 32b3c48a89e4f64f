package client

import (
	"cmp"
	"context"
	"encoding/json"
	"fmt"
	"net/url"
	"strconv"
	"time"

	"github.com/assent-dev/assent/approval"
	"github.com/assent-dev/assent/approval/info"
	"github.com/assent-dev/assent/internal/jsonmsg"
	"github.com/assent-dev/assent/resolve"
	"github.com/assent-dev/assent/server/openapi"
)

// maxWait is the longest that the server lets one exchange wait.
const maxWait = 60 * time.Second

// Decide decides a call without asking anybody. A call is its JSON form
// (docs/contracts/decide.md); its arguments are sent exactly as they
// stand there.
func (c *Client) Decide(ctx context.Context, agent string, callText []byte) (resolve.Decision, error) {
	in := post(callText, "v1", "agents", agent, "decide").repeatable()
	var out resolve.Decision
	err := c.do(ctx, in, &out)
	return out, err
}

// OpenOptions are the choices of Open.
type OpenOptions struct {
	Key      string      // idempotency key; "" makes one, which covers the attempts of this one call of Open
	Replaces string      // an earlier request that this one stands in for
	Context  []info.Item // what the agent says about the call
	// Within is how long you wait for an answer, where the rules give
	// more time; 0: as the rules say.
	Within time.Duration
	// Ask is why people are asked also where the rules allow the call;
	// "": as the rules say.
	Ask string
}

// Open presents a call that wants to run.
func (c *Client) Open(
	ctx context.Context,
	agent string,
	callText []byte,
	opt OpenOptions,
) (*approval.Opened, error) {
	body := object(func(w *jsonmsg.Writer) {
		w.Name("call").Verbatim(callText)
		w.Optional("replaces", opt.Replaces)
		writeContext(w, opt.Context)
		writeDuration(w, "within", opt.Within)
		w.Optional("ask", opt.Ask)
	})
	return c.opened(ctx, post(body, "v1", "agents", agent, "requests"), opt.Key)
}

// writeContext writes what the agent says, if it says anything.
func writeContext(w *jsonmsg.Writer, items []info.Item) {
	if len(items) > 0 {
		w.Name("context").Verbatim([]byte(info.Text(items)))
	}
}

// AskOptions are the choices of Ask.
type AskOptions struct {
	// Principal and Session say for whom the agent asks, where it asks
	// by itself and not during a call.
	Principal string
	Session   string
	Context   []info.Item // what the agent says about the question

	Key    string        // idempotency key; "" makes one, which covers the attempts of this one call of Ask
	Within time.Duration // until the question expires; the server's own time when 0
}

// Ask puts a question to people: a tool's during a call, or the agent's
// own, without one (callText nil). The answer is pending, with the
// question's request, or deny.
func (c *Client) Ask(
	ctx context.Context, agent string, callText []byte, q approval.Question, opt AskOptions,
) (*approval.Opened, error) {
	question, err := json.Marshal(q)
	if err != nil {
		return nil, fmt.Errorf("write the question: %w", err)
	}
	body := object(func(w *jsonmsg.Writer) {
		if callText != nil {
			w.Name("call").Verbatim(callText)
		} else {
			w.Optional("principal", opt.Principal)
			w.Optional("session", opt.Session)
		}

		w.Name("question").Verbatim(question)
		writeContext(w, opt.Context)
		writeDuration(w, "within", opt.Within)
	})
	return c.opened(ctx, post(body, "v1", "agents", agent, "questions"), opt.Key)
}

// opened presents a call under an idempotency key, or a new one.
func (c *Client) opened(ctx context.Context, in call, key string) (*approval.Opened, error) {
	if key == "" {
		key = approval.NewKey()
	}
	in.header = map[string]string{"Idempotency-Key": key}
	return as[approval.Opened](ctx, c, in.repeatable())
}

// ReportOptions are the choices of Report.
type ReportOptions struct {
	Opened string // key of the Open of this call; "" where there was none
	Key    string // idempotency key; "" makes one, which covers the attempts of this one call of Report
}

// Report tells the ledger what became of a call. It decides nothing.
func (c *Client) Report(
	ctx context.Context,
	agent string,
	callText []byte,
	what approval.Report,
	opt ReportOptions,
) error {
	in := post(object(func(w *jsonmsg.Writer) {
		w.Name("call").Verbatim(callText)
		w.Member("report", string(what))
		w.Optional("opened", opt.Opened)
	}), "v1", "agents", agent, "reports")
	in.header = map[string]string{"Idempotency-Key": cmp.Or(opt.Key, approval.NewKey())}

	return c.do(ctx, in.repeatable(), nil)
}

// Answer reads an answered question, which this token's runtime asked
// and may act on now: Chosen or Data of the answer. approval.ErrPending: nobody
// has answered. approval.ErrNotApproved: it ended without an answer, or
// is no question; the request, which comes with these two, says how. A
// problem of the code frozen: the answer is held back while the agent
// is frozen.
func (c *Client) Answer(ctx context.Context, id string) (*approval.Request, error) {
	r, err := c.Request(ctx, id)
	switch {
	case err != nil:
		return nil, err
	case r.Question != nil && r.State == approval.Pending:
		return r, approval.ErrPending
	case r.Question == nil || r.State != approval.Answered:
		return r, approval.ErrNotApproved
	}

	return r, nil
}

// Query picks requests for a list. Zero fields do not filter.
type Query struct {
	State     string // states separated by commas; "open" stands for pending and approved
	Agent     string
	Target    string
	Principal string
	Group     string
	Mine      bool // only what the token's person may answer
	Since     time.Time
	Order     string // newest (default) or due
	Limit     int
	Cursor    string
}

func (q Query) values() url.Values {
	v := url.Values{}
	for name, text := range map[string]string{
		"state":     q.State,
		"agent":     q.Agent,
		"target":    q.Target,
		"principal": q.Principal,
		"group":     q.Group,
		"order":     q.Order,
		"cursor":    q.Cursor,
	} {
		if text != "" {
			v.Set(name, text)
		}
	}

	if q.Mine {
		v.Set("mine", "true")
	}
	if !q.Since.IsZero() {
		v.Set("since", q.Since.Format(time.RFC3339Nano))
	}
	if q.Limit != 0 {
		v.Set("limit", strconv.Itoa(q.Limit))
	}
	return v
}

// Requests lists requests, one page.
func (c *Client) Requests(ctx context.Context, q Query) (*approval.Page, error) {
	return as[approval.Page](ctx, c, get(q.values(), "v1", "requests"))
}

// Request reads one request.
func (c *Client) Request(ctx context.Context, id string) (*approval.Request, error) {
	return c.request(ctx, get(nil, "v1", "requests", id))
}

// Wait reads one request as soon as its version is another than the
// given one, or when wait (at most 60s) is over.
func (c *Client) Wait(
	ctx context.Context,
	id string,
	version int64,
	wait time.Duration,
) (*approval.Request, error) {
	wait = min(max(wait, 0), maxWait)
	in := get(
		url.Values{"wait": {wait.String()}, "version": {strconv.FormatInt(version, 10)}},
		"v1",
		"requests",
		id,
	)
	in.longer = wait
	return c.request(ctx, in)
}

// WaitDecided waits until nobody needs to be asked any more: until the
// request is no longer pending.
func (c *Client) WaitDecided(ctx context.Context, id string) (*approval.Request, error) {
	r, err := c.Request(ctx, id)
	for err == nil && r.State == approval.Pending {
		r, err = c.Wait(ctx, id, r.Version, maxWait)
	}
	return r, err
}

// Vote answers a request, at the version that the person saw. It is
// tried again once, and only when no answer came: the version makes
// that safe.
func (c *Client) Vote(
	ctx context.Context,
	id string,
	version int64,
	body openapi.VoteBody,
) (*approval.Voted, error) {
	in, err := versioned(version, body, "v1", "requests", id, "votes")
	if err != nil {
		return nil, err
	}
	return as[approval.Voted](ctx, c, in)
}

// Edit approves a request with other arguments; with preview it only
// tells what that would do.
func (c *Client) Edit(
	ctx context.Context, id string, version int64, body openapi.EditBody, preview bool,
) (*approval.Edited, error) {
	in, err := versioned(version, body, "v1", "requests", id, "edits")
	if err != nil {
		return nil, err
	}
	in.query = url.Values{"preview": {strconv.FormatBool(preview)}}
	return as[approval.Edited](ctx, c, in)
}

func versioned(version int64, body any, path ...string) (call, error) {
	in, err := sending(body, path...)
	in.again = onceIfLost
	in.header = map[string]string{"If-Match": fmt.Sprintf("%q", strconv.FormatInt(version, 10))}
	return in, err
}

// Consume takes the one run of an approved call. The key stands for
// this run: "" makes one, which covers the attempts of this one call of
// Consume; a runtime that may crash in between and wants to know
// afterwards keeps a key of its own. After success exactly
// Current().Call of the answer may run, once.
func (c *Client) Consume(ctx context.Context, id string, callText []byte, key string) (*approval.Request, error) {
	return c.consume(ctx, id, "call", callText, key)
}

// ConsumeBinding is Consume for a runtime that computes the call's
// binding by its own plan.
func (c *Client) ConsumeBinding(ctx context.Context, id, binding, key string) (*approval.Request, error) {
	return c.consume(ctx, id, "binding", jsonmsg.AppendString(nil, binding), key)
}

func (c *Client) consume(
	ctx context.Context,
	id, what string,
	text []byte,
	key string,
) (*approval.Request, error) {
	if key == "" {
		key = approval.NewKey()
	}
	body := object(func(w *jsonmsg.Writer) {
		w.Name(what).Verbatim(text)
		w.Member("key", key)
	})
	return c.request(ctx, post(body, "v1", "requests", id, "consume").repeatable())
}

// Cancel takes a request back.
func (c *Client) Cancel(ctx context.Context, id, reason string) (*approval.Request, error) {
	return c.request(ctx, post(reasonBody(reason), "v1", "requests", id, "cancel"))
}

// History reads what the ledger says about a request.
func (c *Client) History(ctx context.Context, id string) ([]openapi.Entry, error) {
	var all []openapi.Entry
	for query := (url.Values{}); ; {
		var part openapi.Entries
		if err := c.do(ctx, get(query, "v1", "requests", id, "history"), &part); err != nil {
			return nil, err
		}
		if all = append(all, part.Entries...); part.Next == 0 {
			return all, nil
		}
		query.Set("from", strconv.FormatInt(part.Next, 10))
	}
}

func (c *Client) request(ctx context.Context, in call) (*approval.Request, error) {
	out := &approval.Request{}
	if err := c.do(ctx, in, out); err != nil {
		return nil, err
	}
	if len(out.Revisions) == 0 {
		return nil, fmt.Errorf("read the request %s: it holds no call", out.ID)
	}
	return out, nil
}

// object writes a body whose texts of calls go in byte for byte. The
// server refuses what it can't read.
func object(fill func(*jsonmsg.Writer)) []byte {
	out, _ := jsonmsg.Object(fill) // texts that are no UTF-8 are mended
	return out
}

func writeDuration(w *jsonmsg.Writer, name string, d time.Duration) {
	if d != 0 {
		w.Member(name, d.String())
	}
}

func reasonBody(reason string) []byte {
	return object(func(w *jsonmsg.Writer) { w.Member("reason", reason) })
}
