package approval

import (
	"bufio"
	"crypto/sha256"
	"encoding/hex"
	"fmt"
	"slices"
	"strconv"
	"strings"
	"time"
	"unicode/utf8"

	"github.com/assent-dev/assent/policy"
	"github.com/assent-dev/assent/policy/people"
	"github.com/assent-dev/assent/resolve"
)

func stamp(t time.Time) string { return t.UTC().Format("2006-01-02T15:04:05.000000Z") }

// facts returns the facts of a list of values. It never returns nil.
func facts[T any](of []T, fact func(T) any) []any {
	out := make([]any, len(of))
	for i, x := range of {
		out[i] = fact(x)
	}
	return out
}

func list(texts []string) []any { return facts(texts, func(t string) any { return t }) }

// stageFacts returns the stages as facts. The time of a stand-in is in milliseconds after the
// request was opened.
func stageFacts(stages []policy.Stage) []any {
	return facts(stages, func(s policy.Stage) any {
		f := map[string]any{"group": s.Group, "people": s.People}
		if len(s.StandIns) > 0 {
			f["stand_ins"] = facts(s.StandIns, func(s policy.StandIn) any {
				return map[string]any{"group": s.Group, "after_ms": s.After.Milliseconds()}
			})
		}
		return f
	})
}

// alternatives adds the alternatives and the required reason to the facts of a request that has
// them.
func (r *Request) alternatives(to map[string]any) {
	if len(r.AnyOf) > 0 {
		to["any_of"] = anyOfFacts(r.AnyOf)
	}
	if !r.NeedsReason.IsZero() {
		to["needs_reason"] = list(append([]string{wordReason}, r.NeedsReason.Patterns...))
	}
}

// wordReason is the first word of the fact needs_reason; the patterns follow it.
const wordReason = "required"

func anyOfFacts(anyOf []policy.AnyOf) []any {
	return facts(anyOf, func(alternatives policy.AnyOf) any {
		return facts(alternatives, func(stages []policy.Stage) any { return stageFacts(stages) })
	})
}

// countedFacts returns the people whose approvals counted, each with those of their groups at that
// time that the stages ask for.
func (r *Request) countedFacts(approvers []Person, now time.Time) []any {
	asked := people.GroupsOf(slices.Concat(r.OptionsAt(now)...))
	return facts(approvers, func(p Person) any {
		groups := slices.DeleteFunc(slices.Clone(asked), func(g string) bool { return !p.Holds(g) })
		return map[string]any{"person": p.ID, "groups": list(groups)}
	})
}

// ruleFacts returns the rules that asked, with their positions.
func ruleFacts(rev *Revision) []any {
	return facts(rev.Decision.Reasons, func(x resolve.Reason) any {
		f := map[string]any{"source": string(x.Source), "code": string(x.Code)}
		for k, v := range map[string]string{
			"policy": x.Policy,
			"rule":   x.Rule,
			"file":   x.File,
		} {
			if v != "" {
				f[k] = v
			}
		}

		if x.Line > 0 {
			f["line"] = x.Line
		}
		return f
	})
}

// rulesDigest returns a digest that is equal for two requests if the same agent asks for the same
// target because of the same rules.
func (r *Request) rulesDigest() string {
	if r.Question != nil { // questions are never answered together
		return digestOf("question", r.Binding())[:24]
	}
	parts := []string{r.Agent.ID, r.Current().Call.Target(), r.Current().Plan}
	for _, x := range r.Current().Decision.Reasons {
		parts = append(parts, string(x.Source), x.Policy, x.Rule, string(x.Code))
	}
	for _, s := range r.Stages {
		parts = append(parts, s.Group, strconv.Itoa(s.People))
	}
	if len(r.AnyOf)+len(r.NeedsReason.Patterns) > 0 {
		parts = append(parts, "any of", fmt.Sprint(r.AnyOf, r.NeedsReason))
	}
	return digestOf(parts...)[:24]
}

// Summarize returns the summary of a request for lists.
func Summarize(r *Request) Summary {
	s := Summary{
		ID:        r.ID,
		Version:   r.Version,
		State:     r.State,
		Cause:     r.Cause,
		Agent:     r.Agent.ID,
		Target:    r.Current().Call.Target(),
		Principal: r.Requester.Principal,
		Message:   firstRunes(r.Current().Decision.Message, 200),
		Rules:     r.rulesDigest(),
		Groups:    slices.Clone(r.Called),
		Approvals: len(r.voters(Approve)),
		Created:   r.Created,
		Deadline:  r.Deadline,
		Answering: r.answering(),
	}
	if len(r.Redact) > 0 {
		s.Message = "" // the message could repeat hidden values
	}
	if r.Question != nil {
		s.Question, s.Message = true, r.Question.Words()
	}
	s.Needed = r.seats()
	for _, stage := range r.allStages() {
		if !slices.Contains(s.Groups, stage.Group) {
			s.Groups = append(s.Groups, stage.Group)
		}
	}

	if r.Question != nil {
		s.Needed = 1 // one answer from any group is enough
	}
	return s
}

// allStages returns the stages, and those of all alternatives.
func (r *Request) allStages() []policy.Stage {
	out := slices.Clone(r.Stages)
	for _, alternatives := range r.AnyOf {
		out = append(out, slices.Concat(alternatives...)...)
	}

	return out
}

// seats returns the smallest number of people who can approve the request.
func (r *Request) seats() int {
	options, _ := policy.Options(r.Stages, r.AnyOf)
	least := 0
	for i, stages := range options {
		n := 0
		for _, s := range stages {
			n += s.People
		}
		if i == 0 || n < least {
			least = n
		}
	}

	return least
}

// firstRunes truncates a text to n characters and marks the cut with an ellipsis.
func firstRunes(text string, n int) string {
	if utf8.RuneCountInString(text) <= n {
		return text
	}
	cut := 0
	for range n - 1 {
		_, size := utf8.DecodeRuneInString(text[cut:])
		cut += size
	}
	return text[:cut] + "…"
}

// sees reports whether the digest that a person saw is the binding, either in full or as a prefix
// of at least 12 hex digits.
func sees(seen, binding string) bool {
	const scheme, least = "sha256:", 12
	seen = strings.TrimPrefix(seen, scheme)
	return len(seen) >= least && strings.HasPrefix(strings.TrimPrefix(binding, scheme), seen)
}

// require returns the requirement of a decision; it is empty if there is none.
func require(d *resolve.Decision) policy.Require {
	if d.Require == nil {
		return policy.Require{}
	}
	return *d.Require
}

// safeText returns the text with invalid UTF-8 replaced by U+FFFD, because the ledger only stores
// valid UTF-8.
func safeText(text string) string { return strings.ToValidUTF8(text, "\uFFFD") }

func digestOf(parts ...string) string {
	h := sha256.New()
	w := bufio.NewWriter(h) // copies a long text in pieces; a hash reports no errors
	for _, p := range parts {
		fmt.Fprintf(w, "%d:", len(p))
		w.WriteString(p)
	}
	w.Flush()
	return hex.EncodeToString(h.Sum(nil))
}
