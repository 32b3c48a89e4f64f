package hook

import (
	"context"
	"crypto/sha256"
	"encoding/hex"
	"errors"
	"fmt"
	"slices"
	"strconv"
	"strings"
	"time"

	"github.com/assent-dev/assent/approval"
	"github.com/assent-dev/assent/approval/hold"
	"github.com/assent-dev/assent/approval/info"
	"github.com/assent-dev/assent/client"
	"github.com/assent-dev/assent/internal/jsonmsg"
	"github.com/assent-dev/assent/resolve"
	"github.com/assent-dev/assent/value"
)

// run handles one call of the hook.
type run struct {
	desk  Desk
	event *event
	// wait is the time that people have to decide.
	wait time.Duration
	// native is set if the product's own rules decide about tools that no file declares.
	native bool
	// defers is set if an undecided call may be deferred until the product is resumed.
	defers bool
	// insists is the reason to ask people even if the rules allow the call. It is empty if there is
	// none.
	insists string
}

// mostSame limits how often one session may ask people about the same call if the product gives its
// calls no ids.
const mostSame = 500

// present evaluates the rules for the call, and asks people if they require it. If the product
// gives its calls no ids, a key whose request is closed belongs to an earlier call with the same
// text, and present tries the next key.
func (r *run) present(ctx context.Context) (verdict, error) {
	for n := range mostSame {
		key, err := r.event.key(n)
		if err != nil {
			return verdict{}, err
		}
		v, over, err := r.attempt(ctx, key, n)
		if !over || err != nil {
			return v, err
		}
	}

	return verdict{}, fmt.Errorf("people were asked about this very call %d times in this session", mostSame)
}

// key returns the key of the call, which is the same if the call is repeated. It is derived from
// the id of the call in the session, or, if there is none, from its text and the number n of
// earlier calls with this text.
func (e *event) key(n int) (string, error) {
	parts := []string{e.product.name, e.moment.family(), e.session, e.id}
	if e.id == "" {
		text, err := value.AppendCanonicalText(nil, e.call.Args, value.Limits{})
		if err != nil {
			return "", fmt.Errorf("the arguments of the call: %w", err)
		}
		parts = append(parts, string(e.call.Kind), e.call.Server, e.call.Tool, string(text))
	}

	sum := sha256.Sum256(fmt.Appendf(nil, "%q", parts))
	key := "hook-" + hex.EncodeToString(sum[:])
	if n > 0 {
		key += "-" + strconv.Itoa(n)
	}

	return key, nil
}

// family keeps the keys of dialogs apart from the others: a product that runs both hooks for one
// call needs two approvals.
func (m moment) family() string {
	if m == dialog {
		return "dialog"
	}

	return "call"
}

// attempt presents the call under one key. over is true if that key belongs to an earlier call.
func (r *run) attempt(ctx context.Context, key string, n int) (v verdict, over bool, err error) {
	switch {
	case r.event.moment == elicits:
		v, err = r.elicit(ctx)
		return v, false, err
	case r.asksUser():
		return r.ask(ctx, key)
	}

	o, err := r.desk.Open(ctx, key, hold.Verdict{
		Decision: resolve.Decision{Outcome: resolve.Ask},
		Call:     &r.event.call,
		Context:  r.says(),
		Ask:      r.insists,
	})
	switch {
	case err != nil:
		return v, false, fmt.Errorf("ask for approval: %w", err)
	case o.Granted(), o.Outcome == resolve.Allow && o.ReplacePermissions && !r.event.asksOrEscapes():
		return allows(r.event.call.Args), false, nil
	case o.Outcome == resolve.Allow:
		// No person approved it, so the product's own permissions decide.
		return verdict{outcome: silent}, false, nil
	case r.native && undeclared(o):
		return verdict{outcome: silent}, false, nil
	case o.Outcome == resolve.Deny || o.Request == nil:
		return denies((&client.NotRunError{Opened: o}).Error()), false, nil
	case r.isOver(o.Request, n):
		return v, true, nil
	case directory(o.Request.Context) != directory(r.says()):
		return r.elsewhere(o.Request), false, nil
	}

	decided, err := r.decided(ctx, o.Request)
	switch {
	case err != nil:
		return v, false, err
	case decided.State == approval.Pending:
		return r.stillAsked(decided), false, nil
	case r.isAnothers(decided, n):
		return v, true, nil
	case decided.State != approval.Approved:
		return denies((&client.NotRunError{Opened: o, Request: decided}).Error()), false, nil
	}

	return r.take(ctx, o, decided, n)
}

// asksOrEscapes reports whether a call is a question to the user, or starts work that this hook
// doesn't see. Then only a person can allow it.
func (e *event) asksOrEscapes() bool {
	if e.call.Kind != resolve.Tool {
		return false
	}
	if slices.Contains(e.product.ownQuestions, e.call.Tool) {
		return true
	}

	// A sub-agent may be given permissions of its own, or run elsewhere.
	for _, name := range []string{"mode", "permission_mode", "permissionMode", "isolation"} {
		if jsonmsg.Get(e.call.Args, name) != nil {
			return slices.Contains([]string{"Task", "Agent", "task", "spawn_agent"}, e.call.Tool)
		}
	}

	return false
}

// undeclared reports whether the only reason for the denial is that no file declares the tool.
func undeclared(o *approval.Opened) bool {
	reasons := o.Decision.Reasons

	return o.Denied == "policy" && len(reasons) == 1 && reasons[0].Code == resolve.NotDeclared
}

// isOver reports whether a closed request can't be used for this call: it belongs to an earlier
// call, or it was closed by a change of the plan. After a change of the plan people are asked once
// more.
func (r *run) isOver(q *approval.Request, n int) bool {
	if q.State.Open() {
		return false
	}

	return r.event.id == "" || q.Cause == approval.ByPlanChange && n == 0
}

// isAnothers reports whether a request that was closed during the wait doesn't decide about this
// call: a call with the same text used the approval, or the plan changed. Every other end of the
// request applies to this call.
func (r *run) isAnothers(q *approval.Request, n int) bool {
	return r.event.id == "" && q.State == approval.Consumed || q.Cause == approval.ByPlanChange && n == 0
}

// inDirectory labels the working directory in the information for approvers.
const inDirectory = "directory"

// directory returns the working directory that approvers are shown, or an empty string if there is
// none.
func directory(shown []info.Item) string {
	for _, item := range shown {
		if item.Label == inDirectory {
			return item.Text
		}
	}

	return ""
}

// elsewhere denies a call while people are being asked about the same call in another directory,
// because the same command may do something else there.
func (r *run) elsewhere(q *approval.Request) verdict {
	return denies(fmt.Sprintf("Not run. People are asked about the same call in another directory, %q (%s). Make this "+
		"one again when that is over, or name files by absolute paths.", directory(q.Context), q.ID))
}

// says returns the information that approvers see next to the call.
func (r *run) says() []info.Item {
	items := []info.Item{{Label: "asked by", Text: r.event.product.title}}
	if r.event.cwd != "" {
		items = append(items, info.Item{Label: inDirectory, Text: r.event.cwd})
	}
	if from := r.event.from.String(); from != "" {
		items = append(items, info.Item{Label: "MCP server", Text: from})
	}
	if info.Check(items) != nil {
		return nil
	}

	return items
}

// decided waits until people have decided or the time is over. It returns the current request.
func (r *run) decided(ctx context.Context, q *approval.Request) (*approval.Request, error) {
	limit, cancel := context.WithTimeout(ctx, r.wait)
	defer cancel()
	var err error
	for q.State == approval.Pending && limit.Err() == nil {
		if err = r.desk.Wait(limit, q.ID, q.Version); err != nil && limit.Err() == nil {
			return nil, fmt.Errorf("wait for people: %w", err)
		}
		if q, err = r.desk.Request(ctx, q.ID); err != nil {
			return nil, fmt.Errorf("look at the request: %w", err)
		}
	}

	return q, nil
}

// stillAsked returns the verdict for a call that was not decided in the product's time. The request
// stays open, and a repeated call joins it.
func (r *run) stillAsked(q *approval.Request) verdict {
	if r.defers {
		return verdict{outcome: deferred, why: "people are asked: " + q.ID}
	}
	until := ""
	if !q.Deadline.IsZero() {
		until = " until " + q.Deadline.UTC().Format("2006-01-02 15:04 MST")
	}

	return denies("Not run yet. People are still asked about this call (" + q.ID + ")" + until + ". That is no denial. " +
		"Make the same call again later, with exactly the same arguments: it is not asked twice, and runs once when it " +
		"is approved.")
}

// take consumes the approval, which allows one run, and returns a verdict that runs exactly the
// approved call.
func (r *run) take(
	ctx context.Context, o *approval.Opened, decided *approval.Request, n int,
) (v verdict, over bool, err error) {
	call := r.event.call
	call.Args = decided.Current().Call.Args
	if why := r.event.takes(call.Args); why != "" {
		return r.refuse(ctx, decided, why)
	}
	// The key is used for this attempt only. A later call, even an identical one, must not count as
	// the call that consumed this approval.
	consumed, err := r.desk.Consume(ctx, decided.ID, approval.NewKey(), &call)
	switch {
	case err == nil && consumed.State == approval.Consumed:
		return allows(consumed.Current().Call.Args), false, nil
	case err == nil:
		return v, false, fmt.Errorf("take the run: an answer that makes no sense: the request is %s", consumed.State)
	case errors.Is(err, approval.ErrStale) && n == 0:
		return v, true, nil
	}

	return r.notTaken(ctx, o, decided, err)
}

// notTaken returns the verdict for an approved call whose approval could not be consumed.
func (r *run) notTaken(
	ctx context.Context, o *approval.Opened, was *approval.Request, cause error,
) (v verdict, over bool, err error) {
	now, err := r.desk.Request(ctx, was.ID)
	if err != nil || now.State.Open() || now.State == approval.Approved {
		return v, false, fmt.Errorf("take the run: %w", cause)
	}
	if now.State == approval.Consumed && r.event.id == "" {
		return v, true, nil
	}

	return denies((&client.NotRunError{Opened: o, Request: now}).Error()), false, nil
}

// refuse cancels a request that was approved with arguments that the product can't run.
func (r *run) refuse(ctx context.Context, q *approval.Request, why string) (verdict, bool, error) {
	if err := r.desk.Cancel(ctx, q.ID, why); err != nil {
		return verdict{}, false, fmt.Errorf("take back what can't run as it was approved: %w", err)
	}
	edit := string(q.Current().Call.Args)
	if len(edit) > mostWhy/2 {
		edit = "too long to be shown here"
	}

	return denies("Not run. It was approved with other arguments, and " + why + ". Make a new call with what was " +
		"approved: " + strings.TrimSpace(edit)), false, nil
}
