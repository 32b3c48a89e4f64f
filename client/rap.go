package client

import (
	"cmp"
	"context"
	"encoding/json"
	"errors"
	"fmt"
	"io"
	"iter"
	"net/url"
	"strconv"
	"time"

	"github.com/assent-dev/assent/approval/info"
	"github.com/assent-dev/assent/internal/jsonmsg"
	"github.com/assent-dev/assent/internal/sse"
	"github.com/assent-dev/assent/server/openapi"
)

// RAPCall is a call of a RAP tool that an agent makes through the server.
type RAPCall struct {
	Thread    string          `json:"thread"`
	ID        string          `json:"id"` // unique in its thread; a repetition is the same call
	CallID    *string         `json:"call_id,omitempty"`
	Ancestors []string        `json:"ancestors,omitempty"`
	User      string          `json:"user,omitempty"` // the person whom the agent acts for
	Operation string          `json:"operation"`
	Arguments json.RawMessage `json:"arguments,omitempty"` // sent byte for byte
	Context   []info.Item     `json:"context,omitempty"`   // what the agent says about the call; only people get it
}

// RAPTools lists the operations that a session (a root thread) may call.
func (c *Client) RAPTools(ctx context.Context, agent, session string) (*openapi.RAPTools, error) {
	return as[openapi.RAPTools](ctx, c, get(url.Values{"session": {session}}, "v1", "agents", agent, "rap", "tools"))
}

// RAPInvoke calls an operation. It returns as soon as the call is stored; RAPWait waits for its
// end. It may be called again.
func (c *Client) RAPInvoke(ctx context.Context, agent string, call RAPCall) (*openapi.RAPCall, error) {
	args := call.Arguments
	call.Arguments = nil
	body, err := json.Marshal(call)
	if err != nil {
		return nil, err
	}
	if args != nil { // an encoder would change its bytes
		body = jsonmsg.Put(body, "arguments", args)
	}
	return as[openapi.RAPCall](ctx, c, post(body, "v1", "agents", agent, "rap", "calls").repeatable())
}

// RAPWait returns the state of a call as soon as it is done, or after wait (at most 60s).
func (c *Client) RAPWait(
	ctx context.Context,
	agent, thread, id string,
	wait time.Duration,
) (*openapi.RAPCall, error) {
	wait = min(max(wait, 0), maxWait)
	in := get(url.Values{
		"thread": {thread},
		"id":     {id},
		"wait":   {wait.String()},
	}, "v1", "agents", agent, "rap", "calls")
	in.longer = wait
	return as[openapi.RAPCall](ctx, c, in)
}

// RAPNews is one change of a call. One of Call, Event, View and Lost is set.
type RAPNews struct {
	At    string           // place in the stream, to resume RAPFollow after it
	Call  *openapi.RAPCall // the current state of the call
	Event *openapi.RAPEvent
	View  *RAPView // the latest view of its type
	Lost  int      // number of events dropped before they were sent
}

// RAPView is state that a tool shows, as it sent it.
type RAPView struct {
	Type    string          `json:"type"`
	Content json.RawMessage `json:"content"`
}

// RAPFollow streams the changes of a call after a place; an empty one is the beginning. If the
// connection breaks, it is resumed, beginning with Call. The stream ends after the last change,
// when ctx ends, when the loop stops, or with an error that retrying can't fix.
func (c *Client) RAPFollow(ctx context.Context, agent, thread, id, after string) iter.Seq2[RAPNews, error] {
	return func(yield func(RAPNews, error) bool) {
		err := c.again(ctx, func() (bool, error) {
			before := after
			err := c.followCall(ctx, agent, url.Values{"thread": {thread}, "id": {id}}, &after, yield)
			return after != before, err
		})
		if !errors.Is(err, errStopped) {
			yield(RAPNews{}, err)
		}
	}
}

// followCall reads one connection to its end, and updates after.
func (c *Client) followCall(
	ctx context.Context, agent string, query url.Values, after *string, yield func(RAPNews, error) bool,
) error {
	if *after != "" {
		query.Set("after", *after)
	}
	in := get(query, "v1", "agents", agent, "rap", "stream")
	return c.listen(ctx, in, func(r io.Reader, alive func()) error {
		for s, err := range sse.Read(r, maxNewsLine, alive) {
			if err != nil {
				return err
			}
			n, ended, err := newsOf(&s)
			if err != nil {
				return err
			}
			*after = cmp.Or(s.ID, *after)
			if ended || n.At != "" && !yield(n, nil) {
				return errStopped
			}
		}

		return io.ErrUnexpectedEOF
	})
}

// newsOf decodes an event of the stream. Events of other kinds, which the server sends about
// the stream itself and later versions may add, are ignored: At is empty.
func newsOf(s *sse.Event) (n RAPNews, ended bool, err error) {
	var lost struct {
		Events int `json:"events"`
	}
	var into any
	switch s.Kind {
	case "end":
		return n, true, nil
	case "call":
		n.Call = &openapi.RAPCall{}
		into = n.Call
	case "event":
		n.Event = &openapi.RAPEvent{}
		into = n.Event
	case "view":
		n.View = &RAPView{}
		into = n.View
	case "lost":
		into = &lost
	default:
		return n, false, nil
	}

	if err := json.Unmarshal(s.Data, into); err != nil || s.ID == "" {
		return n, false, fmt.Errorf("%w: the data of %s %q", errUnreadable, s.Kind, s.ID)
	}
	n.Lost = lost.Events
	n.At = s.ID

	return n, false, nil
}

// RAPCancel interrupts a call.
func (c *Client) RAPCancel(ctx context.Context, agent, thread, id, reason string) (*openapi.RAPCall, error) {
	in, err := sending(map[string]string{
		"thread": thread,
		"id":     id,
		"reason": reason,
	}, "v1", "agents", agent, "rap", "cancel")
	if err != nil {
		return nil, err
	}
	return as[openapi.RAPCall](ctx, c, in.repeatable())
}

// RAPClose closes a thread.
func (c *Client) RAPClose(ctx context.Context, agent, thread string) error {
	in, err := sending(map[string]string{"thread": thread}, "v1", "agents", agent, "rap", "close")
	if err != nil {
		return err
	}
	return c.do(ctx, in.repeatable(), nil)
}

// RAPEvents lists the events of a thread's subscriptions from an index on.
func (c *Client) RAPEvents(ctx context.Context, agent, thread string, from int) (*openapi.RAPEvents, error) {
	query := url.Values{"thread": {thread}, "from": {strconv.Itoa(from)}}
	return as[openapi.RAPEvents](ctx, c, get(query, "v1", "agents", agent, "rap", "events"))
}

// RAPViews returns the latest view of each type of a thread.
func (c *Client) RAPViews(ctx context.Context, agent, thread string) (*openapi.RAPViews, error) {
	return as[openapi.RAPViews](ctx, c, get(url.Values{"thread": {thread}}, "v1", "agents", agent, "rap", "views"))
}

// SessionGrants lists the session grants of the server's RAP gateways that are in force.
func (c *Client) SessionGrants(ctx context.Context) ([]openapi.SessionGrant, error) {
	var out openapi.SessionGrants
	err := c.do(ctx, get(nil, "v1", "rap", "grants"), &out)

	return out.Grants, err
}

// RevokeSessionGrant ends a session grant, and returns its last state.
func (c *Client) RevokeSessionGrant(ctx context.Context, id, reason string) (*openapi.SessionGrant, error) {
	return as[openapi.SessionGrant](ctx, c, post(reasonBody(reason), "v1", "rap", "grants", id, "revoke"))
}

// SignIns lists the sign-ins that RAP tools require of the token's person.
func (c *Client) SignIns(ctx context.Context) (*openapi.SignIns, error) {
	return as[openapi.SignIns](ctx, c, get(nil, "v1", "rap", "sign_ins"))
}
