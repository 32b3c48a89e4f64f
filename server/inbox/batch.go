package inbox

import (
	"errors"
	"fmt"
	"net/http"
	"slices"

	"github.com/assent-dev/assent/approval"
	"github.com/assent-dev/assent/internal/safetext"
)

// mostBatch is the largest number of requests that are decided together. It is what a person can be
// expected to read on one page.
const mostBatch = 20

// batchPage shows several requests with the same rules in full, with one answer for all of them.
type batchPage struct {
	Items  []batchItem
	Rules  string
	Target string
	Full   bool // every call is shown in full and may be approved
}

// All returns words for all of the requests: "both", "all 3".
func (p batchPage) All() string {
	switch len(p.Items) {
	case 1:
		return "it"
	case 2:
		return "both"
	}

	return "all " + safetext.Count(len(p.Items))
}

type batchItem struct {
	request
	Binding string
	Docs    []document
	Facts   []fact
	Unseen  unseen
	Whole   bool // it may be approved from this page
	Seen    string
}

func (v queuePages) batch() error {
	ids := slices.Compact(slices.Sorted(slices.Values(v.r.URL.Query()["id"])))
	if len(ids) == 0 || len(ids) > mostBatch {
		return &problem{
			http.StatusBadRequest,
			"Choose requests first",
			fmt.Sprintf("Between 1 and %d requests can be answered together.", mostBatch),
		}
	}

	if err := v.roomForBatch(ids); err != nil {
		return err
	}
	p := batchPage{Full: true}
	for _, id := range ids {
		item, err := v.batchItem(id)
		if err != nil {
			return err
		}
		if p.Rules != "" && p.Rules != item.Rules {
			return &problem{
				http.StatusBadRequest,
				"These can't be answered together",
				"Only requests that the same rules ask about, for the same tool, can. Answer these one by one.",
			}
		}

		p.Rules, p.Target = item.Rules, item.Target
		p.Full = p.Full && item.Whole
		p.Items = append(p.Items, item)
	}

	return v.show("batch", "Answer together", "queue", p)
}

// batchBytes is the largest total size of the requests in a batch. People would not read more on
// one page.
const batchBytes = 2 << 20

// roomForBatch returns an error if the requests are too large for one page. It does so before any
// of them is read.
func (v queuePages) roomForBatch(ids []string) error {
	heads, err := v.Store.Heads(v.ctx(), v.Tenant, ids)
	if err != nil {
		return err
	}
	sum := int64(0)
	for _, h := range heads {
		sum += h.Bytes
	}
	if sum > batchBytes {
		return &problem{
			http.StatusBadRequest,
			"Too much for one page",
			"These requests have " + safetext.Count(int(sum)) + " bytes together, and a page shows " +
				safetext.Count(batchBytes) +
				" at most. Choose fewer of them, or answer the large ones one by one.",
		}
	}

	return v.roomFor(sum)
}

func (v queuePages) batchItem(id string) (batchItem, error) {
	r, err := v.stored(id)
	if err != nil {
		return batchItem{}, err
	}
	c, err := v.outline(r)
	if err != nil {
		return batchItem{}, err
	}
	if c.Question != nil {
		return batchItem{}, &problem{
			http.StatusConflict,
			"Questions are answered one by one",
			"…" + tail(id) + " is a question of a tool: its choices are its own, so no other answer fits it.",
		}
	}

	if !c.Pending || !c.Seat {
		return batchItem{}, &problem{
			http.StatusConflict,
			"One of these can't be answered by you",
			c.Target + " …" + tail(id) + ": " + lower(c.StateWords) + ". " + c.Why,
		}
	}

	if !c.Batchable() {
		return batchItem{}, &problem{
			http.StatusConflict,
			"One of these is answered alone",
			c.Target + " …" + tail(id) + ": you have answered it, or it has something to look at twice.",
		}
	}

	docs := v.documents(r, true)
	whole := full(docs) && len(r.Unapprovable()) == 0

	return batchItem{
		c,
		r.Binding(),
		docs,
		facts(r),
		unseenOf(r),
		whole,
		v.sealSeen(toBatch, r, r, whole, ""),
	}, nil
}

// batchVote gives one answer to all requests of a batch page. Each answer is counted on its own, so
// a request that has changed doesn't stop the others.
func (v queuePages) batchVote() error {
	form := v.r.PostForm
	verdict := approval.Verdict(form.Get("verdict"))
	if verdict != approval.Approve && verdict != approval.Deny {
		return &problem{http.StatusBadRequest, "Nothing was decided", "The form names no answer."}
	}
	all, err := v.batchSeals()
	if err != nil {
		return err
	}
	reason := clean(form.Get("reason"))
	m := said{Kind: "good"}
	if verdict == approval.Deny {
		m.Kind = "done"
		if reason, err = denial(form.Get("preset"), reason); err != nil {
			return &problem{
				http.StatusBadRequest,
				"Nothing was decided",
				"Go back, and say " + errNoReason.Expected + ".",
			}
		}
	}

	for _, in := range all {
		voted, err := v.Service.Vote(v.ctx(), approval.VoteInput{
			Tenant:    v.Tenant,
			ID:        in.Request,
			IfVersion: in.Version,
			Binding:   in.Binding,
			Person:    v.Person.ID,
			Verdict:   verdict,
			Reason:    reason,
			Channel:   Channel,
			Full:      in.Full,
		})
		line, kind := batchLine(voted, err)
		if kind == "" {
			return err
		}
		if kind != "good" && kind != "done" {
			m.Kind = "note"
		}
		m.Lines = append(m.Lines, "…"+tail(in.Request)+": "+line)
	}

	return v.tell("/", m)
}

// batchSeals reads what the page showed, and checks that all calls were shown in full and have the
// same rules.
func (v queuePages) batchSeals() ([]seen, error) {
	var out []seen
	rules := ""
	for _, sealed := range v.r.PostForm["seen"] {
		in, err := v.openSeen(toBatch, sealed, v.visit)
		if err != nil {
			return nil, err
		}
		r, err := v.stored(in.Request)
		if err != nil {
			return nil, err
		}
		same := approval.Summarize(r).Rules
		moved := r.Version == in.Version && !slices.Equal(in.Shown, shownDigests(r))
		if rules != "" && rules != same || !in.Full || moved || r.Question != nil || len(out) >= mostBatch {
			return nil, errSeal
		}
		rules = same
		out = append(out, in)
	}

	if len(out) == 0 {
		return nil, errSeal
	}
	return out, nil
}

func batchLine(voted *approval.Voted, err error) (line, kind string) {
	switch {
	case errors.Is(err, approval.ErrVersion), errors.Is(err, approval.ErrBinding):
		return "not decided, it changed meanwhile.", "note"
	case errors.Is(err, approval.ErrNotShown):
		return "not decided, it was not shown fully.", "note"
	case errors.Is(err, approval.ErrNotFound):
		return "not decided, it is gone.", "note"
	case err != nil:
		return "", ""
	}

	m := outcomeWords(voted)
	return m.Lines[0], m.Kind
}
