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

// queuePages are the pages that list what a person may answer.
type queuePages struct{ *visit }

// pageSize is the number of requests on a page of the queue. Each request is read in full for its
// stages and hints, unless it is large.
const pageSize = 25

const (
	listedBytes = 256 << 10 // largest request that is read for its outline
	queueBytes  = 1 << 20   // total size of the requests that are read for one page
)

// queuePage is the list of requests.
type queuePage struct {
	Tab       string // mine, others, open or decided
	Agent     string
	Target    string
	Principal string
	Requests  []request
	Total     int
	AtLeast   bool   // Total is a lower bound
	Next      string // address of the next page
	Here      string // address of the list without the page
	SignIns   *signIns
}

// Filtered reports whether the list is filtered.
func (q queuePage) Filtered() bool { return q.Agent+q.Target+q.Principal != "" }

// Batch reports whether any listed requests can be answered together. Questions can't.
func (q queuePage) Batch() bool {
	return q.Tab == "mine" && slices.ContainsFunc(q.Requests, request.Batchable)
}

// Tabs returns the lists with their addresses.
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

// title returns the page's title. It contains the number of waiting requests if the list shows
// those.
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

func (v queuePages) queue() error {
	q, err := v.readQueue()
	if err != nil {
		return err
	}
	return v.show("queue", q.title(), "queue", q)
}

// queueFragment returns the list without the page, for the script to insert. If several pages of a
// person request it after a change, it is rendered only once.
func (v queuePages) queueFragment() error {
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

// total returns the number of requests in a list on all of its pages. more is set if there are more
// than that. Requests that wait for a person are counted one by one, up to a limit.
func (v queuePages) total(tab string, f approval.Filter, first approval.Page) (n int, more bool, err error) {
	if tab != "mine" && tab != "others" {
		by, err := v.reader()
		if most := 1000; !by.All() && first.Total > most { // lists for some readers count no further
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

// mostCounted is the limit up to which requests that wait for a person are counted.
const mostCounted = 200

// waiting sends the number of requests that wait for the visitor, for the titles of their pages,
// without any details.
func (v queuePages) waiting() error {
	list, err := v.listed("mine", approval.Filter{Limit: mostCounted})
	if err != nil {
		return err
	}
	h := v.w.Header()
	h.Set("Content-Type", "application/json")
	h.Set("Cache-Control", "no-store")

	return json.NewEncoder(v.w).Encode(map[string]any{"total": len(list.Requests), "more": list.Next != ""})
}

// fragmentKey identifies a list and its visitor.
type fragmentKey struct{ tenant, person, groups, query string }

// fragment is a list as it was when the ledger had this number of entries.
type fragment struct {
	state int64
	made  time.Time
	text  []byte
}

const (
	fragmentAge   = 2 * time.Second // largest age of the times and groups in a list
	mostFragments = 16 << 20        // total bytes of all stored lists and their keys
)

// fragments are the lists that were rendered last.
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
	if f.all == nil || f.bytes > mostFragments { // they are rendered again when needed
		f.all, f.bytes = map[fragmentKey]fragment{}, made.size(key)
	}
	f.all[key] = made
}

func (f fragment) size(key fragmentKey) int { return len(f.text) + len(key.groups) + len(key.query) }

func (v queuePages) readQueue() (queuePage, error) {
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
		if errors.Is(err, approval.ErrNotFound) { // the directory changed after the list was read
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

// listed reads a page of the requests that wait for the visitor, or of all requests. For a person
// that the directory does not contain, the page is empty.
func (v queuePages) listed(tab string, f approval.Filter) (approval.Page, error) {
	page, err := v.listOf(tab, f)
	if errors.Is(err, approval.ErrUnknownName) {
		return approval.Page{}, nil
	}

	return page, err
}

func (v queuePages) listOf(tab string, f approval.Filter) (approval.Page, error) {
	switch tab {
	case "mine":
		return v.Service.Waiting(v.ctx(), v.Tenant, v.Person.ID, f)
	case "others":
		return v.Service.AnsweredBy(v.ctx(), v.Tenant, v.Person.ID, f)
	}

	return v.list(f)
}

// queued returns the outline of a request. If the request is large or the page has already read
// enough, it only contains the data of the list.
func (v queuePages) queued(s approval.Summary, room *int64) (request, error) {
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

// briefOutline returns an outline from the data of the list.
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
