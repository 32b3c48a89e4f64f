package auth

import (
	"bytes"
	"context"
	"encoding/json"
	"errors"
	"fmt"
	"io"
	"io/fs"
	"os"
	"path/filepath"
	"strings"
	"time"

	"golang.org/x/oauth2"

	"github.com/assent-dev/assent/internal/filelock"
)

// signedIn is the content of the file of a sign-in.
type signedIn struct {
	Version  int      `json:"version"`
	Server   string   `json:"server"` // for whose address the person signed in
	Issuer   string   `json:"issuer"`
	Resource string   `json:"resource"`
	TokenURL string   `json:"token_url"`
	Client   string   `json:"client_id"`
	Secret   string   `json:"client_secret,omitempty"` // of a registration
	Method   string   `json:"auth_method"`             // none, client_secret_basic or client_secret_post
	Scopes   []string `json:"scopes,omitempty"`        // that were granted

	Access  string    `json:"access_token,omitempty"`
	Refresh string    `json:"refresh_token,omitempty"`
	Got     time.Time `json:"obtained"`
	Until   time.Time `json:"expires,omitzero"` // zero: until it is refused
	Ended   string    `json:"ended,omitempty"`  // why another sign-in is needed
}

const (
	fileVersion = 1
	maxFile     = 1 << 20
)

// The ways in which a client identifies itself at the token endpoint.
const (
	methodNone  = "none"
	methodBasic = "client_secret_basic"
	methodPost  = "client_secret_post"
)

func (k *signedIn) style() oauth2.AuthStyle {
	if k.Method == methodBasic {
		return oauth2.AuthStyleInHeader
	}
	return oauth2.AuthStyleInParams
}

// usable reports whether the token may be used.
func (k *signedIn) usable(now time.Time, refused string) bool {
	again := k.Access == refused && now.Sub(k.Got) >= leastLife
	old := !k.Until.IsZero() && !now.Before(k.Until.Add(-min(early, k.Until.Sub(k.Got)/10)))
	return k.Access != "" && !old && !again
}

// take stores the tokens of an issuer's answer. A refresh token that the answer lacks stays valid.
func (k *signedIn) take(t *oauth2.Token, now time.Time) error {
	if !strings.EqualFold(t.Type(), "Bearer") {
		return fmt.Errorf("the issuer gave a token of type %.20q, expected Bearer", t.Type())
	}
	if strings.ContainsFunc(t.AccessToken, func(r rune) bool { return r <= ' ' || r >= 0x7f }) {
		return errors.New("the issuer gave a token that can't be sent in a header")
	}
	k.Access, k.Got, k.Until, k.Ended = t.AccessToken, now.UTC(), t.Expiry.UTC(), ""
	if t.Expiry.IsZero() {
		k.Until = time.Time{}
	}
	if t.RefreshToken != "" {
		k.Refresh = t.RefreshToken
	}
	if granted, is := t.Extra("scope").(string); is && granted != "" {
		k.Scopes = strings.Fields(granted)
	}
	return nil
}

// end drops the tokens.
func (k *signedIn) end(why string) { k.Access, k.Refresh, k.Ended = "", "", why }

// read reads the file. It returns an error that wraps ErrSignIn if others may read the file, or if
// it is about another server, issuer or client than the configuration. If there is no file, the
// error wraps fs.ErrNotExist.
func (s *SignIn) read() (*signedIn, error) {
	kept, err := readSignIn(s.cfg.File)
	switch {
	case errors.Is(err, fs.ErrNotExist):
		return nil, err
	case err != nil:
		return nil, fmt.Errorf("%w: %w", ErrSignIn, err)
	case kept.Server != s.cfg.URL:
		return nil, fmt.Errorf("%w: the last sign-in was for another address", ErrSignIn)
	case s.cfg.Issuer != "" && !sameIssuer(s.cfg.Issuer, kept.Issuer):
		return nil, fmt.Errorf("%w: the last sign-in was at another issuer", ErrSignIn)
	case s.cfg.ID != "" && s.cfg.ID != kept.Client:
		return nil, fmt.Errorf("%w: the last sign-in was made with another client_id", ErrSignIn)
	}
	return kept, nil
}

func readSignIn(path string) (*signedIn, error) {
	info, err := os.Lstat(path)
	if err != nil {
		return nil, err
	}
	if !info.Mode().IsRegular() {
		return nil, fmt.Errorf("%s: expected a regular file", path)
	}
	f, err := os.Open(path)
	if err != nil {
		return nil, err
	}
	defer f.Close()
	if info, err = f.Stat(); err != nil {
		return nil, err
	}
	if open := info.Mode().Perm() & 0o077; open != 0 && os.PathSeparator == '/' {
		return nil, fmt.Errorf("%s: others may read it (mode %04o), so its tokens are not used: expected mode 0600",
			path, info.Mode().Perm())
	}
	text, err := io.ReadAll(io.LimitReader(f, maxFile))
	if err != nil {
		return nil, err
	}
	kept := &signedIn{}
	d := json.NewDecoder(bytes.NewReader(text))
	d.DisallowUnknownFields()
	if d.Decode(kept) != nil || kept.Version != fileVersion { // the error could repeat a token
		return nil, fmt.Errorf("%s: it can't be read", path)
	}
	return kept, nil
}

// write replaces the file.
func (s *SignIn) write(kept *signedIn) error {
	text, err := json.MarshalIndent(kept, "", "  ")
	if err == nil {
		err = filelock.Replace(s.cfg.File, append(text, '\n'))
	}
	if err != nil {
		return fmt.Errorf("keep the sign-in: %w", err)
	}
	return nil
}

// Version returns a text that changes when a person signs in or out, or a token is renewed.
func (s *SignIn) Version() string {
	info, err := os.Lstat(s.cfg.File)
	if err != nil {
		return ""
	}
	return fmt.Sprint(info.ModTime().UnixNano(), info.Size(), info.Mode())
}

// Forget removes the tokens. It reports whether there were any. It waits until ctx ends for a
// renewal, which would write new tokens otherwise.
func (s *SignIn) Forget(ctx context.Context) (had bool, err error) {
	unlock, err := filelock.Lock(ctx, s.cfg.File)
	if errors.Is(err, fs.ErrNotExist) { // nobody has signed in yet: there is no directory
		return false, nil
	}
	if err != nil {
		return false, err
	}
	defer func() { err = errors.Join(err, unlock()) }()
	err = os.Remove(s.cfg.File)
	if errors.Is(err, fs.ErrNotExist) {
		return false, nil
	}
	return err == nil, err
}

// folder creates the directory of the file, which only its owner may enter, and returns it.
func (s *SignIn) folder() (string, error) {
	dir := filepath.Dir(s.cfg.File)
	return dir, os.MkdirAll(dir, 0o700)
}
