package gateway

import (
	"cmp"
	"context"
	"encoding/hex"
	"errors"
	"fmt"
	"io"
	"mime"
	"net/http"
	"net/url"
	"reflect"
	"slices"
	"strings"
	"time"

	"github.com/assent-dev/assent/approval"
	"github.com/assent-dev/assent/internal/durable"
	"github.com/assent-dev/assent/policy"
	"github.com/assent-dev/assent/rap"
	"github.com/assent-dev/assent/rap/peer"
	"github.com/assent-dev/assent/rap/wire"
)

// base is what all parts of a gateway share.
type base struct {
	cfg     Config
	urlPath string // path of PublicURL
	url     string // PublicURL without trailing slashes
	ops     map[string]*operation
	toolset []byte
	callers []*caller
	engine  *durable.Engine[call]
	limits  *limits
	feeds   []rap.Feed // of the operations, without duplicates
}

// operation is an operation with its description in the manifest.
type operation struct {
	rap.Operation
	tool   wire.Tool
	digest string
}

// caller is a configured caller with its HTTP client.
type caller struct {
	Caller
	asker approval.Asker
	hash  []byte // of its token; nil if it has none
	peer  *peer.Peer
	lease time.Duration // limit for one exchange with it
	reads chan struct{} // one slot per invocation in memory
}

func (b *base) now() time.Time { return b.cfg.Now() }

// caller returns the caller with a name, or nil if it is no longer configured.
func (b *base) caller(name string) *caller {
	for _, c := range b.callers {
		if c.Name == name {
			return c
		}
	}
	return nil
}

// refuse logs why something was refused. Ids come from the peer, so their hashes are logged.
func (b *base) refuse(ctx context.Context, what string, reason any, r *record) {
	attrs := []any{"reason", reason}
	if r != nil {
		attrs = append(attrs, "caller", r.Part.Caller, "call", subjectOf(r))
	}
	b.cfg.Log.WarnContext(ctx, what, attrs...)
}

// record adds an event to the ledger with the caller, the person and the principal that the
// runtime named. The texts of facts are our own.
func (b *base) record(ctx context.Context, event string, r *record, facts map[string]any) error {
	c := &r.Part
	all := map[string]any{
		"caller":    c.Caller,
		"thread":    durable.Hash(c.Thread),
		"person":    r.Asker.Person,
		"principal": c.User,
	}
	if b.ops[c.Operation] != nil {
		all["operation"] = c.Operation
	}
	for name, fact := range facts {
		all[name] = fact
	}
	if err := b.cfg.Record(ctx, event, subjectOf(r), cmp.Or(r.Asker.Token, b.cfg.Namespace), all); err != nil {
		b.cfg.Log.ErrorContext(ctx, "the ledger takes no record", "event", event, "error", err)
		return err
	}
	return nil
}

func (b *base) checkParts() error {
	switch {
	case b.cfg.Records == nil || b.cfg.Namespace == "" || b.cfg.Plan == nil:
		return errors.New("expected records, a room and a plan")
	case b.cfg.Ask != AskUser && b.cfg.Ask != AskApprovers && b.cfg.Ask != AskBoth:
		return fmt.Errorf("ask: expected %q, %q or %q", AskUser, AskApprovers, AskBoth)
	case b.cfg.Ask != AskUser && b.cfg.People == nil:
		return fmt.Errorf("ask: %q needs a desk", b.cfg.Ask)
	case min(b.cfg.Within, b.cfg.RunWithin, b.cfg.SubscriptionWithin, b.cfg.Poll, b.cfg.Grants.For) < 0,
		b.cfg.MaxBody < 0, min(b.cfg.MaxOpen, b.cfg.MaxThread, b.cfg.Rate, b.cfg.Grants.Uses) < 0:
		return errors.New("expected bounds that are not negative")
	}

	return nil
}

func (b *base) readURL() error {
	u, err := url.Parse(b.cfg.PublicURL)
	if err != nil || !isBase(u) || strings.ContainsAny(b.cfg.PublicURL, "?#") {
		return errors.New(
			"public_url: expected an absolute http or https address, without user, query and fragment",
		)
	}
	b.url = strings.TrimRight(b.cfg.PublicURL, "/")
	b.urlPath = strings.TrimRight(u.Path, "/")
	return nil
}

// readOperations builds the manifest and checks that a strict runtime would accept it.
func (b *base) readOperations() error {
	set := wire.Toolset{
		Name:        b.cfg.Name,
		Description: b.cfg.Description,
		Endpoint:    b.url + "/invoke",
	}
	b.ops = map[string]*operation{}
	for i, op := range b.cfg.Operations {
		if op.Run == nil {
			return fmt.Errorf("operations[%d]: %s can't be run", i, op.Name)
		}
		tool := wire.Tool{
			Name:        op.Name,
			Description: op.Description,
			InputSchema: op.InputSchema,
		}
		tool.Annotations.ReadOnly = hintOf(op.ReadOnly)
		tool.Annotations.Destructive = hintOf(op.Destructive)
		set.Tools = append(set.Tools, tool)
		b.addFeed(op.Feed)
		b.ops[op.Name] = &operation{Operation: op, tool: tool, digest: tool.Digest()}
	}

	b.toolset = set.Append(nil)
	read, err := wire.ParseToolset(b.toolset)
	if err != nil {
		return fmt.Errorf("operations: no runtime would take them: %w", err)
	}
	for _, tool := range read.Tools { // the parsed tools have compiled schemas
		b.ops[tool.Name].tool = tool
	}
	return nil
}

func (b *base) readCallers() error {
	seen := map[string]bool{}
	for i, c := range b.cfg.Callers {
		out := &caller{Caller: c, reads: make(chan struct{}, maxReads)}
		var err error
		if out.peer, err = peer.New(c.Callbacks); err != nil {
			return fmt.Errorf("callers[%d]: callbacks: %w", i, err)
		}
		if c.TokenHash != "" {
			if out.hash, err = hex.DecodeString(c.TokenHash); err != nil || len(out.hash) != 32 {
				return fmt.Errorf("callers[%d]: token_hash: expected a SHA-256 in hex", i)
			}
		}
		if c.Name == "" || seen["name "+c.Name] || seen["hash "+string(out.hash)] {
			return fmt.Errorf("callers[%d]: expected a name and a token of its own", i)
		}
		if len(c.Callbacks.AnyPort) > 0 && c.TokenHash != "" {
			return fmt.Errorf("callers[%d]: callbacks at any port of this machine: expected a port "+
				"for a caller with a token, which may be anywhere", i)
		}
		if c.AnswersSigned && c.TokenHash == "" {
			return fmt.Errorf("callers[%d]: answers_signed: it has no token to sign with", i)
		}
		seen["name "+c.Name] = true
		seen["hash "+string(out.hash)] = true
		out.asker = CallerAsker(b.cfg.Namespace, c)
		if err := out.asker.Check(); err != nil {
			return fmt.Errorf("callers[%d]: %w", i, err)
		}
		out.lease = cmp.Or(c.Callbacks.Timeout, 10*time.Second) + 2*time.Second
		b.callers = append(b.callers, out)
	}

	if len(b.callers) == 0 {
		return errors.New("expected a caller")
	}
	return nil
}

// addFeed adds a feed to those that are watched. Operations of one server share a feed.
func (b *base) addFeed(f rap.Feed) {
	known := func(other rap.Feed) bool { return reflect.ValueOf(f).Comparable() && other == f }
	if f != nil && !slices.ContainsFunc(b.feeds, known) {
		b.feeds = append(b.feeds, f)
	}
}

// watches returns the watches of the operations' feeds.
func (b *base) watches() []func(context.Context, func(string)) error {
	var out []func(context.Context, func(string)) error
	for _, feed := range b.feeds {
		out = append(out, func(ctx context.Context, changed func(string)) error {
			return feed.Watch(ctx, func(name string) { changed(subscriptionRef(name)) })
		})
	}
	return out
}

// change changes a call by compare-and-set. edit returns false to leave the call unchanged.
// change returns the call in both cases, and whether it was changed.
func (b *base) change(ctx context.Context, key string, edit func(*record) bool) (*record, bool, error) {
	r, err := b.engine.Change(ctx, key, func(r *record) error {
		if !edit(r) {
			return durable.ErrUnchanged
		}
		return nil
	})
	if errors.Is(err, durable.ErrUnchanged) {
		return r, false, nil
	}
	return r, err == nil, err
}

// body reads the JSON body of a request, with a limit on its size and a deadline.
func (b *base) body(w http.ResponseWriter, req *http.Request, limit int64) ([]byte, error) {
	kind, _, err := mime.ParseMediaType(req.Header.Get("Content-Type"))
	if err != nil || kind != "application/json" || req.Header.Get("Content-Encoding") != "" {
		return nil, errNotJSON
	}
	patience := http.NewResponseController(w)
	_ = patience.SetReadDeadline(
		time.Now().Add(longestRequest),
	) // servers without read deadlines have a timeout of their own
	body, err := io.ReadAll(http.MaxBytesReader(w, req.Body, limit))
	var big *http.MaxBytesError
	switch {
	case errors.As(err, &big):
		return nil, errTooBig
	case err != nil:
		return nil, errCutOff
	}

	_ = patience.SetReadDeadline(time.Time{})
	return body, nil
}

// askedUser records in the ledger that the runtime's user is asked.
func (b *base) askedUser(ctx context.Context, r *record) {
	q := r.Part.Question
	facts := map[string]any{
		"choices": q.Choices,
		"relayed": q.Relayed,
		"within":  q.Within.String(),
	}
	_ = b.record(ctx, "rap_user_asked", r, facts)
}

// bounds returns the limits of session grants: those configured, or lower ones of the rules.
func (b *base) bounds(r *policy.Require) (uses int, life time.Duration) {
	uses, life = b.cfg.Grants.Uses, b.cfg.Grants.For
	if r == nil {
		return uses, life
	}
	if r.Grants.Forbid {
		return 0, 0
	}
	if r.Grants.MaxUses > 0 {
		uses = min(uses, r.Grants.MaxUses)
	}
	if r.Grants.MaxAge > 0 {
		life = min(life, r.Grants.MaxAge)
	}
	return uses, life
}
