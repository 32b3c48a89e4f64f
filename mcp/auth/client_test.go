package auth_test

import (
	"errors"
	"io"
	"net/http"
	"strings"
	"sync"
	"testing"
	"time"

	"github.com/assent-dev/assent/internal/must"
	"github.com/assent-dev/assent/mcp/auth"
	"github.com/assent-dev/assent/mcp/auth/authtest"
)

func clientOf(t *testing.T, i *authtest.Issuer, change func(*auth.ClientConfig)) (*auth.Client, *clock) {
	t.Helper()
	at := &clock{now: time.Now()}
	cfg := auth.ClientConfig{
		Issuer:   i.URL,
		ID:       "assent",
		Secret:   func() (string, error) { return "hush hush", nil },
		Scopes:   []string{"a", "b"},
		Resource: "https://tracker.example.com/mcp",
		TLS:      i.Roots(),
		Now:      at.read,
	}
	if change != nil {
		change(&cfg)
	}
	c := must.Get(auth.NewClient(cfg))(t)
	return c, at
}

// token checks the returned token.
func token(t *testing.T, c *auth.Client, refused, want string) {
	t.Helper()
	if got, err := c.Token(t.Context(), refused); err != nil || got != want {
		t.Errorf("got %q, %v, expected %s", got, err, want)
	}
}

func TestTokensAreKept(t *testing.T) {
	i := authtest.New(t)
	i.Gives(`,"expires_in":600`)
	c, at := clientOf(t, i, nil)
	var all sync.WaitGroup
	for range 20 {
		all.Go(func() { token(t, c, "", "t1") })
	}
	all.Wait()
	at.forward(560 * time.Second)
	token(t, c, "", "t1")
	at.forward(20 * time.Second)
	token(t, c, "", "t2")
	asked := i.Grants[0]
	id, secret, _ := asked.BasicAuth()
	if id != "assent" || secret != "hush+hush" || len(i.Grants) != 2 {
		t.Errorf("%d grants, of %q with %q", len(i.Grants), id, secret)
	}
	for name, want := range map[string]string{
		"grant_type": "client_credentials",
		"scope":      "a b",
		"resource":   "https://tracker.example.com/mcp",
	} {
		if got := asked.PostForm.Get(name); got != want {
			t.Errorf("%s is %q, expected %q", name, got, want)
		}
	}
}

// TestARefusedTokenIsRenewed: a token that was just issued is not renewed, otherwise a server that
// refuses all tokens would cause a new one for each call.
func TestARefusedTokenIsRenewed(t *testing.T) {
	i := authtest.New(t)
	i.Gives("")
	c, at := clientOf(t, i, nil)
	token(t, c, "", "t1")
	token(t, c, "t1", "t1")
	at.forward(time.Minute)
	token(t, c, "", "t1")
	token(t, c, "t1", "t2")
	token(t, c, "t1", "t2") // somebody else was refused with the same token
	if i.Count("/token") != 2 {
		t.Errorf("%d tokens were got", i.Count("/token"))
	}
}

func TestTokensThatCanNotBeHad(t *testing.T) {
	i := authtest.New(t)
	answer := func(status int, body string) func() {
		return func() {
			i.Grant = func(w http.ResponseWriter, _ int) {
				w.Header().Set("Content-Type", "application/json")
				w.WriteHeader(status)
				_, _ = io.WriteString(w, body)
			}
		}
	}
	for name, test := range map[string]struct {
		set  func()
		want string
	}{
		"refused":  {answer(401, `{"error":"invalid_client","error_description":"hush"}`), `status 401, "invalid_client"`},
		"broken":   {answer(200, `{"access_token":`), "can't be read"},
		"no token": {answer(200, `{}`), "can't be read"},
		"not ours": {answer(200, `{"access_token":"hush","token_type":"DPoP"}`), "expected Bearer"},
		"down":     {func() { i.Down = true }, "metadata can't be fetched"},
		"moved":    {func() { i.Moved = "https://login.example.com" }, "metadata can't be fetched"},
		"private":  {func() { i.Meta = map[string]any{"token_endpoint": "https://10.0.0.1/"} }, "may not be reached"},
		"another's": {func() { i.Meta = map[string]any{"issuer": "https://login.example.com"} },
			"the issuer's metadata is that of"},
	} {
		t.Run(name, func(t *testing.T) {
			i.Set(func() {
				i.Down, i.Moved = false, ""
				i.Meta, i.Grant = nil, nil
				test.set()
			})
			c, _ := clientOf(t, i, nil)
			_, err := c.Token(t.Context(), "")
			if err == nil || !strings.Contains(err.Error(), test.want) || strings.Contains(err.Error(), "hush") {
				t.Errorf("got %v, expected %s", err, test.want)
			}
		})
	}
}

func TestAnIssuerThatIsDownIsLeftInPeace(t *testing.T) {
	i := authtest.New(t)
	i.Gives("")
	i.Set(func() { i.Down = true })
	c, at := clientOf(t, i, func(cfg *auth.ClientConfig) { cfg.Issuer, cfg.TokenURL = "", i.URL+"/token" })
	for range 5 {
		if _, err := c.Token(t.Context(), ""); err == nil {
			t.Fatal("a token came of nowhere")
		}
	}

	if n := i.Count("/token"); n > 2 { // the first attempt tries both ways to show the secret
		t.Errorf("it was asked %d times", n)
	}
	i.Set(func() { i.Down = false })
	at.forward(4 * time.Second)
	token(t, c, "", "t1")
}

func TestASecretThatCanNotBeRead(t *testing.T) {
	i := authtest.New(t)
	lost := errors.New("the file is gone")
	c, _ := clientOf(t, i, func(cfg *auth.ClientConfig) {
		cfg.Secret = func() (string, error) { return "", lost }
	})
	if _, err := c.Token(t.Context(), ""); !errors.Is(err, lost) || i.Count("/token") != 0 {
		t.Errorf("got %v", err)
	}
}

func TestClientsThatCanNotWork(t *testing.T) {
	for _, cfg := range []auth.ClientConfig{
		{},
		{Issuer: "https://a.example", TokenURL: "https://a.example/token"},
		{TokenURL: "http://a.example/token"},
	} {
		if _, err := auth.NewClient(cfg); err == nil {
			t.Errorf("%+v is accepted", cfg)
		}
	}
}
