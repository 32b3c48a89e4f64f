package cli

import (
	"bytes"
	"encoding/json"
	"errors"
	"fmt"
	"os"
	"path/filepath"
	"slices"
	"strings"
	"sync"
	"testing"
	"time"
	"unicode"

	"github.com/spf13/cobra"
	"pgregory.net/rapid"

	"github.com/assent-dev/assent/approval"
	"github.com/assent-dev/assent/client"
	"github.com/assent-dev/assent/internal/yamldoc"
	"github.com/assent-dev/assent/resolve"
	"github.com/assent-dev/assent/server/openapi"
)

// nasty draws texts with many characters that must not reach a terminal.
func nasty() *rapid.Generator[string] {
	return rapid.StringOf(rapid.OneOf(rapid.Rune(), rapid.RuneFrom([]rune("\x1b\a\b\r\n\t\x7f\u0085\u009b\u200b\u202e\u2028\ufeff\U000e0041 \\u{}"))))
}

func controls(text string) bool {
	return strings.ContainsFunc(text, func(r rune) bool { return r != '\n' && !unicode.IsPrint(r) })
}

// TestPrinterProperty: whatever the arguments are, what is printed has as many lines as the format, and no control byte.
func TestPrinterProperty(t *testing.T) {
	rapid.Check(t, func(t *rapid.T) {
		text := nasty().Draw(t, "text")
		var out bytes.Buffer
		p := &printer{w: &out}
		p.printf("%s %s %s %v\n", text, styled{bold, text}, ready(text), errors.New(text))
		p.table([][]styled{heading("A", "B"), {cell(text), {red, ready(text)}}})
		s := &shower{printer: p}
		s.text("| ", strings.ReplaceAll(text, "\n", " "), scrub)
		if got := out.String(); controls(got) || strings.Count(got, "\n") != 4 {
			t.Fatalf("%q", got)
		}
		if again := scrub(scrub(text)); again != scrub(text) {
			t.Fatalf("scrubbed twice: %q, once: %q", again, scrub(text))
		}
	})
}

// TestJSONSafeProperty: the document stays the same document.
func TestJSONSafeProperty(t *testing.T) {
	rapid.Check(t, func(t *rapid.T) {
		doc := map[string]string{nasty().Draw(t, "key"): nasty().Draw(t, "value")}
		var out bytes.Buffer
		if err := (&printer{w: &out}).document(doc); err != nil {
			t.Fatal(err)
		}
		var back map[string]string
		if err := json.Unmarshal(out.Bytes(), &back); err != nil || controls(out.String()) || fmt.Sprint(back) != fmt.Sprint(doc) {
			t.Fatalf("%q: %v", out.String(), err)
		}
	})
}

// TestHiddenMessage: the author's message could repeat what policy hides.
func TestHiddenMessage(t *testing.T) {
	var out bytes.Buffer
	r := &approval.Request{Redact: []string{"ssn"}, Revisions: []approval.Revision{{
		Call: resolve.Call{Args: resolve.Raw(`{"ssn":"SECRET"}`)}, Decision: resolve.Decision{Message: "Pay to SECRET?"},
	}}}
	(&shower{printer: &printer{w: &out}, all: true}).request(r)
	if strings.Contains(out.String(), "SECRET") {
		t.Error(out.String())
	}
}

func TestListWithoutAMessage(t *testing.T) {
	var out bytes.Buffer
	p := &printer{w: &out}
	p.table(summaryRows([]approval.Summary{{ID: "apr_1"}, {ID: "apr_2", Message: "Pay?"}}, time.Now()))
	lines := strings.Split(out.String(), "\n")
	if !strings.Contains(lines[1], "hidden by policy") || !strings.Contains(lines[2], "Pay?") {
		t.Error(out.String())
	}
}

func TestTimes(t *testing.T) {
	for _, tt := range []struct {
		d    time.Duration
		want string
	}{{0, "0s"}, {90 * time.Second, "1m 30s"}, {26*time.Hour + time.Second, "1d 2h"}, {400 * time.Millisecond, "0s"}, {48 * time.Hour, "2d"}} {
		if got := span(tt.d); got != tt.want {
			t.Errorf("%v: %q, want %q", tt.d, got, tt.want)
		}
	}
	for text, want := range map[string]time.Duration{"90d": 2160 * time.Hour, "1d12h": 36 * time.Hour, "30m": 30 * time.Minute, "0d": 0} {
		if got, err := parseAge(text); err != nil || got != want {
			t.Errorf("%s: %v, %v", text, got, err)
		}
	}
	for _, text := range []string{"", "d", "-1d", "1d-2h", "soon", "9999999d", "1e9h", "-5m", "90d90d"} {
		if got, err := parseAge(text); err == nil {
			t.Errorf("%q: %v", text, got)
		}
	}
}

// FuzzParseAge: no text makes a negative time.
func FuzzParseAge(f *testing.F) {
	f.Add("90d12h")
	f.Fuzz(func(t *testing.T, text string) {
		if d, err := parseAge(text); err == nil && d < 0 {
			t.Errorf("%q: %v", text, d)
		}
	})
}

// TestKeyIsMadeOnce: starts at the same time agree on one key, and each file is whole.
func TestKeyIsMadeOnce(t *testing.T) {
	path := filepath.Join(t.TempDir(), "key")
	keys := make([]Key, 8)
	var all sync.WaitGroup
	for i := range keys {
		all.Go(func() {
			var err error
			if keys[i], _, err = MakeKey(path, "a host+name"); err != nil {
				t.Error(err)
			}
		})
	}
	all.Wait()
	for _, k := range keys {
		if k.Signer.PublicKey() != keys[0].Signer.PublicKey() || !bytes.Equal(k.Forms, keys[0].Forms) || len(k.Forms) != 32 {
			t.Error("two keys")
		}
	}
	if !strings.HasPrefix(keys[0].Signer.PublicKey(), "ahostname+") {
		t.Error(keys[0].Signer.PublicKey())
	}
	left, err := os.ReadDir(filepath.Dir(path))
	if err != nil || len(left) != 2 {
		t.Errorf("%v, %v", left, err)
	}
	for _, mode := range []os.FileMode{0o640, 0o604, 0o660, 0o777} {
		if err := os.Chmod(path, mode); err != nil {
			t.Fatal(err)
		}
		if _, err := LoadKey(path); err == nil || !strings.Contains(err.Error(), "chmod 600") {
			t.Errorf("%o: %v", mode, err)
		}
	}
	for name, path := range map[string]string{"a directory": t.TempDir(), "nowhere": filepath.Join(path, "key")} {
		if _, err := LoadKey(path); err == nil {
			t.Errorf("%s is no key", name)
		}
	}
}

// FuzzServeConfig: no file makes the reader panic, and what it accepts has a name for every tenant.
func FuzzServeConfig(f *testing.F) {
	f.Add("agents: [a]\npeople: p\nnotify: {webhooks: [{name: a, url: 'https://x', secret_file: s}], slack: {team: T, token_file: t, signing_secret_file: s, channels: {'': C}}}")
	f.Add("tenants: [{name: a, agents: x}, 1]\ndrain: 3\nstore: postgres://x")
	f.Fuzz(func(t *testing.T, text string) {
		path := filepath.Join(t.TempDir(), "c.yaml")
		if err := os.WriteFile(path, []byte(text), 0o600); err != nil {
			t.Fatal(err)
		}
		var errOut bytes.Buffer
		cfg, err := Assent{Streams: Streams{Err: &errOut}}.readServeConfig(path)
		if err != nil {
			return
		}
		for _, tenant := range cfg.Tenants {
			if tenant.Name == "" {
				t.Errorf("%q: a tenant without a name", text)
			}
		}
	})
}

// TestServeConfigReads everything that a file may say.
func TestServeConfigReads(t *testing.T) {
	dir := t.TempDir()
	path := write(t, filepath.Join(dir, "c.yaml"), `listen: 127.0.0.1:1
public_url: https://a.example
store: postgres://u@h/d
key: k
drain: 3s
tenant: acme
agents: a
policies: [p, /q]
people: people.yaml
case_sensitive_arguments: [tool grep, mcp_tool files/grep]
oidc: {issuer: https://idp.example, client_id: c, client_secret_file: s, groups_claim: roles}
notify:
  webhooks: [{name: ops, url_file: u, secret_file: [s1, s2], events: [request_*], agents: [desk], groups: [risk], loopback: true, networks: [10.0.0.0/8]}]
  slack: {team: T1, token_file: t, signing_secret_file: ss, channels: {risk: C1, "": C2}, arguments: true, api: http://127.0.0.1:1/, loopback: true}
limits:
  values: 1000
  memory: {total: 1GiB, tenant: 300 MiB, token: 1024}
  streams: {token: 7}
  open_requests: {tenant: 9, token: 8}
`)
	cfg, err := Assent{}.readServeConfig(path)
	if err != nil {
		t.Fatal(err)
	}
	tenant := cfg.Tenants[0]
	if cfg.Store != "postgres://u@h/d" || cfg.KeyFile != filepath.Join(dir, "k") || cfg.Drain != 3*time.Second || tenant.Name != "acme" ||
		tenant.Policies[1] != "/q" || tenant.Agents[0] != filepath.Join(dir, "a") || tenant.OIDC.GroupsClaim != "roles" ||
		!slices.Equal(tenant.CaseSensitive, []string{"tool grep", "mcp_tool files/grep"}) ||
		len(tenant.Webhooks[0].SecretFiles) != 2 || tenant.Webhooks[0].URLFile != filepath.Join(dir, "u") || tenant.Slack.Channels["risk"] != "C1" || !tenant.Slack.Arguments ||
		tenant.Slack.API != "http://127.0.0.1:1/" || !tenant.Slack.Loopback {
		t.Errorf("%+v\n%+v", cfg, tenant)
	}
	want := LimitsConfig{
		Values: 1000, Memory: Parts{Total: 1 << 30, Tenant: 300 << 20, Token: 1024}, Streams: Parts{Token: 7},
		Open: Parts{Tenant: 9, Token: 8},
	}
	if cfg.Limits != want {
		t.Errorf("%+v", cfg.Limits)
	}
}

// TestConfigRefuses wrong types with their place.
func TestConfigRefuses(t *testing.T) {
	for text, want := range map[string]string{
		"[]": "1:1", "dev: 1": "1:6", "drain: -1s": "1:8", "agents: {}": "1:9", "case_sensitive_arguments: [tool a, grep]": "1:36", "people: ''": "1:9", "notify: 3": "1:9",
		"notify: {slack: {team: T}}": "1:17", "tenants: [{agents: x}]": "1:11",
		"limits: {memory: {total: 1MB}}": "1:26", "limits: {memory: {total: 0}}": "1:26",
		"limits: {memory: {total: 9999999GiB}}": "1:26", "limits: {memory: 1}": "1:18",
		"limits: {streams: {token: 1KiB}}": "1:27", "limits: {streams: {tenant: 1, token: 2}}": "1:19",
		"limits: {polls: {total: 1, tenant: 2}}": "1:17",
		"limits: {open_requests: {total: 1}}":    "1:26", "limits: {values: -1}": "1:18",
		"limits: {stream: {token: 1}}": "1:10",
		"a: &x [*x]":                   "1:", "store: [": "1:",
	} {
		var errOut bytes.Buffer
		path := write(t, filepath.Join(t.TempDir(), "c.yaml"), text+"\n")
		if _, err := (Assent{Streams: Streams{Err: &errOut}}).readServeConfig(path); err == nil || !strings.Contains(errOut.String(), "c.yaml:"+want) {
			t.Errorf("%q: %v\n%s", text, err, errOut.String())
		}
	}
	if got := article(yamldoc.Mapping); got != "an object" {
		t.Error(got)
	}
}

// TestExposed: a token in the clear stays on the machine.
func TestExposed(t *testing.T) {
	for server, want := range map[string]bool{
		"https://a.example": false, "http://127.0.0.1:7717": false, "http://[::1]:1": false, "http://localhost": false, "http://a.example": true, "http://10.0.0.1": true, "http://127.0.0.1.evil.example": true,
	} {
		if got := exposed(server); got != want {
			t.Errorf("%s: %t", server, got)
		}
	}
}

func TestErrorsOfSeveralLines(t *testing.T) {
	var out strings.Builder
	cmd := &cobra.Command{Use: "assent", RunE: func(*cobra.Command, []string) error { return errors.New("no store:\n\tdial\x1b[1m") }}
	if code := run(cmd, Streams{Err: &out}, nil); code != ExitFailure || out.String() != "assent: no store:\n    dial\\u{1b}[1m\n" {
		t.Errorf("%d %q", code, out.String())
	}
}

func TestNextSteps(t *testing.T) {
	for code, want := range map[openapi.Code]string{
		openapi.CodeNotFound: "freeze --list", openapi.CodeUnavailable: "store (its log says why): try the same again in 2 seconds", openapi.CodeTokenExpired: "token create",
	} {
		if got := nextStep(&client.Problem{Problem: openapi.Problem{Code: code, NextAction: openapi.NextActionRetry, RetryAfter: 2}}); !strings.Contains(got, want) {
			t.Errorf("%s: %s", code, got)
		}
	}
}

func TestWatchShowsWhatWouldRun(t *testing.T) {
	var out strings.Builder
	now := time.Now()
	rows := waitingRows([]approval.Summary{{
		ID: "apr_06gvuikiueh5nv27o518u9ifn0", Agent: "trading-desk", Target: "tool rebalance_portfolio", Message: "Rebalance?", Deadline: now.Add(26 * time.Hour),
	}}, now)
	p := &printer{w: &out}
	p.table(rows)
	line := cutTo(strings.Split(out.String(), "\n")[1], 77)
	for _, want := range []string{"…u9ifn0", "in 1d 2h", "0/1", "tool rebalance_portfolio", "trading-desk", "Reb"} {
		if !strings.Contains(line, want) {
			t.Errorf("%q is not on the first 77 columns: %s", want, line)
		}
	}
}
