package neighbours

import (
	"crypto"
	"crypto/rand"
	"crypto/rsa"
	"crypto/sha256"
	"encoding/base64"
	"encoding/json"
	"errors"
	"math/big"
	"net"
	"net/http"
	"net/http/httptest"
	"net/url"
	"sync"
	"sync/atomic"
	"time"
)

// provider is a local OpenID Connect provider that exchanges codes as slowly as a remote one. It
// signs in mara.
type provider struct {
	server *httptest.Server
	url    string
	key    *rsa.PrivateKey
	posts  atomic.Int64 // codes that it was asked to exchange

	mu    sync.Mutex
	codes map[string]url.Values // code → the request that it was given for
}

// exchangeTime is the duration of a code exchange.
const exchangeTime = 700 * time.Millisecond

func startProvider() (*provider, error) {
	key, err := rsa.GenerateKey(rand.Reader, 2048)
	if err != nil {
		return nil, err
	}
	p := &provider{key: key, codes: map[string]url.Values{}}
	mux := http.NewServeMux()
	mux.HandleFunc("GET /.well-known/openid-configuration", p.discovery)
	mux.HandleFunc("GET /authorize", p.authorize)
	mux.HandleFunc("POST /token", p.token)
	mux.HandleFunc("GET /keys", p.keys)
	p.server = httptest.NewServer(mux)
	p.url = p.server.URL
	return p, nil
}

func (p *provider) close() { p.server.Close() }

func answer(w http.ResponseWriter, status int, body any) {
	w.Header().Set("Content-Type", "application/json")
	w.WriteHeader(status)
	_ = json.NewEncoder(w).Encode(body) // a client that has gone can't read an error either
}

func (p *provider) discovery(w http.ResponseWriter, _ *http.Request) {
	answer(w, http.StatusOK, map[string]any{
		"issuer":                                p.url,
		"authorization_endpoint":                p.url + "/authorize",
		"token_endpoint":                        p.url + "/token",
		"jwks_uri":                              p.url + "/keys",
		"id_token_signing_alg_values_supported": []string{"RS256"},
	})
}

func (p *provider) authorize(w http.ResponseWriter, r *http.Request) {
	q, code := r.URL.Query(), rand.Text()
	p.mu.Lock()
	p.codes[code] = q
	p.mu.Unlock()
	back := url.Values{"code": {code}, "state": {q.Get("state")}}
	http.Redirect(w, r, q.Get("redirect_uri")+"?"+back.Encode(), http.StatusFound)
}

func (p *provider) token(w http.ResponseWriter, r *http.Request) {
	p.posts.Add(1)
	<-time.After(exchangeTime)
	code := r.FormValue("code")
	p.mu.Lock()
	asked, known := p.codes[code]
	delete(p.codes, code)
	p.mu.Unlock()
	if !known {
		answer(w, http.StatusBadRequest, map[string]string{"error": "invalid_grant"})
		return
	}
	now := time.Now()
	signed, err := p.sign(map[string]any{
		"iss":            p.url,
		"sub":            "mara",
		"aud":            "assent",
		"exp":            now.Add(time.Minute).Unix(),
		"iat":            now.Unix(),
		"nonce":          asked.Get("nonce"),
		"email":          "mara@example.com",
		"email_verified": true,
	})
	if err != nil {
		answer(w, http.StatusInternalServerError, map[string]string{"error": "server_error"})
		return
	}
	answer(w, http.StatusOK, map[string]any{
		"access_token": "a",
		"token_type":   "Bearer",
		"id_token":     signed,
	})
}

func (p *provider) sign(claims map[string]any) (string, error) {
	head, err := json.Marshal(map[string]string{"alg": "RS256", "kid": "one"})
	body, failed := json.Marshal(claims)
	if err := errors.Join(err, failed); err != nil {
		return "", err
	}
	text := base64.RawURLEncoding.EncodeToString(head) + "." + base64.RawURLEncoding.EncodeToString(body)
	sum := sha256.Sum256([]byte(text))
	signature, err := rsa.SignPKCS1v15(rand.Reader, p.key, crypto.SHA256, sum[:])
	return text + "." + base64.RawURLEncoding.EncodeToString(signature), err
}

func (p *provider) keys(w http.ResponseWriter, _ *http.Request) {
	e := big.NewInt(int64(p.key.E)).Bytes()
	answer(w, http.StatusOK, map[string]any{"keys": []map[string]string{{
		"kty": "RSA",
		"kid": "one",
		"alg": "RS256",
		"use": "sig",
		"n":   base64.RawURLEncoding.EncodeToString(p.key.N.Bytes()),
		"e":   base64.RawURLEncoding.EncodeToString(e),
	}}})
}

// local restricts every connection of the measurement to this machine.
func local(address string) error {
	host, _, err := net.SplitHostPort(address)
	if ip := net.ParseIP(host); err != nil || ip == nil || !ip.IsLoopback() {
		return errors.New(address + " is not this machine")
	}
	return nil
}
