package inbox

import (
	"encoding/json"
	"errors"
	"net/http"
	"net/url"
	"slices"
	"strings"
	"sync"
	"time"

	"github.com/assent-dev/assent/approval"
	"github.com/assent-dev/assent/internal/safetext"
)

// pageSize is how many requests a page of the queue has. Each is read
// whole, for its stages and hints, unless it is large.
const pageSize = 25

const (
	listedBytes = 256 << 10 // of a request that is read for its outline
	queueBytes  = 1 << 20   // of all that are read for one page
)

// queuePage is the list of requests.
type queuePage struct {
	Tab       string // mine, others, open or decided
	Agent     string
	Target    string
	Principal string
	Requests  []request
	Total     int
	AtLeast   bool   // Total is no more than what was counted
	Next      string // address of the next page
	Here      string // address of the list without the page around it
	SignIns   *signIns
}

// Filtered reports whether the list is narrowed.
func (q queuePage) Filtered() bool { return q.Agent+q.Target+q.Principal != "" }

// Batch reports whether some of what is listed can be answered
// together: questions can't.
func (q queuePage) Batch() bool {
	return q.Tab == "mine" && slices.ContainsFunc(q.Requests, request.Batchable)
}

// Tabs are the lists with their addresses.
func (q queuePage) Tabs() []struct{ Name, Words, Href string } {
	out := []struct{ Name, Words, Href string }{
		{"mine", "Waiting for me", ""},
		{"others", "I answered, others must", ""},
		{"open", "All open", ""},
		{"decided", "Decided", ""},
	}
	for i := range out {
		out[i].Href = q.address("/", out[i].Name, "")
	}
	return out
}

func (q queuePage) address(path, tab, cursor string) string {
	u := url.Values{}
	for k, v := range map[string]string{
		"tab":       tab,
		"agent":     q.Agent,
		"target":    q.Target,
		"principal": q.Principal,
		"cursor":    cursor,
	} {
		if v != "" && (k != "tab" || v != "mine") {
			u.Set(k, v)
		}
	}

	if len(u) == 0 {
		return path
	}
	return path + "?" + u.Encode()
}

// title says how many wait, where that is what is listed.
func (q queuePage) title() string {
	more := ""
	if q.AtLeast {
		more = "+"
	}
	if q.Tab != "mine" || q.Total == 0 || q.Filtered() {
		return "Queue"
	}

	return "(" + safetext.Count(q.Total) + more + ") Queue"
}

func (v *visit) queue() error {
	q, err := v.readQueue()
	if err != nil {
		return err
	}
	return v.show("queue", q.title(), "queue", q)
}

// queueFragment is the list alone, for the script to put in place.
// However many pages of a person ask for it after a change, it is made
// once.
func (v *visit) queueFragment() error {
	state, _, err := v.Store.Checkpoint(v.ctx(), v.Tenant)
	if err != nil {
		return err
	}
	key := fragmentKey{v.Tenant, v.Person.ID, strings.Join(v.Person.Groups, "\n"), v.r.URL.RawQuery}
	if text, ok := v.fragments.get(key, state, v.now); ok {
		v.send(http.StatusOK, text)
		return nil
	}
	q, err := v.readQueue()
	if err != nil {
		return err
	}
	p := v.base(q.title(), "queue")
	p.Data = q
	text, ok := v.render("queue", "list", p)
	if ok {
		v.fragments.put(key, fragment{state: state, made: v.now, text: text})
		v.send(http.StatusOK, text)
	}

	return nil
}

// total is how many requests a list has on all of its pages. more says
// that there are more than were counted: what waits for a person is
// counted one by one.
func (v *visit) total(tab string, f approval.Filter, first approval.Page) (n int, more bool, err error) {
	if tab != "mine" && tab != "others" {
		by, err := v.reader()
		if most := 1000; !by.All() && first.Total > most { // lists of some readers count no further
			return most, true, err
		}
		return first.Total, false, err
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

// waiting says how many requests wait for the visitor, for the titles
// of their pages, and nothing of what they say.
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

// fragmentKey says whose list it is, and which.
type fragmentKey struct{ tenant, person, groups, query string }

// fragment is a list as it was when the ledger had so many entries.
type fragment struct {
	state int64
	made  time.Time
	text  []byte
}

const (
	fragmentAge   = 2 * time.Second // times on it are as old, and groups
	mostFragments = 16 << 20        // bytes of all that are kept, with their keys
)

// fragments are the lists that were made last.
type fragments struct {
	mu    sync.Mutex
	all   map[fragmentKey]fragment
	bytes int
}

func (f *fragments) get(key fragmentKey, state int64, now time.Time) ([]byte, bool) {
	f.mu.Lock()
	defer f.mu.Unlock()
	found, ok := f.all[key]
	return found.text, ok && found.state == state && now.Sub(found.made) < fragmentAge
}

func (f *fragments) put(key fragmentKey, made fragment) {
	f.mu.Lock()
	defer f.mu.Unlock()
	if old, there := f.all[key]; there {
		f.bytes -= old.size(key)
	}
	f.bytes += made.size(key)
	if f.all == nil || f.bytes > mostFragments { // they are soon made anew
		f.all, f.bytes = map[fragmentKey]fragment{}, made.size(key)
	}
	f.all[key] = made
}

func (f fragment) size(key fragmentKey) int { return len(f.text) + len(key.groups) + len(key.query) }

func (v *visit) readQueue() (queuePage, error) {
	in := v.r.URL.Query()
	q := queuePage{
		Tab:       in.Get("tab"),
		Agent:     in.Get("agent"),
		Target:    strings.TrimSpace(in.Get("target")),
		Principal: strings.TrimSpace(in.Get("principal")),
	}
	q.Agent = strings.TrimSpace(q.Agent)
	f := approval.Filter{
		Agent:     q.Agent,
		Target:    q.Target,
		Principal: q.Principal,
		Limit:     pageSize,
		Cursor:    in.Get("cursor"),
	}
	switch q.Tab {
	case "decided":
		f.States = []approval.State{
			approval.Denied,
			approval.Expired,
			approval.Cancelled,
			approval.Consumed,
			approval.Answered,
		}
	case "open":
		f.States, f.ByDue = []approval.State{approval.Pending, approval.Approved}, true
	case "others":
		f.ByDue = true
	default:
		q.Tab = "mine"
		f.ByDue = true
	}

	q.Here = q.address("/queue", q.Tab, f.Cursor)
	q.SignIns = v.readSignIns(q.Tab)
	if err := v.roomFor(queueBytes); err != nil {
		return q, err
	}
	list, err := v.listed(q.Tab, f)
	if err != nil {
		return q, err
	}
	room := int64(queueBytes)
	for _, s := range list.Requests {
		c, err := v.queued(s, &room)
		if errors.Is(err, approval.ErrNotFound) { // the directory changed since the list was read
			continue
		}
		if err != nil {
			return q, err
		}
		q.Requests = append(q.Requests, c)
	}

	if q.Total, q.AtLeast, err = v.total(q.Tab, f, list); err != nil {
		return q, err
	}
	if list.Next != "" {
		q.Next = q.address("/", q.Tab, list.Next)
	}
	return q, nil
}

// listed reads a page: of what waits for the visitor, or of everything.
// Nothing waits for somebody whom the directory doesn't know.
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

	return v.list(f)
}

// queued draws the outline of a request. Of those that are large, or
// when the page has read enough, it shows what the list knows.
func (v *visit) queued(s approval.Summary, room *int64) (request, error) {
	if s.Bytes > listedBytes || s.Bytes > *room {
		return briefOutline(s), nil
	}
	*room -= s.Bytes
	r, err := v.stored(s.ID)
	if err != nil {
		return request{}, err
	}

	return v.outline(r)
}

// briefOutline is what a list knows of a request.
func briefOutline(s approval.Summary) request {
	return request{
		ID:         s.ID,
		Rules:      s.Rules,
		Agent:      s.Agent,
		Target:     s.Target,
		Name:       s.Target,
		Principal:  s.Principal,
		State:      s.State,
		Pending:    s.State == approval.Pending,
		Brief:      true,
		StateWords: stateWords(&approval.Request{State: s.State, Cause: s.Cause}),
		Message:    s.Message,
		Hidden:     s.Message == "",
		Created:    s.Created,
		Deadline:   s.Deadline,
		Hints: []hint{
			listed("Large: " + safetext.Count(int(s.Bytes)) + " bytes, not looked through here: open it"),
		},
	}
}
