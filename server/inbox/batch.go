package inbox

import (
	"errors"
	"fmt"
	"net/http"
	"slices"

	"github.com/assent-dev/assent/approval"
)

// mostBatch is how many requests are decided at once: what a person can be expected to read on one page.
const mostBatch = 20

// batchPage shows several requests of the same rules, each whole, with one answer to all.
type batchPage struct {
	Items  []batchItem
	Rules  string
	Target string
	Full   bool // every call stands whole on the page
}

type batchItem struct {
	card
	Binding string
	Docs    []document
	Facts   []fact
	Seen    string
}

func (v *visit) batch() error {
	ids := slices.Compact(slices.Sorted(slices.Values(v.r.URL.Query()["id"])))
	if len(ids) == 0 || len(ids) > mostBatch {
		return &problem{http.StatusBadRequest, "Choose requests first", fmt.Sprintf("Between 1 and %d requests can be answered together.", mostBatch)}
	}
	p := batchPage{Full: true}
	for _, id := range ids {
		item, err := v.batchItem(id)
		if err != nil {
			return err
		}
		if p.Rules != "" && p.Rules != item.Rules {
			return &problem{http.StatusBadRequest, "These can't be answered together", "Only requests that the same rules ask about, for the same tool, can. Answer these one by one."}
		}
		p.Rules, p.Target = item.Rules, item.Target
		p.Full = p.Full && full(item.Docs)
		p.Items = append(p.Items, item)
	}
	return v.show("batch", "Answer together", "queue", p)
}

func (v *visit) batchItem(id string) (batchItem, error) {
	r, err := v.Store.Request(v.ctx(), v.Tenant, id)
	if err != nil {
		return batchItem{}, err
	}
	c, err := v.card(r)
	if err != nil {
		return batchItem{}, err
	}
	if c.Question != nil {
		return batchItem{}, &problem{http.StatusConflict, "Questions are answered one by one", "…" + tail(id) + " is a question of a tool: its choices are its own, so no other answer fits it."}
	}
	if !c.Pending || !c.Seat {
		return batchItem{}, &problem{http.StatusConflict, "One of these can't be answered by you", c.Target + " …" + tail(id) + ": " + lower(c.StateWords) + ". " + c.Why}
	}
	docs := documents(&r.Current().Call, r.Redact, true)
	return batchItem{c, r.Binding(), docs, facts(r), v.sealSeen(r, full(docs), "")}, nil
}

// batchVote gives one answer to all requests of a batch page. Each is counted on its own: one that moved on doesn't stop the others.
func (v *visit) batchVote() error {
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
	if verdict == approval.Deny {
		reason = denial(form.Get("preset"), reason)
	}
	m := said{Kind: "good"}
	for _, in := range all {
		voted, err := v.Service.Vote(v.ctx(), approval.VoteInput{
			Tenant: v.Tenant, ID: in.Request, IfVersion: in.Version, Binding: in.Binding, Person: v.Person.ID, Verdict: verdict,
			Reason: reason, Channel: channel, Full: in.Full,
		})
		line, kind := batchLine(voted, err)
		if kind == "" {
			return err
		}
		if kind != "good" {
			m.Kind = "note"
		}
		m.Lines = append(m.Lines, "…"+tail(in.Request)+": "+line)
	}
	return v.tell("/", m)
}

// batchSeals reads what the page showed, and holds the batch to its rules: whole calls, one set of rules.
func (v *visit) batchSeals() ([]seen, error) {
	var out []seen
	rules := ""
	for _, sealed := range v.r.PostForm["seen"] {
		in, err := v.openSeen(sealed, v)
		if err != nil {
			return nil, err
		}
		r, err := v.Store.Request(v.ctx(), v.Tenant, in.Request)
		if err != nil {
			return nil, err
		}
		same := approval.Summarize(r).Rules
		if rules != "" && rules != same || !in.Full || r.Question != nil || len(out) >= mostBatch {
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
