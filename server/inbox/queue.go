package inbox

import (
	"encoding/json"
	"errors"
	"net/url"
	"slices"
	"strings"

	"github.com/assent-dev/assent/approval"
)

// pageSize is how many cards a page of the queue has; each is read whole, for its stages and hints.
const pageSize = 25

// queuePage is the list of requests.
type queuePage struct {
	Tab       string // mine, others, open or decided
	Agent     string
	Target    string
	Principal string
	Cards     []card
	Total     int
	AtLeast   bool   // Total is no more than what was counted
	Next      string // address of the next page
	Here      string // address of the list without the page around it
}

// Filtered reports whether the list is narrowed.
func (q queuePage) Filtered() bool { return q.Agent+q.Target+q.Principal != "" }

// Batch reports whether some of what is listed can be answered together: questions can't.
func (q queuePage) Batch() bool {
	return q.Tab == "mine" && slices.ContainsFunc(q.Cards, card.Batchable)
}

// Tabs are the lists with their addresses.
func (q queuePage) Tabs() []struct{ Name, Words, Href string } {
	out := []struct{ Name, Words, Href string }{
		{"mine", "Waiting for me", ""}, {"others", "I answered, others must", ""}, {"open", "All open", ""}, {"decided", "Decided", ""},
	}
	for i := range out {
		out[i].Href = q.address("/", out[i].Name, "")
	}
	return out
}

func (q queuePage) address(path, tab, cursor string) string {
	u := url.Values{}
	for k, v := range map[string]string{"tab": tab, "agent": q.Agent, "target": q.Target, "principal": q.Principal, "cursor": cursor} {
		if v != "" && (k != "tab" || v != "mine") {
			u.Set(k, v)
		}
	}
	if len(u) == 0 {
		return path
	}
	return path + "?" + u.Encode()
}

// title tells how many wait, where that is what is listed.
func (q queuePage) title() string {
	more := ""
	if q.AtLeast {
		more = "+"
	}
	if q.Tab != "mine" || q.Total == 0 || q.Filtered() {
		return "Queue"
	}

	return "(" + count(q.Total) + more + ") Queue"
}

func (v *visit) queue() error {
	q, err := v.readQueue()
	if err != nil {
		return err
	}
	return v.show("queue", q.title(), "queue", q)
}

// queueFragment is the list alone, for the script to put in place.
func (v *visit) queueFragment() error {
	q, err := v.readQueue()
	if err != nil {
		return err
	}
	p := v.base(q.title(), "queue")
	p.Data = q
	v.write(200, "queue", "list", p)
	return nil
}

// total is how many requests a list has on all of its pages. more says that there are more than were counted: what waits for a person is counted
// one by one.
func (v *visit) total(tab string, f approval.Filter, first approval.Page) (n int, more bool, err error) {
	if tab != "mine" && tab != "others" {
		return first.Total, false, nil
	}
	if f.Cursor == "" && first.Next == "" {
		return len(first.Requests), false, nil
	}
	f.Cursor, f.Limit = "", mostCounted
	all, err := v.listed(tab, f)

	return len(all.Requests), all.Next != "", err
}

// mostCounted is how many requests that wait for a person are counted.
const mostCounted = 200

// waiting tells how many requests wait for the visitor, for the titles of their pages, and nothing of what they say.
func (v *visit) waiting() error {
	list, err := v.listed("mine", approval.Filter{Limit: mostCounted})
	if err != nil {
		return err
	}
	h := v.w.Header()
	h.Set("Content-Type", "application/json")
	h.Set("Cache-Control", "no-store")

	return json.NewEncoder(v.w).Encode(map[string]any{"total": len(list.Requests), "more": list.Next != ""})
}

func (v *visit) readQueue() (queuePage, error) {
	in := v.r.URL.Query()
	q := queuePage{Tab: in.Get("tab"), Agent: in.Get("agent"), Target: strings.TrimSpace(in.Get("target")), Principal: strings.TrimSpace(in.Get("principal"))}
	q.Agent = strings.TrimSpace(q.Agent)
	f := approval.Filter{Agent: q.Agent, Target: q.Target, Principal: q.Principal, Limit: pageSize, Cursor: in.Get("cursor")}
	switch q.Tab {
	case "decided":
		f.States = []approval.State{approval.Denied, approval.Expired, approval.Cancelled, approval.Consumed, approval.Answered}
	case "open":
		f.States, f.ByDue = []approval.State{approval.Pending, approval.Approved}, true
	case "others":
		f.ByDue = true
	default:
		q.Tab = "mine"
		f.ByDue = true
	}
	q.Here = q.address("/queue", q.Tab, f.Cursor)
	list, err := v.listed(q.Tab, f)
	if err != nil {
		return q, err
	}
	for _, s := range list.Requests {
		c, err := v.queued(s.ID)
		if err != nil {
			return q, err
		}
		q.Cards = append(q.Cards, c)
	}
	if q.Total, q.AtLeast, err = v.total(q.Tab, f, list); err != nil {
		return q, err
	}
	if list.Next != "" {
		q.Next = q.address("/", q.Tab, list.Next)
	}
	return q, nil
}

// listed reads a page: of what waits for the visitor, or of everything. Nothing waits for somebody whom the directory doesn't know.
func (v *visit) listed(tab string, f approval.Filter) (approval.Page, error) {
	page, err := v.listOf(tab, f)
	if errors.Is(err, approval.ErrUnknownName) {
		return approval.Page{}, nil
	}

	return page, err
}

func (v *visit) listOf(tab string, f approval.Filter) (approval.Page, error) {
	switch tab {
	case "mine":
		return v.Service.Waiting(v.ctx(), v.Tenant, v.Person.ID, f)
	case "others":
		return v.Service.AnsweredBy(v.ctx(), v.Tenant, v.Person.ID, f)
	}

	return v.Store.Requests(v.ctx(), v.Tenant, f)
}

func (v *visit) queued(id string) (card, error) {
	r, err := v.Store.Request(v.ctx(), v.Tenant, id)
	if err != nil {
		return card{}, err
	}
	return v.card(r)
}
