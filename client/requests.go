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

// maxWait is the longest wait that the server permits in one exchange.
const maxWait = 60 * time.Second

// Decide returns the decision on a call without asking people. callText is the call in JSON
// (docs/contracts/decide.md); its arguments are sent byte for byte.
func (c *Client) Decide(ctx context.Context, agent string, callText []byte) (resolve.Decision, error) {
	in := post(callText, "v1", "agents", agent, "decide").repeatable()
	var out resolve.Decision
	err := c.do(ctx, in, &out)
	return out, err
}

// OpenOptions configures Open.
type OpenOptions struct {
	Key      string      // idempotency key; if empty, a new one for the attempts of this Open
	Replaces string      // an earlier request that this one replaces
	Context  []info.Item // what the agent says about the call
	// Within limits the time for an answer, if it is shorter than that of the rules. 0 means as
	// long as the rules permit.
	Within time.Duration
	// Ask is a reason to ask people even if the rules allow the call. If it is empty, the rules
	// decide.
	Ask string
}

// Open presents a call that is to run.
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

// writeContext writes what the agent says about a call, if there is anything.
func writeContext(w *jsonmsg.Writer, items []info.Item) {
	if len(items) > 0 {
		w.Name("context").Verbatim([]byte(info.Text(items)))
	}
}

// AskOptions configures Ask.
type AskOptions struct {
	// Principal and Session identify the person the agent acts for if it asks a question of its
	// own, not during a call.
	Principal string
	Session   string
	Context   []info.Item // what the agent says about the question

	Key    string        // idempotency key; if empty, a new one for the attempts of this Ask
	Within time.Duration // until the question expires; 0: the server's default
}

// Ask asks people a question: that of a tool during a call, or the agent's own (callText nil).
// The outcome is pending, with the question's request, or deny.
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

// opened sends a call with an idempotency key, which is new if key is empty.
func (c *Client) opened(ctx context.Context, in call, key string) (*approval.Opened, error) {
	if key == "" {
		key = approval.NewKey()
	}
	in.header = map[string]string{"Idempotency-Key": key}
	return as[approval.Opened](ctx, c, in.repeatable())
}

// ReportOptions configures Report.
type ReportOptions struct {
	Opened string // key of this call's Open; empty if there was none
	Key    string // idempotency key; if empty, a new one for the attempts of this Report
}

// Report adds what happened to a call to the ledger. It decides nothing.
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

// Answer returns an answered question of this token's runtime, which may act on Chosen or Data
// of the answer now. It returns approval.ErrPending if there is no answer yet, and
// approval.ErrNotApproved if the question ended without an answer or the request is not a
// question; the request is returned with these two errors and has the details. A problem with
// the code frozen means that the answer is withheld while the agent is frozen.
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

// Query selects requests for a list. Zero fields do not filter.
type Query struct {
	State     string // states separated by commas; "open" means pending and approved
	Agent     string
	Target    string
	Principal string
	Group     string
	Mine      bool // only those that the token's person may answer
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

// Requests returns one page of requests.
func (c *Client) Requests(ctx context.Context, q Query) (*approval.Page, error) {
	return as[approval.Page](ctx, c, get(q.values(), "v1", "requests"))
}

// Request returns one request.
func (c *Client) Request(ctx context.Context, id string) (*approval.Request, error) {
	return c.request(ctx, get(nil, "v1", "requests", id))
}

// Wait returns one request as soon as its version differs from the given one, or after wait (at
// most 60s).
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

// WaitDecided waits until the request is no longer pending.
func (c *Client) WaitDecided(ctx context.Context, id string) (*approval.Request, error) {
	r, err := c.Request(ctx, id)
	for err == nil && r.State == approval.Pending {
		r, err = c.Wait(ctx, id, r.Version, maxWait)
	}
	return r, err
}

// Vote answers a request at the version that the person saw. It is retried once, and only if
// the response was lost: the version makes that safe.
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

// Edit approves a request with other arguments. With preview it only returns what that would
// do.
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

// Consume claims the one run of an approved call. The key identifies this run; if it is empty,
// a new one is used for the attempts of this Consume. A runtime that needs to know the outcome
// after a crash should store a key of its own. After success exactly Current().Call of the
// result may run, once.
func (c *Client) Consume(ctx context.Context, id string, callText []byte, key string) (*approval.Request, error) {
	return c.consume(ctx, id, "call", callText, key)
}

// ConsumeBinding is like Consume, for a runtime that computes the call's binding with its own
// plan.
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

// Cancel withdraws a request.
func (c *Client) Cancel(ctx context.Context, id, reason string) (*approval.Request, error) {
	return c.request(ctx, post(reasonBody(reason), "v1", "requests", id, "cancel"))
}

// History returns the ledger entries about a request.
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

// object writes a body that contains the texts of calls byte for byte. The server refuses
// invalid ones.
func object(fill func(*jsonmsg.Writer)) []byte {
	out, _ := jsonmsg.Object(fill) // invalid UTF-8 is replaced
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
