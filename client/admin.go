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

// Grants lists standing approvals; live ones only unless all.
func (c *Client) Grants(ctx context.Context, all bool) ([]approval.Grant, error) {
	var out openapi.Grants
	err := c.do(ctx, get(url.Values{"all": {strconv.FormatBool(all)}}, "v1", "grants"), &out)
	return out.Grants, err
}

// Grant reads one standing approval.
func (c *Client) Grant(ctx context.Context, id string) (*approval.Grant, error) {
	return as[approval.Grant](ctx, c, get(nil, "v1", "grants", id))
}

// RevokeGrant ends a standing approval. It may be repeated.
func (c *Client) RevokeGrant(ctx context.Context, id, reason string) (*approval.Grant, error) {
	return as[approval.Grant](ctx, c, post(reasonBody(reason), "v1", "grants", id, "revoke").repeatable())
}

// Whoami tells who the client's token is and what it may do.
func (c *Client) Whoami(ctx context.Context) (*openapi.Whoami, error) {
	return as[openapi.Whoami](ctx, c, get(nil, "v1", "whoami"))
}

// Agents tells which agents can be used, and what decides about them.
func (c *Client) Agents(ctx context.Context) (*openapi.Agents, error) {
	return as[openapi.Agents](ctx, c, get(nil, "v1", "agents"))
}

// Candidate tells what would change if the candidate of the server's
// tenant decided.
func (c *Client) Candidate(ctx context.Context) (*openapi.Candidate, error) {
	return as[openapi.Candidate](ctx, c, get(nil, "v1", "candidate"))
}

// Freezes lists what is frozen.
func (c *Client) Freezes(ctx context.Context) ([]approval.Freeze, error) {
	return c.freezes(ctx, get(nil, "v1", "freezes"))
}

// Freeze throws the kill switch for one agent, or with "" for the
// tenant, and lists what is frozen then. It may be repeated.
func (c *Client) Freeze(ctx context.Context, agent, reason string) ([]approval.Freeze, error) {
	return c.freezes(ctx, post(freezeBody(agent, reason), "v1", "freezes").repeatable())
}

// LiftFreeze lifts a freeze, and lists what is frozen then; *AskedError
// while people are asked.
func (c *Client) LiftFreeze(ctx context.Context, agent, reason string) ([]approval.Freeze, error) {
	var out openapi.Freezes
	err := c.act(ctx, post(freezeBody(agent, reason), "v1", "freezes", "lift"), &out)

	return out.Freezes, err
}

// AskedError says that administrators are asked about an act, which did
// not happen. The same again happens, once, when they have approved it.
type AskedError struct{ Request approval.Request }

// Error names the request.
func (e *AskedError) Error() string {
	return "administrators are asked first: " + e.Request.ID + " is " + string(e.Request.State)
}

// act makes an exchange that people may be asked about first.
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

// Checkpoint reads the signed state of the ledger. Verify it with a
// public key that you have from elsewhere.
func (c *Client) Checkpoint(ctx context.Context) (*openapi.Checkpoint, error) {
	return as[openapi.Checkpoint](ctx, c, get(nil, "v1", "audit", "checkpoint"))
}

// Proof reads the proof of one entry.
func (c *Client) Proof(ctx context.Context, index int64) (*ledger.Proof, error) {
	return as[ledger.Proof](ctx, c, get(nil, "v1", "audit", "proof", strconv.FormatInt(index, 10)))
}

// Export writes the ledger to w. It is not tried again, and what was
// written before an error is of no use; what was written without one
// still wants verifying (ledger.Verify).
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

// Stats reads figures about answers since a time; the zero time means
// 30 days ago.
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

// CreateToken makes a token; *AskedError while people are asked. Its
// secret is in the answer and nowhere else, so a lost answer leaves a
// token to revoke.
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

// BeginDevice begins to sign this program in: a person types the user
// code in the inbox. It needs no token.
func (c *Client) BeginDevice(ctx context.Context, name string) (*openapi.Device, error) {
	in, err := sending(openapi.DeviceBody{Name: name}, "v1", "device")
	if err != nil {
		return nil, err
	}
	return as[openapi.Device](ctx, c, in)
}

// WaitDevice waits until a person has confirmed the code of this
// program, and takes the token that is theirs.
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

// RevokeToken ends a token. It may be repeated.
func (c *Client) RevokeToken(ctx context.Context, id string) error {
	return c.do(ctx, post(nil, "v1", "tokens", id, "revoke").repeatable(), nil)
}

// Deliveries lists what is sent outside, newest first: the waiting, the
// sent or the dead.
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

// Ready asks once whether the server may be sent traffic, and what is
// wrong when not. The error is for a server that gave no such answer.
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
