package notify

import (
	"encoding/json"
	"errors"
	"fmt"
	"net/url"
	"slices"
	"strings"
	"time"

	"github.com/assent-dev/assent/approval"
	"github.com/assent-dev/assent/internal/safetext"
	"github.com/assent-dev/assent/policy"
)

// Route sends events about requests to one target. Except for Events, an empty list doesn't
// filter.
type Route struct {
	Target  string   // name of a target: "slack:TENANT" or "webhook:TENANT/NAME"
	Events  []string `doc:"events"` // types of ledger entries, with * as a glob; by default those of DefaultEvents
	Tenants []string // tenants of the requests
	Agents  []string `doc:"agents"` // ids, with * as a glob
	Groups  []string `doc:"groups"` // requests that one of these groups may answer
}

// Events lists the types of ledger entries that are about a request, which a route can name.
func Events() []string {
	return []string{
		approval.EventOpened,
		approval.EventShared,
		approval.EventVote,
		approval.EventVoteRefused,
		approval.EventVoteLate,
		approval.EventEdited,
		approval.EventEditRefused,
		approval.EventApproved,
		approval.EventRequestDenied,
		approval.EventAnswered,
		approval.EventExpired,
		approval.EventCancelled,
		approval.EventReminded,
		approval.EventEscalated,
		approval.EventConsumed,
		approval.EventPermitExpired,
		approval.EventConsumeRefused,
	}
}

// DefaultEvents lists the events after which a person may have to act, or no longer has to.
func DefaultEvents() []string {
	return []string{
		approval.EventOpened,
		approval.EventVote,
		approval.EventEdited,
		approval.EventApproved,
		approval.EventRequestDenied,
		approval.EventAnswered,
		approval.EventExpired,
		approval.EventCancelled,
		approval.EventReminded,
		approval.EventEscalated,
		approval.EventConsumed,
		approval.EventPermitExpired,
	}
}

// Router turns events into deliveries.
type Router struct {
	routes []Route
	link   *url.URL
	now    func() time.Time
}

// NewRouter checks the routes against the names of the targets. base is the public address of
// the inbox, for links, and now is the clock.
func NewRouter(routes []Route, targets []string, base string, now func() time.Time) (*Router, error) {
	link, err := url.Parse(base)
	if err != nil || link.Host == "" || link.Scheme != "https" && link.Scheme != "http" {
		return nil, errors.New("notify: expected the inbox's public address as an http(s) URL")
	}
	for i, r := range routes {
		if !slices.Contains(targets, r.Target) {
			return nil, fmt.Errorf(
				"notify: route %d: no target is named %q, expected one of %s",
				i+1,
				r.Target,
				strings.Join(targets, ", "),
			)
		}

		for _, pattern := range r.Events {
			if !slices.ContainsFunc(Events(), func(e string) bool { return policy.Glob(pattern, e) }) {
				return nil, fmt.Errorf(
					"notify: route %d: no event about a request is named %q, expected some of %s",
					i+1,
					pattern,
					strings.Join(Events(), ", "),
				)
			}
		}
	}

	return &Router{routes: slices.Clone(routes), link: link, now: now}, nil
}

// Deliveries returns the deliveries for an event about a request, at most one for each target.
// It is used as approval.Config.Route. It has no side effects, so a transaction may call it
// again.
func (r *Router) Deliveries(event string, q *approval.Request) []approval.Delivery {
	if q == nil {
		return nil
	}
	var out []approval.Delivery
	var payload string
	for _, route := range r.routes {
		if !route.wants(event, q) || slices.ContainsFunc(out, func(d approval.Delivery) bool {
			return d.Target == route.Target
		}) {
			continue
		}
		if payload == "" {
			payload = r.payload(event, q)
		}
		out = append(out, approval.Delivery{
			Target:  route.Target,
			Event:   event,
			Subject: q.ID,
			Payload: payload,
		})
	}

	return out
}

func (r Route) wants(event string, q *approval.Request) bool {
	events := r.Events
	if len(events) == 0 {
		events = DefaultEvents()
	}
	return matches(events, event) && (len(r.Tenants) == 0 || slices.Contains(r.Tenants, q.Tenant)) &&
		(len(r.Agents) == 0 || matches(r.Agents, q.Agent.ID)) &&
		(len(r.Groups) == 0 || slices.ContainsFunc(Groups(q), func(g string) bool {
			return slices.Contains(r.Groups, g)
		}))
}

// SignIn returns the delivery about a sign-in that an agent's tool asks for. It only contains
// the id, so other people can't read details. ok is false if the route only covers other
// agents.
func (r Route) SignIn(event, agent, id string) (d approval.Delivery, ok bool) {
	if len(r.Agents) > 0 && !matches(r.Agents, agent) {
		return d, false
	}

	return approval.Delivery{Target: r.Target, Event: event, Subject: id, Payload: "{}"}, true
}

func matches(patterns []string, s string) bool {
	return slices.ContainsFunc(patterns, func(p string) bool { return policy.Glob(p, s) })
}

// Groups lists the groups that may answer a request, with those added by escalation last. An
// empty name means every approver.
func Groups(q *approval.Request) []string {
	var all, out []string
	for _, s := range q.Stages {
		all = append(all, s.Group)
	}
	for _, alternatives := range q.AnyOf {
		for _, s := range slices.Concat(alternatives...) {
			all = append(all, s.Group)
		}
	}
	for _, g := range append(all, q.Called...) {
		if !slices.Contains(out, g) {
			out = append(out, g)
		}
	}
	if len(out) == 0 {
		out = []string{""}
	}
	return out
}

// Payload is the body of a webhook (docs/contracts/webhook.md), in the format that Standard
// Webhooks recommends. It contains neither arguments nor anything derived from them, and no
// text that a person wrote. Fields may be added, but a field never changes its meaning.
type Payload struct {
	Type      string    `json:"type"`      // the event
	Timestamp time.Time `json:"timestamp"` // when it happened
	Data      Data      `json:"data"`
}

// Data describes a request right after the event.
type Data struct {
	Tenant  string `json:"tenant"`
	Request string `json:"request"` // id
	// Version never decreases from one event of a request to the next. Events of the same step
	// share it.
	Version   int64          `json:"version"`
	Agent     string         `json:"agent"`
	Target    string         `json:"target"` // "mcp_tool broker/sell"
	Principal string         `json:"principal,omitempty"`
	State     approval.State `json:"state"`
	Cause     approval.Cause `json:"cause,omitempty"`
	By        string         `json:"by,omitempty"` // who caused the state
	Revision  int            `json:"revision"`
	Binding   string         `json:"binding"`
	Groups    []string       `json:"groups"` // groups that may answer; an empty name means every approver
	Created   time.Time      `json:"created"`
	Deadline  time.Time      `json:"deadline"`
	Message   string         `json:"message"` // one sentence, made from the fields above
	Link      string         `json:"link"`    // page of the request; opening it decides nothing
	// Question is set if a tool or an agent asks a question. Neither its text nor the answer is
	// included.
	Question bool `json:"question,omitempty"`
	// Context is the number of context items from the agent. The items are not included.
	Context int `json:"context,omitempty"`
}

func (r *Router) payload(event string, q *approval.Request) string {
	call := q.Current().Call
	p := Payload{
		Type:      event,
		Timestamp: r.now().UTC(),
		Data: Data{
			Tenant:    q.Tenant,
			Request:   q.ID,
			Version:   q.Version,
			Agent:     q.Agent.ID,
			Target:    call.Target(),
			Principal: q.Requester.Principal,
			State:     q.State,
			Cause:     q.Cause,
			By:        q.By,
			Revision:  q.Current().Number,
			Binding:   q.Binding(),
			Groups:    Groups(q),
			Created:   q.Created.UTC(),
			Deadline:  q.Deadline.UTC(),
			Message:   sentence(q),
			Link:      Link(r.link, q.ID),
			Question:  q.Question != nil,
			Context:   len(q.Context),
		},
	}
	text, err := json.Marshal(p)
	if err != nil {
		// Can't happen: texts, numbers and times between the years 0 and 9999 can always be
		// encoded.
		return fmt.Sprintf(`{"type":%q,"data":{"request":%q}}`, event, q.ID)
	}
	return string(text)
}

// sentence describes the state of a request, without its arguments.
func sentence(q *approval.Request) string {
	call := q.Current().Call
	what := "agent " + safetext.Line(q.Agent.ID) + ", " + safetext.Line(call.Target())
	if q.Question != nil {
		return questioned(q, what)
	}

	switch q.State {
	case approval.Pending:
		return what + ": waits for people to decide" + calledIn(q)
	case approval.Approved:
		return what + ": approved, not run yet"
	case approval.Consumed:
		return what + ": approved and run"
	}

	return what + ": " + string(q.State)
}

// questioned describes the state of a question.
func questioned(q *approval.Request, what string) string {
	who := "the tool"
	if q.Current().Call.Kind == "" {
		who = "the agent"
	}
	switch {
	case q.State != approval.Pending:
		return what + ": " + who + "'s question is " + string(q.State)
	case q.Question.Form() != nil:
		return what + ": " + who + " waits for somebody to answer"
	}

	return what + ": " + who + " waits for somebody to choose"
}

// calledIn describes the people that escalation has added, and what they may do. It is empty if
// there are none.
func calledIn(q *approval.Request) string {
	var words strings.Builder
	for _, c := range q.CallsIn() {
		if c.At.IsZero() {
			words.WriteString("; " + safetext.Line(c.String()))
		}
	}

	return words.String()
}

// Link returns the address of a request's page in the inbox at base.
func Link(base *url.URL, id string) string {
	page := base.JoinPath("requests", id)
	page.RawQuery, page.Fragment = "", ""
	return page.String()
}
