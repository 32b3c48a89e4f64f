package auth_test

import (
	"crypto"
	"crypto/ecdsa"
	"crypto/elliptic"
	"crypto/hmac"
	"crypto/rand"
	"crypto/rsa"
	"crypto/sha256"
	"encoding/base64"
	"encoding/json"
	"maps"
	"math/big"
	"net/http"
	"net/http/httptest"
	"net/url"
	"sync"
	"testing"
	"time"
)

const (
	clientID     = "assent-client"
	clientSecret = "s3cret+/ of the client"
)

// idp is an OpenID Connect provider with everything that a sign-in needs. The fields
// configure it; set them between requests.
type idp struct {
	*httptest.Server
	t   *testing.T
	now func() time.Time

	mu     sync.Mutex
	alg    string                        // RS256 (default), ES256; HS256 and none for attacks
	algs   []string                      // that the discovery document names
	claims map[string]any                // override the usual ones; nil removes one
	info   func(http.ResponseWriter)     // answers UserInfo; if nil there is no such endpoint
	answer func(map[string]any)          // changes the token answer
	meta   func(map[string]any)          // changes the discovery document
	down   bool                          // answers nothing but 503
	broken bool                          // the token endpoint fails
	kid    string                        // of the key that signs and is published
	codes  map[string]url.Values         // code → the authorization request
	asked  []url.Values                  // every authorization request
	keys   map[string]any                // kid → private key
	forged crypto.Signer                 // signs instead of the published key
	calls  map[string]int                // by path
	extra  func(q url.Values) url.Values // changes the parameters of the callback
}

func newIDP(t *testing.T, now func() time.Time) *idp {
	p := &idp{
		t:     t,
		now:   now,
		alg:   "RS256",
		algs:  []string{"RS256", "ES256", "HS256", "none"},
		kid:   "first",
		codes: map[string]url.Values{},
		keys:  map[string]any{},
		calls: map[string]int{},
	}
	mux := http.NewServeMux()
	mux.HandleFunc("GET /.well-known/openid-configuration", p.discovery)
	mux.HandleFunc("GET /authorize", p.authorize)
	mux.HandleFunc("POST /token", p.token)
	mux.HandleFunc("GET /keys", p.publish)
	mux.HandleFunc("GET /me", p.userInfo)
	p.Server = httptest.NewTLSServer(http.HandlerFunc(func(w http.ResponseWriter, r *http.Request) {
		p.mu.Lock()
		defer p.mu.Unlock()
		p.calls[r.URL.Path]++
		if p.down {
			http.Error(w, "down", http.StatusServiceUnavailable)
			return
		}
		mux.ServeHTTP(w, r)
	}))
	t.Cleanup(p.Close)
	return p
}

// set changes the switches between requests.
func (p *idp) set(change func()) {
	p.mu.Lock()
	defer p.mu.Unlock()
	change()
}

func reply(w http.ResponseWriter, status int, body any) {
	w.Header().Set("Content-Type", "application/json")
	w.WriteHeader(status)
	_ = json.NewEncoder(w).Encode(body)
}

func (p *idp) discovery(w http.ResponseWriter, _ *http.Request) {
	meta := map[string]any{
		"issuer":                                p.URL,
		"authorization_endpoint":                p.URL + "/authorize",
		"token_endpoint":                        p.URL + "/token",
		"jwks_uri":                              p.URL + "/keys",
		"end_session_endpoint":                  p.URL + "/end?theme=dark",
		"id_token_signing_alg_values_supported": p.algs,
	}
	if p.info != nil {
		meta["userinfo_endpoint"] = p.URL + "/me"
	}
	if p.meta != nil {
		p.meta(meta)
	}
	reply(w, http.StatusOK, meta)
}

func (p *idp) userInfo(w http.ResponseWriter, r *http.Request) {
	if r.Header.Get("Authorization") != "Bearer the-access-token" || p.info == nil {
		reply(w, http.StatusUnauthorized, map[string]any{"error": "invalid_token"})
		return
	}
	p.info(w)
}

func (p *idp) authorize(w http.ResponseWriter, r *http.Request) {
	q := r.URL.Query()
	p.asked = append(p.asked, q)
	if q.Get("client_id") != clientID || q.Get("response_type") != "code" ||
		q.Get("code_challenge_method") != "S256" || len(q.Get("code_challenge")) != 43 ||
		len(q.Get("state")) < 43 ||
		len(q.Get("nonce")) < 43 {
		p.t.Errorf("authorization request: %v", q)
	}

	code := rand.Text()
	p.codes[code] = q
	back := url.Values{"code": {code}, "state": {q.Get("state")}}
	if p.extra != nil {
		back = p.extra(back)
	}
	http.Redirect(w, r, q.Get("redirect_uri")+"?"+back.Encode(), http.StatusFound)
}

func (p *idp) token(w http.ResponseWriter, r *http.Request) {
	if p.broken {
		http.Error(w, "oh no, with a token=secret-of-the-idp", http.StatusBadGateway)
		return
	}
	user, password, _ := r.BasicAuth()
	id, _ := url.QueryUnescape(user)
	key, _ := url.QueryUnescape(password)
	request, ok := p.codes[r.FormValue("code")]
	sum := sha256.Sum256([]byte(r.FormValue("code_verifier")))
	if !ok || id != clientID || key != clientSecret || r.FormValue("redirect_uri") != request.Get("redirect_uri") ||
		base64.RawURLEncoding.EncodeToString(sum[:]) != request.Get("code_challenge") {
		reply(
			w,
			http.StatusBadRequest,
			map[string]any{"error": "invalid_grant", "error_description": "secret-of-the-idp"},
		)
		return
	}

	delete(p.codes, r.FormValue("code"))
	body := map[string]any{"access_token": "the-access-token", "token_type": "Bearer", "expires_in": 300}
	body["id_token"] = p.sign(p.about(request))
	if p.answer != nil {
		p.answer(body)
	}
	reply(w, http.StatusOK, body)
}

// about returns the provider's claims about the person.
func (p *idp) about(request url.Values) map[string]any {
	sum := sha256.Sum256([]byte("the-access-token"))
	c := map[string]any{
		"iss":            p.URL,
		"aud":            clientID,
		"sub":            "abc123",
		"nonce":          request.Get("nonce"),
		"iat":            p.now().Unix(),
		"exp":            p.now().Add(5 * time.Minute).Unix(),
		"email":          "Alice@example.com",
		"email_verified": true,
		"name":           "Alice Doe",
		"groups":         []string{"risk"},
		"at_hash":        base64.RawURLEncoding.EncodeToString(sum[:16]),
	}
	maps.Copy(c, p.claims)
	maps.DeleteFunc(c, func(_ string, v any) bool { return v == nil })
	return c
}

func part(v any) string {
	text, _ := json.Marshal(v)
	return base64.RawURLEncoding.EncodeToString(text)
}

func (p *idp) sign(claims map[string]any) string {
	text := part(map[string]any{"alg": p.alg, "kid": p.kid, "typ": "JWT"}) + "." + part(claims)
	sum := sha256.Sum256([]byte(text))
	var sig []byte
	switch p.alg {
	case "RS256":
		sig, _ = rsa.SignPKCS1v15(rand.Reader, p.signer().(*rsa.PrivateKey), crypto.SHA256, sum[:])
	case "ES256":
		r, s, _ := ecdsa.Sign(rand.Reader, p.signer().(*ecdsa.PrivateKey), sum[:])
		sig = append(r.FillBytes(make([]byte, 32)), s.FillBytes(make([]byte, 32))...)
	case "HS256": // signs with a key that both sides know
		mac := hmac.New(sha256.New, []byte(clientSecret))
		mac.Write([]byte(text))
		sig = mac.Sum(nil)
	}

	return text + "." + base64.RawURLEncoding.EncodeToString(sig)
}

// signer returns the current key, which is made when it is first needed.
func (p *idp) signer() any {
	if p.forged != nil {
		return p.forged
	}
	name := p.kid + p.alg
	switch {
	case p.keys[name] != nil:
	case name == "firstRS256":
		p.keys[name] = firstKey()
	default:
		p.keys[name] = newKey(p.t, p.alg)
	}

	return p.keys[name]
}

// firstKey is shared by all tests, because making an RSA key takes longer than most of
// them.
var firstKey = sync.OnceValue(func() *rsa.PrivateKey {
	key, err := rsa.GenerateKey(rand.Reader, 2048)
	if err != nil {
		panic(err)
	}
	return key
})

func newKey(t *testing.T, alg string) crypto.Signer {
	var key crypto.Signer
	var err error
	if alg == "ES256" {
		key, err = ecdsa.GenerateKey(elliptic.P256(), rand.Reader)
	} else {
		key, err = rsa.GenerateKey(rand.Reader, 2048)
	}
	must(t, err)
	return key
}

// publish lists the current key.
func (p *idp) publish(w http.ResponseWriter, _ *http.Request) {
	number := func(n *big.Int) string { return base64.RawURLEncoding.EncodeToString(n.Bytes()) }
	jwk := map[string]any{"kid": p.kid, "use": "sig"}
	switch key := p.keys[p.kid+p.alg].(type) {
	case *rsa.PrivateKey:
		maps.Copy(jwk, map[string]any{"kty": "RSA", "n": number(key.N), "e": number(big.NewInt(int64(key.E)))})
	case *ecdsa.PrivateKey:
		point, _ := key.PublicKey.Bytes() // 4, x, y
		maps.Copy(jwk, map[string]any{
			"kty": "EC",
			"crv": "P-256",
			"x":   base64.RawURLEncoding.EncodeToString(point[1:33]),
			"y":   base64.RawURLEncoding.EncodeToString(point[33:]),
		})
	default:
		reply(w, http.StatusOK, map[string]any{"keys": []any{}})
		return
	}

	reply(w, http.StatusOK, map[string]any{"keys": []any{jwk}})
}
