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

// run is the way of one call of the hook.
type run struct {
	desk  Desk
	event *event
	// wait is how long people have.
	wait time.Duration
	// native: the product goes by its own rules for tools that no file
	// names.
	native bool
	// defers: what is still asked may be put off until the product is
	// resumed.
	defers bool
	// insists is why people are asked also where the rules allow the call;
	// "" if they need not be.
	insists string
}

// mostSame is how often a session may have people asked about one call,
// where the product doesn't tell its calls apart.
const mostSame = 500

// present puts the call to the rules, and to people where they have to
// be asked. A key whose request has come to an end stands for an
// earlier call of the same text, where the product tells them apart by
// nothing else; then the next key is this call's.
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

// key stands for the call wherever it comes again: its id in the
// session, or its text and how often it was seen.
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

// family keeps the keys of dialogs apart: a product that runs both
// hooks for one call has it approved twice.
func (m moment) family() string {
	if m == dialog {
		return "dialog"
	}

	return "call"
}

// attempt presents the call under a key. It is over when that key is an
// earlier call's.
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

// asksOrEscapes reports whether a call is itself a question to the user,
// or starts something that this hook does not see: then only a person
// can let it run.
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

// undeclared reports whether a call is denied because no file names its
// tool, and for nothing else.
func undeclared(o *approval.Opened) bool {
	reasons := o.Decision.Reasons

	return o.Denied == "policy" && len(reasons) == 1 && reasons[0].Code == resolve.NotDeclared
}

// isOver reports whether a request is an earlier call's, or has lost
// its ground: then people are asked anew, once.
func (r *run) isOver(q *approval.Request, n int) bool {
	if q.State.Open() {
		return false
	}

	return r.event.id == "" || q.Cause == approval.ByPlanChange && n == 0
}

// isAnothers reports whether a request that came to an end while this
// call waited ended for another one: its run was taken by a call of the
// same text, or it has lost its ground. Every other end is this call's.
func (r *run) isAnothers(q *approval.Request, n int) bool {
	return r.event.id == "" && q.State == approval.Consumed || q.Cause == approval.ByPlanChange && n == 0
}

// inDirectory is the label of the directory that people are shown.
const inDirectory = "directory"

// directory is what people are shown of it; "" for nothing.
func directory(shown []info.Item) string {
	for _, item := range shown {
		if item.Label == inDirectory {
			return item.Text
		}
	}

	return ""
}

// elsewhere is for a call about which people are asked in another
// directory: the same words may do something else there.
func (r *run) elsewhere(q *approval.Request) verdict {
	return denies(fmt.Sprintf("Not run. People are asked about the same call in another directory, %q (%s). Make this "+
		"one again when that is over, or name files by absolute paths.", directory(q.Context), q.ID))
}

// says is what the people who are asked are told beside the call.
func (r *run) says() []info.Item {
	items := []info.Item{{Label: "asked by", Text: r.event.product.title}}
	if r.event.cwd != "" {
		items = append(items, info.Item{Label: inDirectory, Text: r.event.cwd})
	}
	if info.Check(items) != nil {
		return nil
	}

	return items
}

// decided waits until people have decided, or their time is over.
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

// stillAsked is for a call that nobody has decided about in the
// product's time. What was asked stays open, and is joined when the
// same call is made again.
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

// take takes the one run of an approved call, and has the product run
// exactly what was approved.
func (r *run) take(
	ctx context.Context, o *approval.Opened, decided *approval.Request, n int,
) (v verdict, over bool, err error) {
	call := r.event.call
	call.Args = decided.Current().Call.Args
	if why := r.event.takes(call.Args); why != "" {
		return r.refuse(ctx, decided, why)
	}
	// A key of this attempt's own: whoever comes later, and be it the
	// same call, has not taken this run.
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

// notTaken says why an approved call can't run after all.
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

// refuse takes back what was approved in a form that the product can't
// run.
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
