package inbox

import (
	"net/http"
	"strconv"
	"strings"

	"github.com/assent-dev/assent/approval"
	"github.com/assent-dev/assent/policy"
	"github.com/assent-dev/assent/store"
)

// grantsPage lists standing approvals.
type grantsPage struct {
	All    bool
	Grants []grantRow
}

// grantRow is one standing approval, its bounds in words.
type grantRow struct {
	approval.Grant
	Live   bool
	People []string
	Doc    *document // nil when it isn't known what policy hides
}

func (v *visit) grants() error {
	p := grantsPage{All: v.r.URL.Query().Get("all") == "1"}
	list, err := v.Store.Grants(v.ctx(), v.Tenant, p.All, v.now)
	if err != nil {
		return err
	}
	for _, g := range list {
		row := grantRow{Grant: g, Live: g.Live(v.now), Doc: grantDoc(&g)}
		for _, id := range g.By {
			row.People = append(row.People, v.called(id))
		}
		p.Grants = append(p.Grants, row)
	}
	return v.show("grants", "Standing approvals", "grants", p)
}

// grantDoc shows the approved arguments, without what policy hides. Grants from before that was kept have no rules.
func grantDoc(g *approval.Grant) *document {
	if len(g.Rules) == 0 {
		return nil
	}
	d := inspectDocument("Arguments", g.Call.Args, policy.Arguments{Redact: g.Redact}.Redaction(), false)

	return &d
}

func (v *visit) revoke() error {
	if err := v.posted(); err != nil {
		return err
	}
	if _, err := v.Service.Revoke(v.ctx(), v.Tenant, v.r.PathValue("id"), v.Person.ID, clean(v.r.PostForm.Get("reason"))); err != nil {
		return err
	}
	return v.tell("/grants", said{Kind: "good", Lines: []string{"Revoked: calls under this standing approval ask again from now on."}})
}

// freezePage is the kill switch.
type freezePage struct {
	Freezes []approval.Freeze
}

func (v *visit) freeze() error {
	list, err := v.Store.Freezes(v.ctx(), v.Tenant)
	if err != nil {
		return err
	}
	return v.show("freeze", "Freeze", "freeze", freezePage{list})
}

// onlyAdmins refuses everybody else.
func (v *visit) onlyAdmins() error {
	if err := v.posted(); err != nil {
		return err
	}
	if !v.admin() {
		return &problem{http.StatusForbidden, "Not yours to do", "Only people in the group " + v.Admins + " can do this. Nothing was done."}
	}
	return nil
}

func (v *visit) throw() error {
	if err := v.onlyAdmins(); err != nil {
		return err
	}
	agent := strings.TrimSpace(v.r.PostForm.Get("agent"))
	if err := v.Service.Freeze(v.ctx(), v.Tenant, agent, v.Person.ID, clean(v.r.PostForm.Get("reason"))); err != nil {
		return err
	}
	return v.tell("/freeze", said{Kind: "good", Lines: []string{"Frozen: " + agentWords(agent) + " is denied from now on, approved calls too."}})
}

func (v *visit) thaw() error {
	if err := v.onlyAdmins(); err != nil {
		return err
	}
	agent := v.r.PostForm.Get("agent")
	if err := v.Service.Thaw(v.ctx(), v.Tenant, agent, v.Person.ID, clean(v.r.PostForm.Get("reason"))); err != nil {
		return err
	}
	return v.tell("/freeze", said{Kind: "good", Lines: []string{"The freeze of " + agentWords(agent) + " is lifted."}})
}

func agentWords(agent string) string {
	if agent == "" {
		return "everything"
	}
	return "everything of agent " + agent
}

// deliveriesPage lists what did not arrive.
type deliveriesPage struct {
	State store.JobState
	Jobs  []store.Job
}

func (v *visit) deliveries() error {
	p := deliveriesPage{State: store.JobState(v.r.URL.Query().Get("state"))}
	if p.State != store.Waiting && p.State != store.Sent {
		p.State = store.DeadEnd
	}
	var err error
	if p.Jobs, err = v.Store.Jobs(v.ctx(), v.Tenant, p.State, 200); err != nil {
		return err
	}
	return v.show("deliveries", "Deliveries", "deliveries", p)
}

func (v *visit) redeliver() error {
	if err := v.onlyAdmins(); err != nil {
		return err
	}
	id, err := strconv.ParseInt(v.r.PathValue("id"), 10, 64)
	if err != nil {
		return approval.ErrNotFound
	}
	if err := v.Store.Redeliver(v.ctx(), v.Tenant, id, v.now); err != nil {
		return err
	}
	return v.tell("/deliveries", said{Kind: "good", Lines: []string{"It will be sent again."}})
}
