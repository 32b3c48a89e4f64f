package inbox

import "github.com/assent-dev/assent/approval/signin"

// signIns are the sign-ins that the visitor is asked for, shown above their list.
type signIns struct {
	signin.Page
	Unread bool // they can't be read at the moment
}

// readSignIns reads the sign-ins. If they can't be read, the list is still shown, with a note.
func (v queuePages) readSignIns(tab string) *signIns {
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
