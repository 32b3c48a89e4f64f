package authtest

import (
	"crypto/rand"
	"crypto/sha256"
	"encoding/base64"
	"encoding/json"
	"fmt"
	"io"
	"maps"
	"net/http"
	"net/http/httptest"
	"net/url"
	"slices"
	"strings"
	"sync"
	"testing"
)

// Site is a protected resource at /mcp and its authorization server, over real HTTP. It follows the
// standards strictly: codes and refresh tokens are used once, with the client, the redirect URI, the
// resource and the proof of PKCE that they belong to. The exported fields may be changed by Set.
type Site struct {
	*httptest.Server
	MCP      http.Handler // answers at /mcp if the token is valid; nil: 200
	Resource map[string]any
	Meta     map[string]any       // over the usual members of the metadata
	Answers  func(url.Values)     // changes the issuer's answer to the browser
	Tokens   func(map[string]any) // changes the issuer's answer at the token endpoint
	Status   map[string]int       // answers of paths instead of the usual ones; 302 leads to another host
	Needs    string               // scope that a token needs at /mcp
	Life     int                  // of access tokens, in seconds
	Secret   string               // given to clients that register
	Scope    string               // in the challenge

	mu      sync.Mutex
	clients map[string]url.Values // redirect_uri and secret, by id
	grants  map[string]url.Values // of codes and refresh tokens that are not used yet
	valid   map[string]string     // scopes of access tokens
	calls   map[string]int
}

// NewSite starts a site.
func NewSite(t testing.TB) *Site {
	t.Helper()
	s := &Site{
		Life:    3600,
		clients: map[string]url.Values{},
		grants:  map[string]url.Values{},
		valid:   map[string]string{},
		calls:   map[string]int{},
	}
	s.Server = httptest.NewServer(s)
	t.Cleanup(s.Close)
	return s
}

// Set changes the site between requests.
func (s *Site) Set(change func()) {
	s.mu.Lock()
	defer s.mu.Unlock()
	change()
}

// Count returns how often a path was requested.
func (s *Site) Count(path string) int {
	s.mu.Lock()
	defer s.mu.Unlock()
	return s.calls[path]
}

// Revoke makes all access tokens invalid, and the refresh tokens too if all is true.
func (s *Site) Revoke(all bool) {
	s.Set(func() {
		clear(s.valid)
		if all {
			clear(s.grants)
		}
	})
}

// Browse opens a link as a browser does, and returns the status and text of the last page.
func Browse(t testing.TB, link string) (int, string) {
	t.Helper()
	resp, err := http.Get(link)
	if err != nil {
		t.Fatal(err)
	}
	defer resp.Body.Close()
	text, err := io.ReadAll(resp.Body)
	if err != nil {
		t.Fatal(err)
	}
	return resp.StatusCode, string(text)
}

func (s *Site) ServeHTTP(w http.ResponseWriter, r *http.Request) {
	s.mu.Lock()
	s.calls[r.URL.Path]++
	status := s.Status[r.URL.Path]
	if status == 0 && r.URL.Path == "/mcp" && s.opens(w, r) {
		mcp := s.MCP
		s.mu.Unlock()
		if mcp != nil {
			mcp.ServeHTTP(w, r)
		}
		return
	}
	defer s.mu.Unlock()
	_ = r.ParseForm()
	switch {
	case status == http.StatusFound:
		http.Redirect(w, r, "http://localhost:1/elsewhere", status)
	case status != 0:
		w.WriteHeader(status)
	case r.URL.Path == "/mcp":
	case r.URL.Path == "/.well-known/oauth-protected-resource/mcp":
		say(w, http.StatusOK, with(map[string]any{
			"resource":              s.URL + "/mcp",
			"authorization_servers": []string{s.URL},
		}, s.Resource))
	case r.URL.Path == "/.well-known/oauth-authorization-server":
		methods := []string{"none", "client_secret_basic", "client_secret_post"}
		say(w, http.StatusOK, with(map[string]any{
			"issuer":                                         s.URL,
			"authorization_endpoint":                         s.URL + "/authorize",
			"token_endpoint":                                 s.URL + "/token",
			"registration_endpoint":                          s.URL + "/register",
			"code_challenge_methods_supported":               []string{"S256"},
			"token_endpoint_auth_methods_supported":          methods,
			"authorization_response_iss_parameter_supported": true,
		}, s.Meta))
	case r.URL.Path == "/register" && r.Method == http.MethodPost:
		s.register(w, r)
	case r.URL.Path == "/authorize":
		s.authorize(w, r)
	case r.URL.Path == "/token" && r.Method == http.MethodPost:
		s.token(w, r)
	default:
		http.NotFound(w, r)
	}
}

// with returns members with changes. A nil value removes a member.
func with(all, change map[string]any) map[string]any {
	maps.Copy(all, change)
	maps.DeleteFunc(all, func(_ string, v any) bool { return v == nil })
	return all
}

func say(w http.ResponseWriter, status int, body any) {
	w.Header().Set("Content-Type", "application/json")
	w.WriteHeader(status)
	_ = json.NewEncoder(w).Encode(body)
}

// opens checks the token of a request, and answers 401 or 403 if it doesn't open /mcp.
func (s *Site) opens(w http.ResponseWriter, r *http.Request) bool {
	scopes, valid := s.valid[strings.TrimPrefix(r.Header.Get("Authorization"), "Bearer ")]
	const own = "/.well-known/oauth-protected-resource/mcp"
	challenge := fmt.Sprintf(`Bearer resource_metadata="%s"`, s.URL+own)
	if s.Status[own] == http.StatusNotFound {
		challenge = "Bearer"
	}
	if s.Scope != "" {
		challenge += fmt.Sprintf(`, scope="%s"`, s.Scope)
	}
	switch {
	case !valid:
		w.Header().Set("WWW-Authenticate", challenge)
		w.WriteHeader(http.StatusUnauthorized)
		return false
	case s.Needs != "" && !slices.Contains(strings.Fields(scopes), s.Needs):
		w.Header().Set("WWW-Authenticate", `Bearer error="insufficient_scope", scope="`+s.Needs+`"`)
		w.WriteHeader(http.StatusForbidden)
		return false
	}
	return true
}

func (s *Site) register(w http.ResponseWriter, r *http.Request) {
	var asked struct {
		Redirects []string `json:"redirect_uris"`
		Method    string   `json:"token_endpoint_auth_method"`
	}
	if json.NewDecoder(r.Body).Decode(&asked) != nil || len(asked.Redirects) != 1 {
		say(w, http.StatusBadRequest, map[string]string{"error": "invalid_client_metadata"})
		return
	}
	id := "client-" + rand.Text()
	s.clients[id] = url.Values{"redirect_uri": asked.Redirects, "secret": {s.Secret}}
	answer := map[string]any{"client_id": id, "redirect_uris": asked.Redirects}
	if s.Secret != "" {
		answer["client_secret"], answer["token_endpoint_auth_method"] = s.Secret, "client_secret_basic"
	}
	say(w, http.StatusCreated, answer)
}

// Client adds a client that was registered by hand.
func (s *Site) Client(id, secret, redirect string) {
	s.Set(func() { s.clients[id] = url.Values{"redirect_uri": {redirect}, "secret": {secret}} })
}

// authorize stands for the page at which a person signs in and agrees.
func (s *Site) authorize(w http.ResponseWriter, r *http.Request) {
	q := r.URL.Query()
	client, known := s.clients[q.Get("client_id")]
	if !known || client.Get("redirect_uri") != q.Get("redirect_uri") || q.Get("response_type") != "code" ||
		q.Get("code_challenge_method") != "S256" || len(q.Get("code_challenge")) != 43 || len(q.Get("state")) < 32 ||
		!strings.HasPrefix(q.Get("resource"), s.URL) {
		http.Error(w, "this can't be authorized: "+r.URL.RawQuery, http.StatusBadRequest)
		return
	}
	code := rand.Text()
	s.grants[code] = q
	answer := url.Values{"code": {code}, "state": {q.Get("state")}, "iss": {s.URL}}
	if s.Answers != nil {
		s.Answers(answer)
	}
	http.Redirect(w, r, q.Get("redirect_uri")+"?"+answer.Encode(), http.StatusFound)
}

func (s *Site) token(w http.ResponseWriter, r *http.Request) {
	form := r.PostForm
	id, secret, basic := r.BasicAuth()
	if !basic {
		id, secret = form.Get("client_id"), form.Get("client_secret")
	} else if text, err := url.QueryUnescape(secret); err == nil { // RFC 6749 section 2.3.1
		secret = text
	}
	client, known := s.clients[id]
	if !known || client.Get("secret") != secret || form.Get("client_id") != id {
		say(w, http.StatusUnauthorized, map[string]string{"error": "invalid_client"})
		return
	}
	used := form.Get("code")
	proven := true
	if form.Get("grant_type") == "refresh_token" {
		used = form.Get("refresh_token")
	} else {
		sum := sha256.Sum256([]byte(form.Get("code_verifier")))
		proven = base64.RawURLEncoding.EncodeToString(sum[:]) == s.grants[used].Get("code_challenge") &&
			form.Get("redirect_uri") == s.grants[used].Get("redirect_uri")
	}
	grant, fresh := s.grants[used]
	delete(s.grants, used)
	if !fresh || !proven || grant.Get("client_id") != id || grant.Get("resource") != form.Get("resource") {
		say(w, http.StatusBadRequest, map[string]string{"error": "invalid_grant", "error_description": "hush"})
		return
	}

	access, refresh := "access-"+rand.Text(), "refresh-"+rand.Text()
	s.valid[access], s.grants[refresh] = grant.Get("scope"), grant
	answer := map[string]any{
		"access_token": access, "refresh_token": refresh, "token_type": "Bearer", "expires_in": s.Life,
		"scope": grant.Get("scope"),
	}
	if s.Tokens != nil {
		s.Tokens(answer)
	}
	say(w, http.StatusOK, answer)
}
