package main

import (
	"html"
	"strings"
	"testing"

	"github.com/assent-dev/assent/cmd/internal/config"
	"github.com/assent-dev/assent/cmd/internal/testfiles"
	"github.com/assent-dev/assent/internal/testwait"
)

// TestThePageOfAgentsSaysWhatTheAPISays: the inbox shows a person the same information as a token
// of the tenant gets, including the errors in the files. Both change with the files without a
// restart.
func TestThePageOfAgentsSaysWhatTheAPISays(t *testing.T) {
	t.Parallel()
	h := &reloading{testServer: withFiles(t, deskFiles()), t: t}
	h.file = testfiles.Write(t, h.dir+"/decisions.yaml", "permit_age: 20m\n")
	cfg, said, err := configured(t, h.dir)
	if err != nil {
		t.Fatal(err, said)
	}
	cfg.Dev = true
	cfg.DevPerson = "alice"
	cfg.Tenants[0].Name = config.DefaultTenant
	h.tokens(t, cfg.Location())
	h.log = h.serves(t, cfg)
	t.Cleanup(func() {
		if err := h.stop(); err != nil {
			t.Error(err)
		}
	})
	alice := h.signedIn(t)
	page := func(words ...string) {
		t.Helper()
		text := html.UnescapeString(alice.get("/agents"))
		in := h.agents()
		words = append(words, in.Agents[0].ID, in.Agents[0].Plan, in.Configuration, in.PermitAge)
		for _, w := range words {
			if w == "" || !strings.Contains(text, w) {
				t.Errorf("the page lacks %q:\n%s", w, text)
			}
		}
	}
	page("is denied", "version", "Nothing was found")
	const loose = "undeclared: ask\napprove_on_timeout: true\npermit_age: 40m\n"
	h.write(loose)
	h.inForce(loose)
	page("asks one person", "Approval by timeout is on.")
	h.write("undeclared: never\n")
	told := h.trouble()
	testwait.Until(t, "the page tells", func() bool {
		return strings.Contains(html.UnescapeString(alice.get("/agents")), told)
	})
	page(h.file+":1:13: ", "What can’t be used as it stands")
}
