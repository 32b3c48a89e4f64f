package gateway

import (
	"encoding/json"
	"fmt"
	"strings"
	"time"

	"github.com/assent-dev/assent/internal/durable"
	"github.com/assent-dev/assent/internal/safetext"
	"github.com/assent-dev/assent/policy"
	"github.com/assent-dev/assent/rap/internal/names"
	"github.com/assent-dev/assent/rap/wire"
)

// Limits of what is shown of a call, in bytes.
const (
	maxArguments = 4000
	maxLabel     = 300
	maxMessage   = 4000
)

// await adds the question of a call: what would run, and for how long it would be allowed. The
// denial is last and the default. The question is posted once it is stored.
func (d *decider) await(r *record, j *judgment) {
	c := &r.Part
	q := &question{Session: -1}
	view := show(r, j)
	within := lowerOf(d.cfg.Within, j.Require)
	choices := []string{"Allow once: " + c.Operation + " " + view.brief}
	if uses, life := d.offer(j.Require); uses > 1 && !view.cut && !c.Stray {
		q.Session = len(choices)
		q.Uses = uses
		q.For = life
		bounds := fmt.Sprintf("(at most %s, for at most %s)", times(uses), policy.FormatDuration(life))
		choices = append(choices, "Allow "+c.Operation+" with any arguments for this session "+bounds)
	}

	choices = append(choices, "Deny")

	prompt := view.prompt(d.cfg.Name, c.Operation) + "\nExpires in " + policy.FormatDuration(within) + "."
	d.pose(r, q, within, &wire.Choice{Prompt: prompt, Choices: choices, Default: len(choices) - 1})
	r.Deadline = q.Until
	r.Message = &durable.Attempt{}
}

// pose makes q the question of a call and creates the token for its answer.
func (d *decider) pose(r *record, q *question, within time.Duration, message *wire.Choice) {
	c := &r.Part
	token, alias := names.NewToken()
	message.GroupID = c.Thread
	message.ID = c.ID
	message.CallID = c.CallID
	message.ResponseURL = d.url + "/answer/" + token

	q.Choices = len(message.Choices)
	q.Body = message.Append(nil)
	q.Within = within
	q.Until = d.now().Add(within)
	c.Question = q
	r.Alias = alias
}

// offer returns the limits of the session grant that the user may give. uses is 0 if the rules
// or the configuration permit none.
func (d *decider) offer(r *policy.Require) (uses int, life time.Duration) {
	if !d.cfg.Grants.Offer {
		return 0, 0
	}
	return d.bounds(r)
}

// lowerOf returns how long a question may stay open.
func lowerOf(within time.Duration, r *policy.Require) time.Duration {
	if r != nil && r.Within > 0 {
		return min(within, r.Within)
	}
	return within
}

// view holds the texts that people see of a call.
type view struct {
	arguments string
	label     string // empty if there is none
	brief     string // the label, or else the arguments, for the text of a choice
	message   string // of the rules
	cut       bool   // part of the call is not shown
}

func show(r *record, j *judgment) view {
	if j.Require != nil && len(j.Require.Arguments.Redact) > 0 {
		return view{
			arguments: "(hidden by the rules)",
			brief:     "(arguments hidden by the rules)",
			cut:       true,
		}
	}

	v := view{message: j.Message}
	whole := isolated(compact(r.Args()))
	v.arguments, v.cut = cutText(whole, maxArguments)
	v.brief, _ = cutText(whole, maxLabel)
	if label := labelOf(j.op, r.Args()); label != "" {
		v.label, _ = cutText(safetext.Line(label), maxLabel)
		v.brief = v.label
	}
	return v
}

// labelOf returns the operation's label for a call, or an empty string if it has none or
// panics.
func labelOf(op *operation, args json.RawMessage) (label string) {
	defer func() {
		if recover() != nil {
			label = ""
		}
	}()
	if op.Label == nil {
		return ""
	}
	return op.Label(args)
}

// prompt returns the text of the question. Our own facts come first. Text from the call is on
// lines of its own and can't start another line.
func (v view) prompt(name, operation string) string {
	var b strings.Builder
	fmt.Fprintf(&b, "%s asks: may this call run?\nOperation: %s\n", safetext.Line(name), operation)
	if v.label != "" {
		fmt.Fprintf(&b, "In short: %s\n", v.label)
	}
	fmt.Fprintf(&b, "Arguments: %s", v.arguments)
	if v.message != "" {
		rules, _ := cutText(v.message, maxMessage)
		fmt.Fprintf(&b, "\nThe rules say: %s", strings.ReplaceAll(rules, "\n", "\n  "))
	}
	return b.String()
}

// compact removes the white space between JSON tokens.
func compact(args []byte) string {
	var b strings.Builder
	quoted, escaped := false, false
	for _, ch := range args {
		switch {
		case quoted:
			quoted, escaped = escaped || ch != '"', !escaped && ch == '\\'
		case ch == ' ' || ch == '\t' || ch == '\n' || ch == '\r':
			continue
		default:
			quoted = ch == '"'
		}

		b.WriteByte(ch)
	}

	return b.String()
}

// isolated escapes JSON to be shown on one line. Strings with right-to-left characters are
// wrapped in Unicode isolates, so that they can't change the order of the surrounding text.
func isolated(text string) string {
	if !strings.ContainsFunc(text, safetext.RightToLeft) {
		return safetext.Escape(text)
	}
	var b strings.Builder
	for len(text) > 0 {
		at := stringIn(text)
		b.WriteString(safetext.Line(text[:at]))
		text = text[at:]
	}
	return b.String()
}

// stringIn returns the end of the string at the start of a JSON text, or the start of the next
// string.
func stringIn(text string) int {
	if text[0] != '"' {
		if at := strings.IndexByte(text, '"'); at > 0 {
			return at
		}
		return len(text)
	}

	for i := 1; i < len(text); i++ {
		switch text[i] {
		case '\\':
			i++
		case '"':
			return i + 1
		}
	}

	return len(text)
}

// cutText shortens a text that is too long, adds a note, and reports whether it did.
func cutText(text string, most int) (string, bool) {
	if len(text) <= most {
		return text, false
	}
	at := most
	for at > 0 && text[at]&0xc0 == 0x80 {
		at--
	}
	closing := ""
	if strings.Count(text[:at], "\u2068") > strings.Count(text[:at], "\u2069") {
		closing = "\u2069"
	}
	return fmt.Sprintf("%s%s… (cut: %d of %d bytes are shown)", text[:at], closing, at, len(text)), true
}

func times(n int) string {
	if n == 1 {
		return "once"
	}
	return fmt.Sprintf("%d times", n)
}
