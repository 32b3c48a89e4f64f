package inbox

import (
	"cmp"
	"encoding/json"
	"errors"
	"net/http"
	"slices"
	"strconv"
	"strings"

	"github.com/assent-dev/assent/approval"
	"github.com/assent-dev/assent/policy"
	"github.com/assent-dev/assent/rap"
	"github.com/assent-dev/assent/server/administration"
	"github.com/assent-dev/assent/store"
)

// adminPages are the pages that manage grants, deliveries, freezes and tokens.
type adminPages struct{ *visit }

// grantsPage lists standing approvals.
type grantsPage struct {
	All      bool
	Grants   []grantRow
	Sessions []rap.SessionGrant // active session grants of RAP gateways
}

// grantRow is one standing approval, with its bounds in words.
type grantRow struct {
	approval.Grant
	Live   bool
	People []string
	Doc    *document // nil if it is unknown what policies hide, or if Long is set
	Long   bool      // too large for the page
}

func (v adminPages) grants() error {
	p := grantsPage{All: v.r.URL.Query().Get("all") == "1"}
	list, err := v.Store.Grants(v.ctx(), v.Tenant, p.All, v.now)
	if err != nil {
		return err
	}
	by, err := v.reader()
	if err == nil {
		list, err = v.Service.Grants(v.ctx(), v.Tenant, by, list)
	}
	if err != nil {
		return err
	}
	for _, g := range list {
		row := grantRow{Grant: g, Live: g.Live(v.now)}
		row.Doc, row.Long = v.grantDoc(&g)
		for _, id := range g.By {
			row.People = append(row.People, v.called(id))
		}
		p.Grants = append(p.Grants, row)
	}

	if v.Sessions != nil {
		if p.Sessions, err = v.sessions(); err != nil {
			return err
		}
	}

	return v.show("grants", "Standing approvals", "grants", p)
}

// sessions returns the session grants that concern the visitor.
func (v adminPages) sessions() ([]rap.SessionGrant, error) {
	by, err := v.reader()
	if err != nil {
		return nil, err
	}
	all, err := v.Sessions.Grants(v.ctx(), v.Tenant)

	return slices.DeleteFunc(all, func(g rap.SessionGrant) bool { return !by.Concerns(g.User, g.Agent) }), err
}

func (v adminPages) revokeSession() error {
	if err := v.posted(); err != nil {
		return err
	}
	if v.Sessions == nil {
		return approval.ErrNotFound
	}
	reason := clean(v.r.PostForm.Get("reason"))
	list, err := v.sessions()
	if err != nil {
		return err
	}
	if !slices.ContainsFunc(list, func(g rap.SessionGrant) bool { return g.ID == v.id() }) {
		return approval.ErrNotFound
	}
	if err := v.Sessions.Revoke(v.ctx(), v.Tenant, v.id(), v.Person.ID, reason); err != nil {
		return err
	}

	return v.tell("/grants", saying("good", "Revoked: the next call of that session asks again."))
}

// grantDoc draws the approved arguments, without what policies hide. Old grants without rules don't
// contain that information, so nothing is drawn for them.
func (v adminPages) grantDoc(g *approval.Grant) (doc *document, long bool) {
	if len(g.Rules) == 0 {
		return nil, false
	}
	if !v.draws.spend(len(g.Call.Args) / bytesPiece) {
		return nil, true
	}
	d := inspectDocument(
		"Arguments",
		string(g.Call.Args),
		policy.Arguments{Redact: g.Redact}.Redaction(),
		false,
		v.draws,
	)

	return &d, false
}

func (v adminPages) revoke() error {
	if err := v.posted(); err != nil {
		return err
	}
	g, err := v.Store.Grant(v.ctx(), v.Tenant, v.id())
	if err != nil {
		return err
	}
	by, err := v.reader()
	if err != nil {
		return err
	}
	if may, err := v.Service.Grants(v.ctx(), v.Tenant, by, []approval.Grant{*g}); err != nil || len(may) == 0 {
		return cmp.Or(err, approval.ErrNotFound)
	}
	if _, err := v.Service.Revoke(
		v.ctx(),
		v.Tenant,
		v.id(),
		v.Person.ID,
		clean(v.r.PostForm.Get("reason")),
	); err != nil {
		return err
	}

	return v.tell(
		"/grants",
		saying("good", "Revoked: calls under this standing approval ask again from now on."),
	)
}

// freezePage shows the freezes.
type freezePage struct {
	Admins  string // the group that may freeze
	Freezes []freezeRow
}

// freezeRow is one freeze, with this person's requests to lift it.
type freezeRow struct {
	approval.Freeze
	Lifts []lift
}

// lift is a request to lift a freeze. It is pending or has been approved by an administrator.
type lift struct {
	ID       string
	Approved bool
	Reason   string
}

func (v adminPages) freeze() error {
	list, err := v.Store.Freezes(v.ctx(), v.Tenant)
	if err != nil {
		return err
	}
	lifts, err := v.lifts()
	if err != nil {
		return err
	}
	p := freezePage{Admins: v.Admins(v.Tenant)}
	for _, f := range list {
		p.Freezes = append(p.Freezes, freezeRow{Freeze: f, Lifts: lifts[f.Agent+" "+administration.FrozenAt(f)]})
	}

	return v.show("freeze", "Freeze", "freeze", p)
}

// lifts returns this person's requests to lift freezes, by agent and the time of the freeze.
func (v adminPages) lifts() (map[string][]lift, error) {
	found, err := v.list(approval.Filter{
		Agent:  administration.Agent,
		States: []approval.State{approval.Pending, approval.Approved},
	})
	if err != nil {
		return nil, err
	}
	out := map[string][]lift{}
	for _, s := range found.Requests {
		r, err := v.stored(s.ID)
		if err != nil {
			return nil, err
		}
		var act struct {
			Agent, Reason string
			FrozenAt      string `json:"frozen_at"`
		}
		call := r.Current().Call
		mine := r.Requester.Person == v.Person.ID && call.Tool == string(administration.LiftFreeze)
		if !mine || json.Unmarshal([]byte(call.Args), &act) != nil {
			continue
		}
		freeze := act.Agent + " " + act.FrozenAt
		out[freeze] = append(
			out[freeze],
			lift{ID: r.ID, Approved: r.State == approval.Approved, Reason: act.Reason},
		)
	}

	return out, nil
}

// onlyAdmins returns an error unless the visitor is an administrator and the form has a valid seal.
func (v *visit) onlyAdmins() error {
	if err := v.posted(); err != nil {
		return err
	}
	if !v.admin() {
		return &problem{
			http.StatusForbidden,
			"Not yours to do",
			"Only people in the group " + v.Admins(v.Tenant) +
				" can do this. Nothing was done.",
		}
	}

	return nil
}

func (v adminPages) throw() error {
	if err := v.onlyAdmins(); err != nil {
		return err
	}
	agent := strings.TrimSpace(v.r.PostForm.Get("agent"))
	if err := v.Service.Freeze(v.ctx(), v.Tenant, agent, v.Person.ID, clean(v.r.PostForm.Get("reason"))); err != nil {
		return err
	}
	return v.tell(
		"/freeze",
		saying("good", "Frozen: "+agentWords(agent)+" is denied from now on, approved calls too."),
	)
}

// thaw lifts a freeze if another administrator has approved that. Otherwise it asks the
// administrators and redirects to the request.
func (v adminPages) thaw() error {
	if err := v.onlyAdmins(); err != nil {
		return err
	}
	if v.Administration == nil {
		return &problem{
			http.StatusForbidden,
			"Not from here",
			"Nobody could be asked: an operator lifts it, with assent thaw --store.",
		}
	}

	agent := v.r.PostForm.Get("agent")
	reason := clean(v.r.PostForm.Get("reason"))
	freezes, err := v.Store.Freezes(v.ctx(), v.Tenant)
	if err != nil {
		return err
	}
	args, err := administration.Lifting(freezes, agent, reason)
	if err != nil {
		return err
	}
	err = v.Administration.Take(
		v.ctx(),
		v.Tenant,
		approval.AdministrationAsker(Channel, v.Person.ID),
		administration.LiftFreeze,
		args,
	)
	var pending *administration.PendingError
	var refused *administration.RefusedError
	switch {
	case errors.As(err, &pending):
		return v.tell(
			"/freeze",
			saying("note", "Another administrator approves this first. Come back then, and lift it here."),
		)
	case errors.As(err, &refused):
		return &problem{http.StatusConflict, "Nothing was done", sentence(refused.Error())}
	case err != nil:
		return err
	}

	if err := v.Service.Thaw(v.ctx(), v.Tenant, agent, v.Person.ID, reason); err != nil {
		return err
	}

	return v.tell("/freeze", saying("good", "The freeze of "+agentWords(agent)+" is lifted."))
}

func agentWords(agent string) string {
	if agent == "" {
		return "everything"
	}
	return "everything of agent " + agent
}

// deliveriesPage lists failed deliveries.
type deliveriesPage struct {
	State store.JobState
	Jobs  []store.Job
}

func (v adminPages) deliveries() error {
	p := deliveriesPage{State: store.JobState(v.r.URL.Query().Get("state"))}
	if p.State != store.Waiting && p.State != store.Sent {
		p.State = store.DeadEnd
	}
	var err error
	if p.Jobs, err = v.Store.Jobs(v.ctx(), v.Tenant, p.State, 200); err != nil {
		return err
	}
	about := make([]approval.About, len(p.Jobs))
	for i, j := range p.Jobs {
		about[i] = approval.About{Type: j.Event, Subject: j.Subject}
	}
	may, err := v.mayRead(about)
	if err != nil {
		return err
	}
	var jobs []store.Job
	for i, j := range p.Jobs {
		if may[i] {
			jobs = append(jobs, j)
		}
	}
	p.Jobs = jobs
	return v.show("deliveries", "Deliveries", "deliveries", p)
}

func (v adminPages) redeliver() error {
	if err := v.onlyAdmins(); err != nil {
		return err
	}
	id, err := strconv.ParseInt(v.id(), 10, 64)
	if err != nil {
		return approval.ErrNotFound
	}
	if err := v.Store.Redeliver(v.ctx(), v.Tenant, id, v.now); err != nil {
		return err
	}
	facts := map[string]any{"delivery": id}
	if err := v.Service.Record(v.ctx(), v.Tenant, "redelivered", "", v.Person.ID, facts); err != nil {
		return err
	}
	return v.tell("/deliveries", saying("good", "It will be sent again."))
}
