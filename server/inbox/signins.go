package inbox

import "github.com/assent-dev/assent/approval/signin"

// signIns is what the visitor is asked to sign in to, above their list.
type signIns struct {
	signin.Page
	Unread bool // nobody knows what, at the moment
}

// readSignIns reads it. Where it can't be read the list is shown all
// the same, and says so.
func (v *visit) readSignIns(tab string) *signIns {
	if tab != "mine" || v.SignIns == nil {
		return nil
	}
	page, err := v.SignIns.SignIns(v.ctx(), v.Tenant, v.Person.ID)
	if err != nil {
		v.Logger.Error("sign-ins can't be read", "error", err)
		return &signIns{Unread: true}
	}
	if len(page.SignIns) == 0 {
		return nil
	}

	return &signIns{Page: page}
}
