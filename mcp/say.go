package mcp

import (
	"context"
	"encoding/json"
	"errors"
	"fmt"
	"strings"
	"time"

	"github.com/assent-dev/assent/approval"
	"github.com/assent-dev/assent/internal/durable"
	"github.com/assent-dev/assent/internal/jsonmsg"
	"github.com/assent-dev/assent/mcp/server"
	"github.com/assent-dev/assent/mcp/wire"
)

// Texts for agents begin with "Not run.", "Not run yet." or "This call may have run", or are the
// tool's result.

// keyApproval is the key of _meta that has the same facts for programs.
const keyApproval = "dev.assent/approval"

// retryAfter is the time after which an agent should make a pending call again.
const retryAfter = 30 * time.Second

// notRun returns the answer to a call that certainly did not run.
func notRun(why string) *wire.Said {
	return &wire.Said{Text: "Not run. " + sentence(why), IsError: true}
}

// denied returns the answer to a call that the rules deny.
func denied(why string) *wire.Said {
	text := "Not run. Policy denies this call" + because(why) + " Do not try it again."
	return &wire.Said{Text: text, IsError: true}
}

// sentence ends a text with one full stop.
func sentence(text string) string { return strings.TrimRight(text, ". ") + "." }

// because returns a reason to append to a sentence.
func because(why string) string {
	if why == "" {
		return "."
	}
	return ": " + sentence(why)
}

// outcome returns the caller's answer for a call that asked and has ended.
func (w *waiting) outcome(ctx context.Context, r *server.Request, c *record) (json.RawMessage, *wire.Error) {
	first, err := w.tell(ctx, c.Key)
	switch {
	case err != nil:
		return w.say(r, mayHaveRun(c, "Its result can't be read now"))
	case !first:
		return w.say(r, notRun("Not again: the approval has been used already"))
	case c.Ending.Why != durable.Returned:
		return w.say(r, w.endText(c))
	case c.Part.Failed != nil:
		return nil, c.Part.Failed.error()
	case w.now().After(c.EndedAt.Add(w.cfg.Keep)):
		return w.say(r, mayHaveRun(c, "It ran, and its result is not kept any more"))
	}

	return resultOf(c, r.Modern), nil
}

// resultOf returns the server's result of a call, with a line about an
// approver's edit.
func resultOf(c *record, modern bool) json.RawMessage {
	result := wire.ForClient(c.Part.Result, modern)
	if c.Approval == nil || !c.Approval.Edited {
		return result
	}
	return wire.WithText(result, approval.EditNote(c.Args()))
}

// error returns the fault as a protocol error for a client.
func (f *fault) error() *wire.Error {
	return &wire.Error{Code: f.Code, Message: f.Message, Data: f.Data}
}

// tell records that a caller is informed how a call ended. It reports whether this is the first
// time.
func (w *waiting) tell(ctx context.Context, key string) (first bool, err error) {
	_, err = w.keeper.engine.Change(context.WithoutCancel(ctx), key, func(c *record) error {
		if c.Part.Told {
			return durable.ErrUnchanged
		}
		c.Part.Told = true
		return nil
	})
	if errors.Is(err, durable.ErrUnchanged) {
		return false, nil
	}
	return err == nil, err
}

// pendingText asks the agent to make the same call again.
func (w *waiting) pendingText(c *record) *wire.Said {
	waits := "This call waits for people to decide"
	if isGranted(c) {
		waits = "This call was approved"
	}
	if c.Part.Trouble != "" {
		waits += ", and could not be made: " + strings.TrimRight(c.Part.Trouble, ".")
	}
	text := fmt.Sprintf("Not run yet. %s%s. To go on, make the same call again with exactly the same arguments, "+
		"not sooner than in %d seconds; it runs once when it is approved. Do not change the arguments and do not "+
		"try another way.%s", waits, w.where(c), int(retryAfter.Seconds()), earlier(c))
	return &wire.Said{Text: text, IsError: true, Meta: w.meta(c, "pending")}
}

// earlier returns a note that the same call ran before, so that a caller that lost the earlier
// result doesn't take this one for it.
func earlier(c *record) string {
	if c.Part.Earlier.IsZero() {
		return ""
	}
	return " This is another call than the same one before, which ran, or may have run, and ended at " +
		c.Part.Earlier.UTC().Format("2006-01-02 15:04:05 MST") + "."
}

// where returns the reference of the request and the time until which people may answer it.
func (w *waiting) where(c *record) string {
	var parts []string
	if c.Part.Ref != "" {
		parts = append(parts, c.Part.Ref)
	}
	if !c.Part.Until.IsZero() {
		parts = append(parts, "until "+c.Part.Until.UTC().Format("2006-01-02 15:04 MST"))
	}
	return inBrackets(strings.Join(parts, ", "))
}

// meta returns the facts of the text in a form for programs.
func (w *waiting) meta(c *record, state string) json.RawMessage {
	text, err := jsonmsg.Object(func(w *jsonmsg.Writer) {
		w.Name(keyApproval).Object(func(w *jsonmsg.Writer) {
			w.Optional("id", c.Part.Ref)
			w.Member("state", state)
			if !c.Part.Until.IsZero() {
				w.Member("deadline", c.Part.Until.UTC().Format(time.RFC3339))
			}
			if state == "pending" {
				w.Name("retry_after_ms").Int(retryAfter.Milliseconds())
			}
			if state != "unknown" {
				w.Name("executed").Bool(false)
			}
		})
	})
	if err != nil {
		return nil
	}
	return text
}

// endText returns the reason why a call did not run, or a warning that it may have run.
func (w *waiting) endText(c *record) *wire.Said {
	if c.Ending.Why == durable.Unknown {
		return mayHaveRun(c, c.Ending.Reason)
	}
	return &wire.Said{
		Text:    notRunText(c),
		IsError: true,
		Meta:    w.meta(c, string(c.Ending.Why)),
	}
}

// notRunText returns the reason why a call did not run, in the words that callers of the HTTP API
// get for the same ending.
func notRunText(c *record) string {
	why := c.Ending.Reason
	switch c.Ending.Why {
	case durable.Denied:
		return "Not run. " + orSomebody(c.Ending.By) + " denied this call" + because(why) + " Do not try it again."
	case durable.Interrupted:
		return "Not run. The task was cancelled."
	case declined:
		return "Not run. It was declined in the client. It may be asked again."
	case durable.Responded:
		return "Not run. A person answered instead: " + why
	case durable.Expired:
		return "Not run. Nobody decided about this call in time" + because(why) + " That is no denial."
	case durable.Withdrawn:
		return "Not run. The request was taken back" + because(why)
	case durable.Late:
		return "Not run. It was approved, and nobody made the call again in time. That is no denial."
	case durable.NotClaimed:
		return "Not run. The approval can't be used" + because(why) + " That is no denial. It may be asked again."
	case durable.Unreachable:
		return "Not run. The people who decide can't be reached. Call again later."
	case durable.Forgotten:
		return "Not run. The request is not known any more. It may be asked again."
	}

	return "Not run. " + sentence(why) + " It may be asked again."
}

// orSomebody returns the person's name, or "Somebody" if it is unknown.
func orSomebody(person string) string {
	if person == "" {
		return "Somebody"
	}
	return person
}

// mayHaveRun returns the answer to a call whose outcome is unknown.
func mayHaveRun(c *record, why string) *wire.Said {
	text := "This call may have run" + inBrackets(c.Part.Ref) + because(why) + " Check before calling again."
	return &wire.Said{Text: text, IsError: true}
}
