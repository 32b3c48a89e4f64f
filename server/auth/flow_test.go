package auth

import (
	"net/url"
	"strings"
	"testing"
)

func TestLocal(t *testing.T) {
	for next, want := range map[string]string{
		"/":                             "/",
		"/r/1?a=b&c=/d":                 "/r/1?a=b&c=/d",
		"/r/1#x":                        "/r/1",
		"/r/%41":                        "/r/%41",
		"/a?next=//evil.example":        "/a?next=//evil.example",
		"":                              "/",
		"r/1":                           "/",
		"//":                            "/",
		"//?":                           "/",
		"//evil.example":                "/",
		"///evil.example":               "/",
		`/\evil.example`:                "/",
		`\\evil.example`:                "/",
		"/\t/evil.example":              "/",
		"/\n//evil.example":             "/",
		"https://evil.example":          "/",
		"https:evil.example":            "/",
		"javascript:alert(1)":           "/",
		"/.//evil.example":              "/",
		"/a//evil.example":              "/",
		"/%2f/evil.example":             "/",
		"/%5cevil.example":              "/",
		"/a/../../evil":                 "/",
		"/auth/sign-in":                 "/",
		"/auth/start/corp":              "/",
		"/\u2028":                       "/",
		"/%":                            "/",
		"/" + strings.Repeat("a", 1000): "/",
		"/%2e%2e/x":                     "/",
		" /r":                           "/",
	} {
		if got := local(next); got != want {
			t.Errorf("%q leads to %q, want %q", next, got, want)
		}
	}
}

// FuzzLocal checks that the path leads to this server, however a browser reads it.
func FuzzLocal(f *testing.F) {
	for _, next := range []string{
		"/r/1?a=b",
		"//evil.example",
		`/\evil`,
		"/\t/evil",
		"https:evil",
		"/a/../..//x",
		"/%2f%2fx",
	} {
		f.Add(next)
	}

	base, err := url.Parse("https://assent.example/auth/callback/corp?code=x")
	if err != nil {
		f.Fatal(err)
	}
	f.Fuzz(func(t *testing.T, next string) {
		got := local(next)
		clean := strings.NewReplacer("\t", "", "\n", "", "\r", "", "\\", "/").
			Replace(got)
			// what browsers make of it
		u, err := base.Parse(clean)
		if err != nil || u.Scheme != "https" || u.Host != base.Host || u.User != nil ||
			strings.HasPrefix(clean, "//") ||
			!strings.HasPrefix(clean, "/") {
			t.Fatalf("%q leads to %q: %v %v", next, got, u, err)
		}
		if again := local(got); again != got {
			t.Fatalf("%q leads to %q, and that to %q", next, got, again)
		}
	})
}

// FuzzFlow checks that only a cookie that this server encrypted is accepted as a flow. A
// browser can send anything.
func FuzzFlow(f *testing.F) {
	f.Add("")
	f.Add("e30")
	f.Add("eyJzdGF0ZSI6ImEiLCJub25jZSI6ImIiLCJ2ZXJpZmllciI6ImMifQ")
	seal, err := sealing(nil)
	if err != nil {
		f.Fatal(err)
	}
	a := &Auth{seal: seal}
	f.Fuzz(func(t *testing.T, text string) {
		if flow, ok := a.openFlow(text, "corp"); ok {
			t.Fatalf("%+v was not sealed here", flow)
		}
	})
}
