package client

import (
	"context"
	"encoding/json"
	"fmt"
	"io"
	"net/http"
	"net/url"
	"strconv"
	"time"

	"github.com/assent-dev/assent/approval"
	"github.com/assent-dev/assent/approval/ledger"
	"github.com/assent-dev/assent/internal/wait"
	"github.com/assent-dev/assent/server/openapi"
)

// Grants lists standing approvals, only live ones unless all is true.
func (c *Client) Grants(ctx context.Context, all bool) ([]approval.Grant, error) {
	var out openapi.Grants
	err := c.do(ctx, get(url.Values{"all": {strconv.FormatBool(all)}}, "v1", "grants"), &out)
	return out.Grants, err
}

// Grant returns one standing approval.
func (c *Client) Grant(ctx context.Context, id string) (*approval.Grant, error) {
	return as[approval.Grant](ctx, c, get(nil, "v1", "grants", id))
}

// RevokeGrant ends a standing approval. It may be called again.
func (c *Client) RevokeGrant(ctx context.Context, id, reason string) (*approval.Grant, error) {
	return as[approval.Grant](ctx, c, post(reasonBody(reason), "v1", "grants", id, "revoke").repeatable())
}

// Whoami returns the identity of the client's token and its permissions.
func (c *Client) Whoami(ctx context.Context) (*openapi.Whoami, error) {
	return as[openapi.Whoami](ctx, c, get(nil, "v1", "whoami"))
}

// Agents lists the agents that can be used, and what decides on their calls.
func (c *Client) Agents(ctx context.Context) (*openapi.Agents, error) {
	return as[openapi.Agents](ctx, c, get(nil, "v1", "agents"))
}

// Candidate returns what would change if the candidate of the server's tenant decided.
func (c *Client) Candidate(ctx context.Context) (*openapi.Candidate, error) {
	return as[openapi.Candidate](ctx, c, get(nil, "v1", "candidate"))
}

// Freezes lists the current freezes.
func (c *Client) Freezes(ctx context.Context) ([]approval.Freeze, error) {
	return c.freezes(ctx, get(nil, "v1", "freezes"))
}

// Freeze freezes one agent, or the whole tenant if agent is empty, and returns all freezes. It
// may be called again.
func (c *Client) Freeze(ctx context.Context, agent, reason string) ([]approval.Freeze, error) {
	return c.freezes(ctx, post(freezeBody(agent, reason), "v1", "freezes").repeatable())
}

// LiftFreeze lifts a freeze and returns the remaining ones. It returns an *AskedError while
// administrators have to approve it.
func (c *Client) LiftFreeze(ctx context.Context, agent, reason string) ([]approval.Freeze, error) {
	var out openapi.Freezes
	err := c.act(ctx, post(freezeBody(agent, reason), "v1", "freezes", "lift"), &out)

	return out.Freezes, err
}

// AskedError is returned if administrators have to approve an action, which was not executed.
// After their approval, repeating the action executes it, once.
type AskedError struct{ Request approval.Request }

// Error returns a text with the request's id and state.
func (e *AskedError) Error() string {
	return "administrators are asked first: " + e.Request.ID + " is " + string(e.Request.State)
}

// act makes an exchange that may require approval first.
func (c *Client) act(ctx context.Context, in call, out any) error {
	text, err := c.exchange(ctx, in)
	if err != nil {
		return err
	}
	var asked openapi.Asked
	if json.Unmarshal(text, &asked) == nil && asked.Request.ID != "" {
		return &AskedError{Request: asked.Request}
	}

	return in.read(text, out)
}

func freezeBody(agent, reason string) []byte {
	text, _ := json.Marshal(
		openapi.FreezeBody{Agent: agent, Reason: reason},
	) // two strings always have a JSON form
	return text
}

func (c *Client) freezes(ctx context.Context, in call) ([]approval.Freeze, error) {
	var out openapi.Freezes
	err := c.do(ctx, in, &out)
	return out.Freezes, err
}

// Checkpoint returns the signed state of the ledger. Verify it with a public key from another
// source.
func (c *Client) Checkpoint(ctx context.Context) (*openapi.Checkpoint, error) {
	return as[openapi.Checkpoint](ctx, c, get(nil, "v1", "audit", "checkpoint"))
}

// Proof returns the proof of one entry.
func (c *Client) Proof(ctx context.Context, index int64) (*ledger.Proof, error) {
	return as[ledger.Proof](ctx, c, get(nil, "v1", "audit", "proof", strconv.FormatInt(index, 10)))
}

// Export writes the ledger to w. It is not retried; after an error discard what was written.
// Otherwise verify it (ledger.Verify).
func (c *Client) Export(ctx context.Context, w io.Writer) error {
	resp, err := c.send(ctx, get(nil, "v1", "audit", "export"))
	if err != nil {
		return err
	}
	defer resp.Body.Close()
	if _, err := io.Copy(w, resp.Body); err != nil {
		return fmt.Errorf("export the ledger: %w", err)
	}
	return nil
}

// Stats returns figures about answers since a time. The zero time means 30 days ago.
func (c *Client) Stats(ctx context.Context, since time.Time) (*approval.Stats, error) {
	query := url.Values{}
	if !since.IsZero() {
		query.Set("since", since.Format(time.RFC3339Nano))
	}
	return as[approval.Stats](ctx, c, get(query, "v1", "stats"))
}

// Tokens lists tokens.
func (c *Client) Tokens(ctx context.Context) ([]openapi.Token, error) {
	var out openapi.Tokens
	err := c.do(ctx, get(nil, "v1", "tokens"), &out)
	return out.Tokens, err
}

// CreateToken creates a token. It returns an *AskedError while administrators have to approve
// it. The secret is only in this response, so if the response is lost, revoke the token.
func (c *Client) CreateToken(ctx context.Context, body openapi.TokenBody) (*openapi.CreatedToken, error) {
	in, err := sending(body, "v1", "tokens")
	if err != nil {
		return nil, err
	}
	out := &openapi.CreatedToken{}
	if err := c.act(ctx, in, out); err != nil {
		return nil, err
	}

	return out, nil
}

// BeginDevice begins to sign in this program: a person types the user code in the inbox. It
// needs no token.
func (c *Client) BeginDevice(ctx context.Context, name string) (*openapi.Device, error) {
	in, err := sending(openapi.DeviceBody{Name: name}, "v1", "device")
	if err != nil {
		return nil, err
	}
	return as[openapi.Device](ctx, c, in)
}

// WaitDevice waits until a person has confirmed the code, and returns the token.
func (c *Client) WaitDevice(ctx context.Context, d *openapi.Device) (*openapi.CreatedToken, error) {
	in, err := sending(openapi.DeviceTokenBody{DeviceCode: d.DeviceCode}, "v1", "device", "token")
	if err != nil {
		return nil, err
	}
	for {
		out, err := as[openapi.CreatedToken](ctx, c, in)
		if Code(err) != openapi.CodePending {
			return out, err
		}
		if err := wait.Pause(ctx, time.Duration(max(d.Interval, 1))*time.Second); err != nil {
			return nil, err
		}
	}
}

// RevokeToken ends a token. It may be called again.
func (c *Client) RevokeToken(ctx context.Context, id string) error {
	return c.do(ctx, post(nil, "v1", "tokens", id, "revoke").repeatable(), nil)
}

// Deliveries lists waiting, sent or dead deliveries, newest first.
func (c *Client) Deliveries(
	ctx context.Context,
	state openapi.DeliveryState,
	limit int,
) ([]openapi.Delivery, error) {
	var out openapi.Deliveries
	query := url.Values{"state": {string(state)}}
	if limit > 0 {
		query.Set("limit", strconv.Itoa(limit))
	}
	err := c.do(ctx, get(query, "v1", "deliveries"), &out)
	return out.Deliveries, err
}

// Redeliver makes a dead delivery due again.
func (c *Client) Redeliver(ctx context.Context, id int64) error {
	return c.do(ctx, post(nil, "v1", "deliveries", strconv.FormatInt(id, 10), "redeliver"), nil)
}

// Ready asks once whether the server is ready for traffic, and otherwise what is wrong. It
// returns an error if the server did not respond as assent does.
func (c *Client) Ready(ctx context.Context) (*openapi.Health, error) {
	ctx, cancel := context.WithTimeout(ctx, c.opt.Timeout)
	defer cancel()
	req, err := http.NewRequestWithContext(ctx, http.MethodGet, c.base.JoinPath("readyz").String(), nil)
	if err != nil {
		return nil, err
	}
	resp, err := c.opt.HTTP.Do(req)
	if err != nil {
		return nil, err
	}
	defer resp.Body.Close()
	out := &openapi.Health{}
	if err := json.NewDecoder(io.LimitReader(resp.Body, 1<<20)).Decode(out); err != nil {
		return nil, fmt.Errorf("the server answered %s, and not as assent does", resp.Status)
	}
	return out, nil
}
