package auth_test

import (
	"net/http"
	"strings"
	"testing"
)

// says makes UserInfo answer with claims.
func says(claims map[string]any) func(http.ResponseWriter) {
	return func(w http.ResponseWriter) { reply(w, http.StatusOK, claims) }
}

// TestAsksUserInfoForWhatTheIDTokenLacks covers the address, email_verified and the groups,
// and a token that has all of them.
func TestAsksUserInfoForWhatTheIDTokenLacks(t *testing.T) {
	all := map[string]any{
		"sub":            "abc123",
		"email":          "Alice@example.com",
		"email_verified": true,
		"groups":         []string{"risk"},
		"name":           "Alice",
	}
	for name, c := range map[string]struct {
		token, info map[string]any
		want        string // groups
		asked       int
	}{
		"all in the token": {nil, map[string]any{"sub": "abc123", "groups": []string{"desk-heads"}},
			"[desk-heads risk]", 0},
		"nothing but the subject": {map[string]any{
			"email":          nil,
			"email_verified": nil,
			"groups":         nil,
			"name":           nil,
		}, all,
			"[desk-heads risk]", 1},
		"no groups":               {map[string]any{"groups": nil}, all, "[desk-heads risk]", 1},
		"groups nowhere":          {map[string]any{"groups": nil}, map[string]any{"sub": "abc123"}, "[desk-heads]", 1},
		"an address without word": {map[string]any{"email_verified": nil}, all, "[desk-heads risk]", 1},
		"groups of the token win": {map[string]any{"email": nil, "groups": []string{}}, all, "[desk-heads]", 1},
	} {
		t.Run(name, func(t *testing.T) {
			h := open(t, false)
			h.idp.claims, h.idp.info = c.token, says(c.info)
			if res := h.browser().get("/auth/start/corp"); res.body != "true acme alice@example.com "+c.want+
				" oidc corp /" {
				t.Errorf("%d %s\n%s", res.StatusCode, res.body, h.logged())
			}
			if n := h.idp.calls["/me"]; n != c.asked {
				t.Errorf("UserInfo was asked %d times", n)
			}
		})
	}
}

// TestUserInfoAttacks checks that a sign-in fails if UserInfo is about another person or
// can't be read.
func TestUserInfoAttacks(t *testing.T) {
	plain := map[string]any{"sub": "abc123", "email": "alice@example.com", "email_verified": true}
	for name, c := range map[string]struct {
		info   func(http.ResponseWriter)
		status int
		log    string
	}{
		"another subject": {says(map[string]any{
			"sub":            "eve",
			"email":          "alice@example.com",
			"email_verified": true,
		}),
			http.StatusForbidden, "somebody else"},
		"no subject": {says(map[string]any{"email": "alice@example.com", "email_verified": true}), http.StatusForbidden,
			"somebody else"},
		"not verified": {says(map[string]any{"sub": "abc123", "email": "alice@example.com"}), http.StatusForbidden,
			"nobody is known here"},
		"verified: false": {says(map[string]any{
			"sub":            "abc123",
			"email":          "alice@example.com",
			"email_verified": false,
		}),
			http.StatusForbidden, "nobody is known here"},
		"refused": {func(w http.ResponseWriter) {
			reply(w, http.StatusForbidden, map[string]any{"x": "secret-of-the-idp"})
		}, http.StatusForbidden, "refused UserInfo with status 403"},
		"no JSON": {func(w http.ResponseWriter) { _, _ = w.Write([]byte("secret-of-the-idp")) }, http.StatusForbidden,
			"can't be read"},
		"too long": {func(w http.ResponseWriter) {
			reply(w, http.StatusOK, map[string]any{"sub": "abc123", "padding": strings.Repeat("x", 2<<20)})
		}, http.StatusForbidden, "can't be read"},
		"broken": {func(w http.ResponseWriter) {
			http.Error(w, "secret-of-the-idp", http.StatusBadGateway)
		},
			http.StatusServiceUnavailable, "status 502"},
		"signed by another": {func(w http.ResponseWriter) {
			w.Header().Set("Content-Type", "application/jwt")
			_, _ = w.Write([]byte(part(map[string]any{"alg": "RS256", "kid": "first"}) + "." + part(plain) + ".AAAA"))
		}, http.StatusForbidden, "can't be read"},
	} {
		t.Run(name, func(t *testing.T) {
			h := open(t, false)
			h.idp.claims, h.idp.info = map[string]any{
				"email":          nil,
				"email_verified": nil,
				"groups":         nil,
			}, c.info
			b := h.browser()
			if res := b.get("/auth/start/corp"); res.StatusCode != c.status || b.who() != "" || len(h.entries) != 0 {
				t.Errorf("%d %s, %q", res.StatusCode, res.body, b.who())
			}
			if log := h.logged(); !strings.Contains(log, c.log) || strings.Contains(log, "secret-of-the-idp") ||
				strings.Contains(log, "the-access-token") {
				t.Errorf("log: %s", log)
			}
		})
	}

	t.Run("signed", func(t *testing.T) {
		h := open(t, false)
		h.idp.claims = map[string]any{"email": nil, "email_verified": nil, "groups": nil}
		h.idp.info = func(w http.ResponseWriter) {
			w.Header().Set("Content-Type", "application/jwt")
			_, _ = w.Write([]byte(h.idp.sign(plain)))
		}
		if res := h.browser().get("/auth/start/corp"); !strings.HasPrefix(res.body,
			"true acme alice@example.com [desk-heads]") {
			t.Errorf("%d %s\n%s", res.StatusCode, res.body, h.logged())
		}
	})
	t.Run("an address of one and the word of the other", func(t *testing.T) {
		for _, info := range []map[string]any{
			{
				"sub":            "abc123",
				"email":          "eve@example.com",
				"email_verified": true,
			}, {"sub": "abc123", "email_verified": true},
		} {
			h := open(t, false)
			h.idp.claims = map[string]any{
				"email":          "alice@example.com",
				"email_verified": nil,
				"groups":         nil,
			}
			h.idp.info = says(info)
			if res := h.browser().get("/auth/start/corp"); res.StatusCode != http.StatusForbidden {
				t.Errorf("%v: %d %s", info, res.StatusCode, res.body)
			}
		}
	})
	t.Run("plain http", func(t *testing.T) {
		h := open(t, false)
		h.idp.meta = func(m map[string]any) { m["userinfo_endpoint"] = "http://127.0.0.1/me" }
		if res := h.browser().get("/auth/start/corp"); res.StatusCode != http.StatusServiceUnavailable {
			t.Errorf("%d", res.StatusCode)
		}
	})
}

// TestAsksForTheScopesOfTheConfiguration also checks the scope openid, which is always
// requested.
func TestAsksForTheScopesOfTheConfiguration(t *testing.T) {
	for want, scopes := range map[string][]string{
		"openid email profile": nil,
		"openid groups":        {"groups"},
		"email openid groups":  {"email", "openid", "groups"},
	} {
		h := open(t, false)
		h.cfg.Providers[0].Scopes = scopes
		h.restart()
		h.browser().get("/auth/start/corp")
		if got := h.idp.asked[0].Get("scope"); got != want {
			t.Errorf("%v: asked for %q, want %q", scopes, got, want)
		}
	}
}

// TestARefusedSignInLogsWhatToWrite checks that the log has the issuer, the subject, the
// groups and the line for people.yaml.
func TestARefusedSignInLogsWhatToWrite(t *testing.T) {
	h := open(t, false)
	h.idp.claims = map[string]any{"sub": `e"ve`, "email": "eve@example.com", "groups": []string{"staff"}}
	if res := h.browser().get("/auth/start/corp"); res.StatusCode != http.StatusForbidden {
		t.Fatalf("%d %s", res.StatusCode, res.body)
	}
	log := strings.ReplaceAll(h.logged(), `\`, "")
	for _, want := range []string{"issuer=" + h.idp.URL, `subject="e"ve"`, "email=eve@example.com", "groups=[staff]",
		`also: ["oidc:` + h.idp.URL + `|e"ve"]`, "tenant=acme"} {
		if !strings.Contains(log, want) {
			t.Errorf("no %s in %s", want, log)
		}
	}

	if strings.Contains(log, "eyJ") || strings.Contains(log, "the-access-token") {
		t.Errorf("a token is logged: %s", log)
	}
}
