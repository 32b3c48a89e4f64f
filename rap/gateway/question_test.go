package gateway

import (
	"bytes"
	"encoding/json"
	"errors"
	"net/http"
	"net/http/httptest"
	"strings"
	"testing"
	"time"
	"unicode"
	"unicode/utf8"

	"pgregory.net/rapid"

	"github.com/assent-dev/assent/internal/must"
	"github.com/assent-dev/assent/policy"
	"github.com/assent-dev/assent/rap"
	"github.com/assent-dev/assent/rap/peer"
	"github.com/assent-dev/assent/resolve"
)

func TestShowsCalls(t *testing.T) {
	long := `{"x":"` + strings.Repeat("é", 5000) + `"}`
	hidden := &policy.Require{Arguments: policy.Arguments{Redact: []string{"a"}}}
	label := func(json.RawMessage) string { return "write\n12\u202e bytes" }
	for name, tt := range map[string]struct {
		args  string
		label func(json.RawMessage) string
		r     *policy.Require
		want  []string // parts of the prompt
		brief string
		cut   bool
	}{
		"plain": {
			args:  `{ "a" : "b  c" , "d":[1, 2]}`,
			want:  []string{`Arguments: {"a":"b  c","d":[1,2]}`},
			brief: `{"a":"b  c","d":[1,2]}`,
		},
		"quotes": {args: `{"a":"\" , \\"}`, want: []string{`Arguments: {"a":"\" , \\"}`}, brief: `{"a":"\" , \\"}`},
		"control": {
			args:  "{\"a\":\"\u202e\u200b\"}",
			want:  []string{`\u{202e}\u{200b}`},
			brief: `{"a":"\u{202e}\u{200b}"}`,
		},
		"right to left": {
			args:  `{"a":"שלום","b":1}`,
			want:  []string{"{\"a\":\u2068\"שלום\"\u2069,\"b\":1}"},
			brief: "{\"a\":\u2068\"שלום\"\u2069,\"b\":1}",
		},
		"label": {
			args:  `{}`,
			label: label,
			want:  []string{`In short: write\u{a}12\u{202e} bytes`, "Arguments: {}"},
			brief: `write\u{a}12\u{202e} bytes`,
		},
		"empty label": {
			args:  `{}`,
			label: func(json.RawMessage) string { return "" },
			brief: `{}`,
		},
		"broken label": {
			args:  `{}`,
			label: func(json.RawMessage) string { panic("no") },
			brief: `{}`,
		},
		"long": {
			args:  long,
			want:  []string{"(cut: 4000 of 10008 bytes are shown)"},
			brief: long[:300] + "… (cut: 300 of 10008 bytes are shown)",
			cut:   true,
		},
		"hidden": {
			args:  `{"a":"secret"}`,
			label: label,
			r:     hidden,
			want:  []string{"hidden by the rules"},
			brief: "(arguments hidden by the rules)",
			cut:   true,
		},
		"the rules' say": {args: `{}`, want: []string{"The rules say: first\n  second"}, brief: `{}`},
	} {
		c := &record{Arguments: []byte(tt.args), Part: call{Operation: "write"}}
		j := &judgment{
			op:       &operation{Operation: rap.Operation{Label: tt.label}},
			Decision: resolve.Decision{Message: "first\nsecond", Require: tt.r},
		}
		v := show(c, j)
		prompt := v.prompt("Files", "write")
		for _, want := range tt.want {
			if !strings.Contains(prompt, want) {
				t.Errorf("%s: no %q in %q", name, want, prompt)
			}
		}
		if v.brief != tt.brief || v.cut != tt.cut || strings.Contains(prompt, "secret") {
			t.Errorf("%s: brief %q, cut %t, prompt %q", name, v.brief, v.cut, prompt)
		}
	}
}

// Whatever the arguments are, they can't start a line, contain control characters, or reorder
// the surrounding text.
func TestShowsAnyArguments(t *testing.T) {
	rapid.Check(t, func(t *rapid.T) {
		text := rapid.String().Draw(t, "text")
		args := must.Get(json.Marshal(map[string]string{"a": text, "b\n": text}))(t)
		args = []byte(strings.NewReplacer(`\u2028`, "\u2028", `\u003c`, "<").Replace(string(args)))
		v := show(&record{Arguments: args}, &judgment{op: &operation{}})
		shown := strings.NewReplacer("\u2068", "", "\u2069", "").Replace(v.arguments)
		bad := func(r rune) bool {
			return r == utf8.RuneError || unicode.In(r, unicode.Cc, unicode.Cf, unicode.Zl, unicode.Zp)
		}
		if i := strings.IndexFunc(shown, bad); i >= 0 && !strings.ContainsRune(text, utf8.RuneError) {
			t.Fatalf("%q at %d of %q", shown[i:], i, shown)
		}
		if strings.Count(v.arguments, "\u2068") != strings.Count(v.arguments, "\u2069") {
			t.Fatalf("isolates that do not end: %q", v.arguments)
		}
	})
}

// Names of threads of two callers never collide.
func TestSessionNamesDiffer(t *testing.T) {
	word := rapid.StringMatching(`[ab/%]{1,5}`)
	rapid.Check(t, func(t *rapid.T) {
		c1 := word.Draw(t, "caller")
		t1 := word.Draw(t, "thread")
		c2 := word.Draw(t, "other caller")
		t2 := word.Draw(t, "other thread")
		if (sessionName(c1, t1) == sessionName(c2, t2)) != (c1 == c2 && t1 == t2) {
			t.Fatalf("%q %q and %q %q", c1, t1, c2, t2)
		}
	})
	if sessionName("a", "b/x") == sessionName("a/b", "x") {
		t.Error("one caller has a thread of another")
	}
}

func TestBoundsWhatItOffers(t *testing.T) {
	d := &decider{base: &base{cfg: Config{Grants: SessionGrants{Offer: true, For: time.Hour, Uses: 10}}}}
	for name, tt := range map[string]struct {
		r    *policy.Require
		uses int
		life time.Duration
	}{
		"no rules":   {nil, 10, time.Hour},
		"no bounds":  {&policy.Require{}, 10, time.Hour},
		"forbidden":  {&policy.Require{Grants: policy.Grants{Forbid: true}}, 0, 0},
		"fewer":      {&policy.Require{Grants: policy.Grants{MaxUses: 4}}, 4, time.Hour},
		"more":       {&policy.Require{Grants: policy.Grants{MaxUses: 40}}, 10, time.Hour},
		"shorter":    {&policy.Require{Grants: policy.Grants{MaxAge: time.Minute}}, 10, time.Minute},
		"longer":     {&policy.Require{Grants: policy.Grants{MaxAge: 9 * time.Hour}}, 10, time.Hour},
		"in session": {&policy.Require{Grants: policy.Grants{Session: true}}, 10, time.Hour},
	} {
		if uses, life := d.offer(tt.r); uses != tt.uses || life != tt.life {
			t.Errorf("%s: %d, %s", name, uses, life)
		}
	}

	d.cfg.Grants.Offer = false
	if uses, life := d.offer(nil); uses != 0 || life != 0 {
		t.Errorf("not offered: %d, %s", uses, life)
	}
}

func TestEndpoint(t *testing.T) {
	far := httptest.NewServer(http.HandlerFunc(func(w http.ResponseWriter, req *http.Request) {
		body := make([]byte, 100)
		n, _ := req.Body.Read(body) // Read returns the whole body
		switch {
		case bytes.Contains(body, []byte("fail")):
			http.Error(w, "secret", 500)
			return
		case bytes.Contains(body, []byte("text")):
			return
		case bytes.Contains(body, []byte("bytes")):
			body, n = []byte("\"\xff\""), 3
		}

		w.Header().Set("Content-Type", "application/json")
		_, _ = w.Write(body[:n])
	}))
	defer far.Close()
	op := must.Get(Endpoint(rap.Operation{Name: "look"}, peer.Config{URL: far.URL + "/api"}))(t)
	for args, want := range map[string]string{
		`{ "a":1}`:    `{ "a":1}`,
		`{"fail":1}`:  "answered 500",
		`{"text":1}`:  "the outcome is unknown",
		`{"bytes":1}`: "is not text",
	} {
		out, err := op.Run(t.Context(), rap.Job{Arguments: []byte(args)})
		var public *rap.PublicError
		if got := out.Text; err == nil && got != want ||
			err != nil && (!errors.As(err, &public) || !strings.Contains(public.Text, want)) {
			t.Errorf("%s: %q, %v", args, got, err)
		}
	}

	if _, err := Endpoint(op, peer.Config{URL: "ftp://far.example"}); err == nil {
		t.Error("taken")
	}
	if _, err := Endpoint(op, peer.Config{Allow: []string{far.URL}}); err == nil {
		t.Error("an endpoint without an address")
	}
}
