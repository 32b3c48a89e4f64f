package content

import (
	"github.com/assent-dev/assent/approval/info"
	"github.com/assent-dev/assent/internal/jsonmsg"
)

// consentKind is Python's name, and that of the item of a Responses
// service.
const consentKind = "oauth_consent_request"

// Consent is a sign-in that a service wants of its user. Nothing answers
// it: the user signs in there and then says again what they want.
type Consent struct {
	Link   string // with https, and without credentials in it
	Host   string // where the link leads, to be shown before it
	Server string // on whose behalf; "" when the service doesn't say
}

// ConsentOf reads such a wish. It stands in messages as an *Unknown, and
// goes back byte for byte. False is for everything else, and for a link
// that nobody should be shown.
func ConsentOf(c Content) (Consent, bool) {
	u, ok := c.(*Unknown)
	if !ok || u.Kind != consentKind {
		return Consent{}, false
	}
	o := jsonmsg.Read(u.Raw, jsonmsg.Limits())
	it := info.Item{Label: "sign in", Link: o.NonEmpty("consent_link")}
	server := o.Text("server_label")
	if o.Err() != nil || info.Check([]info.Item{it}) != nil {
		return Consent{}, false
	}
	return Consent{Link: it.Link, Host: it.Host(), Server: server}, true
}
