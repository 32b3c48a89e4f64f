package content_test

import (
	"testing"

	"github.com/assent-dev/assent/agent/content"
	"github.com/assent-dev/assent/internal/must"
)

// The first line is what Python's library writes, the second one an item
// of a service.
func TestConsentIsRead(t *testing.T) {
	for src, want := range map[string]content.Consent{
		`{"type":"oauth_consent_request","consent_link":"https://login.example/consent?a=1","user_input_request":true,` +
			`"additional_properties":{}}`: {Link: "https://login.example/consent?a=1", Host: "login.example"},
		`{"type":"oauth_consent_request","id":"oacr_1","consent_link":"https://login.example:8443/","server_label":"drive"}`: {
			Link:   "https://login.example:8443/",
			Host:   "login.example:8443",
			Server: "drive",
		},
	} {
		c := must.Get(content.Python().DecodeContent([]byte(src)))(t)
		if got, ok := content.ConsentOf(c); !ok || got != want {
			t.Errorf("%s: %+v, %v", src, got, ok)
		}
		if out := must.Get(content.Python().AppendContent(nil, c))(t); string(out) != src {
			t.Errorf("%s\nwent back as\n%s", src, out)
		}
	}
}

func TestConsentThatNobodyShouldBeShown(t *testing.T) {
	for _, src := range []string{
		`{"type":"oauth_consent_request"}`,
		`{"type":"oauth_consent_request","consent_link":5}`,
		`{"type":"oauth_consent_request","consent_link":"http://login.example/"}`,
		`{"type":"oauth_consent_request","consent_link":"https://login.example@evil.example/"}`,
		`{"type":"oauth_consent_request","consent_link":"javascript:alert(1)"}`,
		`{"type":"oauth_consent_request","consent_link":"https://login.example/","server_label":["drive"]}`,
		`{"type":"hosted_file","consent_link":"https://login.example/"}`,
		`{"type":"text","text":"https://login.example/"}`,
	} {
		c := must.Get(content.Python().DecodeContent([]byte(src)))(t)
		if got, ok := content.ConsentOf(c); ok {
			t.Errorf("%s: %+v", src, got)
		}
	}

	half := &content.Unknown{Kind: "oauth_consent_request", Raw: []byte(`{"consent_link":`)}
	if _, ok := content.ConsentOf(half); ok {
		t.Error("half a consent is read")
	}
}
