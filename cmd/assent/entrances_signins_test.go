package main

import (
	"encoding/json"
	"fmt"
	"html"
	"net/http"
	"os"
	"os/exec"
	"path/filepath"
	"strings"
	"testing"

	"github.com/assent-dev/assent/client"
	"github.com/assent-dev/assent/cmd/internal/channels"
	"github.com/assent-dev/assent/internal/must"
	"github.com/assent-dev/assent/internal/testwait"
	"github.com/assent-dev/assent/server/openapi"
)

// signInOrigin is the configured origin of the tools' sign-ins.
const signInOrigin = "https://idp.example"

// waysToSeeSignIns returns, for each channel, a function that returns the sign-ins that it shows to
// a person. The function is nil if the channel shows none.
func waysToSeeSignIns() map[string]func(t *testing.T, w *entrances, who string) string {
	return map[string]func(t *testing.T, w *entrances, who string) string{
		"inbox": func(t *testing.T, w *entrances, who string) string {
			return w.visitor(t, who).get("/") + w.visitor(t, who).get("/queue")
		},
		"webhook": nil,
		"slack": func(_ *testing.T, w *entrances, who string) string {
			w.slack.mu.Lock()
			defer w.slack.mu.Unlock()
			return w.slack.direct[messagesOf("U0"+strings.ToUpper(who))]
		},
		"terminal": func(t *testing.T, w *entrances, who string) string {
			return w.commands(t, who, "sign-ins") + w.commands(t, who, "list")
		},
		"HTTP API": func(t *testing.T, w *entrances, who string) string {
			page, err := w.client(t, who+"-cli").SignIns(t.Context())
			if err != nil {
				return err.Error()
			}
			return string(mustJSON(t, page))
		},
	}
}

// signsIn makes a call of a runtime for a user, and makes its tool request a sign-in. It returns
// the call as the tool received it, and the status of the tool's request.
func (w *entrances) signsIn(t *testing.T, id, user, link string) (c machineCall, status int) {
	t.Helper()
	got := make(chan machineCall, 1)
	w.machines.says(func(c machineCall) string {
		select {
		case got <- c:
		default:
		}
		return `{"type":"tool_result"}` // which is refused: the call goes on
	})
	if _, err := w.client(t, "rt-mara").RAPInvoke(t.Context(), "desk", client.RAPCall{
		Thread:    "sign-ins",
		ID:        id,
		User:      user,
		Operation: "look",
	}); err != nil {
		t.Fatal(err)
	}

	c = receive(t, "the call of the tool", got)

	return c, w.machines.post(c.URL, c.signIn(link))
}

// signIn returns a message that asks for a sign-in.
func (c machineCall) signIn(link string) string {
	text, _ := json.Marshal(link) // texts always have a form

	return fmt.Sprintf(`{"type":"oauth","group_id":%q,"id":%q,"auth_url":%s}`, c.GroupID, c.ID, text)
}

// TestSignInsAreShownToTheirUserAlone: each channel shows a sign-in to the user of the call under
// any of their names. It is hidden from the asker, owners, administrators, other members of the
// group and people who have left. Webhooks and Slack channels contain nothing about it.
func TestSignInsAreShownToTheirUserAlone(t *testing.T) {
	t.Parallel()
	w := newEntrances(t)
	ways := waysToSeeSignIns()
	for _, c := range channels.All() {
		if _, walked := ways[c.Name]; !walked {
			t.Errorf("waysToSeeSignIns() lacks the channel %q", c.Name)
		}
	}
	const link = signInOrigin + "/authorize?state=1"
	call, status := w.signsIn(t, "c1", aliasOfZoe, link)
	if status != http.StatusOK {
		t.Fatalf("the tool is answered %d", status)
	}
	for name, sees := range ways {
		if sees == nil {
			continue
		}
		testwait.Until(t, name+" shows it", func() bool { return strings.Contains(sees(t, w, "zoe"), "idp.example") })
		if shown := html.UnescapeString(sees(t, w, "zoe")); !strings.Contains(shown, link) ||
			strings.Index(shown, "idp.example") > strings.Index(shown, link)+len("https://") {
			t.Errorf("%s: the host does not stand before the link\n%s", name, shown)
		}
		for _, who := range w.people() {
			if who == "zoe" {
				continue
			}
			if shown := sees(t, w, who); strings.Contains(shown, "idp.example") {
				t.Errorf("%s shows it to %s", name, who)
			}
		}
	}

	for _, token := range []string{"root", "mara-admin", "rt-mara", "rt-mara-2"} {
		if page, err := w.client(t, token).SignIns(t.Context()); err == nil {
			t.Errorf("the token %s sees %+v", token, page)
		}
	}

	w.machines.post(call.URL, call.result("done", ""))
	for name, sees := range ways {
		if sees != nil {
			testwait.Until(t, name+" shows it no more", func() bool {
				return !strings.Contains(sees(t, w, "zoe"), "idp.example")
			})
		}
	}

	w.slack.mu.Lock()
	everybody := strings.Join(w.slack.posted, "\n")
	w.slack.mu.Unlock()
	if everybody += strings.Join(w.hooks.bodies(), "\n"); strings.Contains(everybody, "idp.example") ||
		strings.Contains(everybody, "sign_in") {
		t.Errorf("others read of it:\n%s", everybody)
	}
	w.testNobodyNamed(t)
}

// testNobodyNamed: if the user of a call is unknown, its sign-in is shown to no one. If the call
// names no user, it is shown to the person of the token.
func (w *entrances) testNobodyNamed(t *testing.T) {
	t.Helper()
	for _, tt := range []struct{ user, sees string }{{stranger, ""}, {"", "mara"}} {
		user, sees := tt.user, tt.sees
		if _, status := w.signsIn(t, "for "+user, user, signInOrigin); status != http.StatusOK {
			t.Fatalf("the tool is answered %d", status)
		}
		for _, who := range []string{"mara", "zoe", "ben"} {
			page, err := w.client(t, who+"-cli").SignIns(t.Context())
			if err != nil || len(page.SignIns) > 0 != (who == sees) {
				t.Errorf("for %q: %s sees %+v, %v", user, who, page, err)
			}
		}
	}
}

// hostileSignIns returns links that try to be something else, each with
// whether the tool's message is taken and the host that is shown then.
func hostileSignIns() map[string]struct {
	taken bool
	host  string
} {
	type link = struct {
		taken bool
		host  string
	}

	return map[string]link{
		"javascript:alert(document.cookie)//idp.example":                   {},
		"data:text/html,<script>alert(1)</script>":                         {},
		"http://idp.example/":                                              {},
		"https://user:pw@idp.example/":                                     {},
		"https://idp.example@evil.example/":                                {},
		"https://idp.example\\@evil.example/":                              {},
		"https://іdp.example/":                                             {},
		"https://idp.example/\u202egro.live":                               {},
		"https://idp.example/\x1b[2J":                                      {},
		"https://idp\u200b.example/":                                       {},
		signInOrigin + "/" + strings.Repeat("a", 4096):                     {},
		"https://xn--dp-fla.example/":                                      {true, "xn--dp-fla.example"},
		"https://idp.example.evil.example/":                                {true, "idp.example.evil.example"},
		"https://Idp.exampIe/":                                             {true, "idp.exampie"},
		"https://idp.example:8443/":                                        {true, "idp.example:8443"},
		"https://" + strings.Repeat("idp.example.", 100) + "evil.example/": {true, ".evil.example"},
	}
}

// TestNoSignInLeadsElsewhere: a link that isn't a plain https address of a registered host can't be
// followed anywhere. If its message is accepted, its host is shown with a warning.
func TestNoSignInLeadsElsewhere(t *testing.T) {
	t.Parallel()
	w := newEntrances(t)
	call, status := w.signsIn(t, "c1", "zoe", signInOrigin+"/first")
	if status != http.StatusOK {
		t.Fatalf("the tool is answered %d", status)
	}
	for link, want := range hostileSignIns() {
		status := http.StatusBadRequest
		if want.taken {
			status = http.StatusOK
		}
		if got := w.machines.post(call.URL, call.signIn(link)); got != status {
			t.Errorf("%.60q is answered %d", link, got)
			continue
		}
		if !want.taken {
			continue
		}
		for name, sees := range waysToSeeSignIns() {
			if sees == nil {
				continue
			}
			testwait.Until(t, name+" shows "+want.host, func() bool {
				return strings.Contains(sees(t, w, "zoe"), want.host)
			})
			shown := sees(t, w, "zoe")
			if i := strings.IndexFunc(shown, undrawable); name != "terminal" && i >= 0 {
				t.Errorf("%s: %q is drawn", name, shown[max(0, i-20):min(len(shown), i+20)])
			}
			if strings.Contains(strings.ToLower(shown), strings.ToLower(link)) ||
				strings.Contains(shown, `rel="noopener noreferrer"`) || strings.Contains(shown, "/first") {
				t.Errorf("%s: %.60q can be followed\n%s", name, link, shown)
			}
			if name != "HTTP API" && !strings.Contains(shown, "Do not sign in") {
				t.Errorf("%s does not warn of %.60q\n%s", name, link, shown)
			}
		}
	}
}

// TestSignInsInWatch: the live list shows the address of a sign-in only if its origin is
// registered.
func TestSignInsInWatch(t *testing.T) {
	t.Parallel()
	w := newEntrances(t)
	w.signsIn(t, "c1", "zoe", signInOrigin)
	w.signsIn(t, "c2", "zoe", "https://evil.example")
	watch := func(who string) string {
		screen := &terminal{in: strings.NewReader("q")}
		if code := w.run(t, screen, who+"-cli", "watch"); code != 0 {
			t.Errorf("exit %d\n%s", code, screen.out.String())
		}
		return screen.out.String()
	}
	holds(t, watch("zoe"), "Sign in at idp.example: the tool server machines",
		"Not registered, do not sign in: evil.example", "`assent sign-ins` shows the addresses")
	if shown := watch("ben"); strings.Contains(shown, "idp.example") {
		t.Errorf("ben sees\n%s", shown)
	}
	holds(t, w.commands(t, "zoe", "sign-ins"), "Sign in at idp.example: ", "\n  "+signInOrigin+"\n")
	if shown := w.commands(t, "zoe", "sign-ins"); strings.Contains(shown, "https://evil.example") {
		t.Errorf("an address that isn't registered:\n%s", shown)
	}
	var page openapi.SignIns
	if err := json.Unmarshal([]byte(w.commands(t, "zoe", "sign-ins", "--json")), &page); err != nil ||
		len(page.SignIns) != 2 || page.SignIns[0].Host != "evil.example" || page.SignIns[0].Link != "" {
		t.Errorf("%+v, %v", page, err)
	}
	holds(t, w.commands(t, "ben", "sign-ins"), "no sign-ins")
}

// signInServe is the configuration of a service whose process is killed.
const signInServe = `store: s.db
key: k
listen: %s
tenants:
  - name: default
    agents: [desk.agf.yaml]
    policies: [.]
    people: people.yaml
    notify:
      slack: {team: %s, token_file: slack.token, signing_secret_file: slack.signing, channels: {"": C0ALL},
        arguments: true, api: "%s/api/", loopback: true}
    rap:
      runtimes:
        - {agent: desk, servers: [{name: machines, url: "%s", allow: ["%s"], answered_by: [ops]}]}
`

// TestSignInsSurviveAKill: the requested sign-ins of a process that was killed with -9 are kept.
// The next process shows them, notifies Slack, and withdraws them when the call ends.
func TestSignInsSurviveAKill(t *testing.T) {
	t.Parallel()
	h := opsFiles(t)
	m := newMachines(t)
	slack := newSlackPeer(t)
	m.says(func(machineCall) string { return `{"type":"tool_result"}` }) // which is refused: the call goes on
	listen := freeAddress(t)
	writeFiles(t, h.dir, map[string]string{
		"slack.token":   "xoxb-1",
		"slack.signing": slackSigning,
		"people.yaml":   strings.Replace(opsPeople, "{id: zoe,", `{id: zoe, also: ["slack:U0ZOE"],`, 1),
		"serve.yaml":    fmt.Sprintf(signInServe, listen, slackTeam, slack.URL, m.URL, signInOrigin),
	})
	bin, err := exec.LookPath("assent")
	must.Do(t, err)
	h.ready.API = "http://" + listen
	lives := func() (kill func()) {
		t.Helper()
		log, err := os.OpenFile(filepath.Join(h.dir, "log"), os.O_CREATE|os.O_APPEND|os.O_WRONLY, 0o600)
		must.Do(t, err)
		defer log.Close()
		cmd := exec.Command(bin, "serve", "--config", filepath.Join(h.dir, "serve.yaml"))
		cmd.Dir = h.dir
		cmd.Stdout = log
		cmd.Stderr = log
		must.Do(t, cmd.Start())
		kill = func() {
			_ = cmd.Process.Kill() // SIGKILL
			_ = cmd.Wait()
		}
		t.Cleanup(kill)
		testwait.Until(t, "the service answers", func() bool {
			health, err := h.client(t, "zoe-cli").Ready(t.Context())
			return err == nil && health != nil
		})

		return kill
	}
	t.Cleanup(func() {
		if text, err := os.ReadFile(filepath.Join(h.dir, "log")); err == nil && t.Failed() {
			t.Logf("%s", text)
		}
	})
	kill := lives()
	h.calls(t, "rt-mara", client.RAPCall{Thread: "t", ID: "c1", User: "zoe", Operation: "look"})
	testwait.Until(t, "the tool is called", func() bool { return len(m.calls("look")) == 1 })
	c := m.calls("look")[0]
	shows := func() []openapi.SignIn {
		page, err := h.client(t, "zoe-cli").SignIns(t.Context())
		must.Do(t, err)
		return page.SignIns
	}
	message := func() string {
		slack.mu.Lock()
		defer slack.mu.Unlock()
		return slack.direct[messagesOf("U0ZOE")]
	}
	if status := m.post(c.URL, c.signIn(signInOrigin+"/a")); status != http.StatusOK {
		t.Fatalf("the tool is answered %d", status)
	}
	kill()

	kill = lives()
	if all := shows(); len(all) != 1 || all[0].Host != "idp.example" || all[0].Link != signInOrigin+"/a" ||
		all[0].Agent != "desk" {
		t.Errorf("after the kill: %+v", all)
	}
	testwait.Until(t, "Slack tells zoe", func() bool { return strings.Contains(message(), signInOrigin+"/a") })
	kill()

	lives()
	if status := m.post(c.URL, c.result("done", "")); status != http.StatusOK {
		t.Fatalf("the tool is answered %d", status)
	}
	if all := shows(); len(all) != 0 {
		t.Errorf("after its end: %+v", all)
	}
	testwait.Until(t, "Slack takes it back", func() bool { return strings.Contains(message(), "no longer needed") })
}
