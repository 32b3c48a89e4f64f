package content

import (
	"github.com/assent-dev/assent/approval/info"
	"github.com/assent-dev/assent/internal/jsonmsg"
)

// consentKind is the name that Python and the Responses API use.
const consentKind = "oauth_consent_request"

// Consent is a request of a service that the user signs in. There is no answer to it: the user
// signs in at the link and then repeats the message.
type Consent struct {
	Link   string // uses https and contains no credentials
	Host   string // host of the link, to be shown before the link is opened
	Server string // the server that needs the sign-in, or empty if the service doesn't name one
}

// ConsentOf reads a consent request. In messages it is an *Unknown, and it is written back byte
// for byte. ConsentOf returns false for all other contents, and for a link that must not be
// shown, such as one without https.
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
