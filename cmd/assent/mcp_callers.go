package main

import (
	"cmp"
	"context"
	"crypto/rand"
	"crypto/sha256"
	"crypto/subtle"
	"encoding/hex"
	"errors"
	"fmt"
	"io/fs"
	"net"
	"net/http"
	"slices"
	"strings"
	"time"

	"github.com/assent-dev/assent/approval"
	"github.com/assent-dev/assent/cmd/internal/system"
	"github.com/assent-dev/assent/mcp/auth"
	mcpconfig "github.com/assent-dev/assent/mcp/config"
	mcpserver "github.com/assent-dev/assent/mcp/server"
	"github.com/assent-dev/assent/server/openapi"
	"github.com/assent-dev/assent/server/tokens"
	"github.com/assent-dev/assent/store"
)

// callerTokens holds the callers of a gateway that listens.
type callerTokens struct {
	all    []callerToken
	local  string         // the caller without a token, from this machine; "" none
	issued *auth.Resource // of issuers; nil: there are none
}

type callerToken struct {
	name string
	hash [sha256.Size]byte
}

func readCallerTokens(callers []mcpconfig.Caller) (out callerTokens, err error) {
	for _, c := range callers {
		if c.TokenFile == "" {
			out.local = cmp.Or(out.local, without(c))
			continue
		}
		hash, err := readTokenHash(c.TokenFile)
		if err != nil {
			return out, fmt.Errorf("caller %s: token_file: %w", c.Name, err)
		}
		out.all = append(out.all, callerToken{name: c.Name, hash: hash})
	}

	return out, nil
}

// without returns the name of a caller that needs no token.
func without(c mcpconfig.Caller) string {
	if c.Subject != "" {
		return ""
	}
	return c.Name
}

// readTokenHash reads the file of a caller's token: the token itself, or "sha256:" and its digest.
func readTokenHash(file string) (hash [sha256.Size]byte, err error) {
	secret, err := readSecret(file)
	if err != nil {
		return hash, err
	}
	digest, hashed := strings.CutPrefix(secret, "sha256:")
	if !hashed {
		return sha256.Sum256([]byte(secret)), nil
	}
	raw, err := hex.DecodeString(digest)
	if err != nil || len(raw) != len(hash) {
		return hash, fmt.Errorf("%s: expected sha256: and 64 hexadecimal digits", file)
	}
	copy(hash[:], raw)
	return hash, nil
}

// authenticate returns the caller of a request by its token. A request without a token from this
// machine belongs to the local caller.
func (t callerTokens) authenticate(r *http.Request) (caller string, refused *mcpserver.Refusal) {
	shown := r.Header.Values("Authorization")
	if len(shown) == 0 && t.local != "" && fromHere(r) {
		return t.local, nil
	}
	caller = t.find(shown)
	switch {
	case caller != "":
		return caller, nil
	case t.issued != nil:
		return t.issued.Authenticate(r)
	}

	return "", &mcpserver.Refusal{
		Status:    http.StatusUnauthorized,
		Challenge: "Bearer",
		Reason:    "expected the bearer token of a caller",
	}
}

// find returns the caller of a token, or an empty string if there is none.
func (t callerTokens) find(shown []string) (caller string) {
	for _, text := range shown {
		scheme, secret, _ := strings.Cut(text, " ")
		hash := sha256.Sum256([]byte(secret))
		for _, one := range t.all {
			same := subtle.ConstantTimeCompare(hash[:], one.hash[:]) == 1
			if same && len(shown) == 1 && strings.EqualFold(scheme, "Bearer") {
				caller = one.name
			}
		}
	}

	return caller
}

// fromHere reports whether a request comes from this machine and not through a proxy on it.
func fromHere(r *http.Request) bool {
	host, _, err := net.SplitHostPort(r.RemoteAddr)
	ip := net.ParseIP(host)
	forwarded := r.Header.Get("Forwarded") + r.Header.Get("X-Forwarded-For")
	return err == nil && ip != nil && ip.IsLoopback() && forwarded == ""
}

// writePersonToken writes a token by which a person answers to a file. It keeps a token that is
// valid for at least another day.
func writePersonToken(ctx context.Context, s store.Store, person, file string) error {
	secret, err := readSecret(file)
	if err != nil && !errors.Is(err, fs.ErrNotExist) {
		return fmt.Errorf("the token of the inbox: %w", err)
	}
	t, err := s.TokenByHash(ctx, tokens.Hash(secret))
	if err != nil && !errors.Is(err, approval.ErrNotFound) {
		return fmt.Errorf("the token of the inbox: %w", err)
	}
	if err == nil && stillGood(t, person) {
		return nil
	}
	made, err := createToken(ctx, s, ownTenant, openapi.TokenBody{
		Name:      "mcp-inbox-" + strings.ToLower(rand.Text()[:8]),
		Person:    person,
		ExpiresIn: "168h",
		Scopes:    []openapi.Scope{openapi.ScopeRead, openapi.ScopeVote},
	})
	if err != nil {
		return fmt.Errorf("the token of the inbox: %w", err)
	}
	return system.ReplacePrivate(file, made.Secret+"\n")
}

func stillGood(t store.Token, person string) bool {
	return t.Revoked == nil && t.Person == person && t.Tenant == ownTenant &&
		time.Now().Add(24*time.Hour).Before(t.Expires) && slices.Contains(t.Scopes, string(openapi.ScopeVote))
}
