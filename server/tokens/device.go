package tokens

import (
	"context"
	"crypto/rand"
	"encoding/json"
	"errors"
	"fmt"
	"strings"
	"time"

	"github.com/assent-dev/assent/approval"
	"github.com/assent-dev/assent/server/openapi"
	"github.com/assent-dev/assent/store"
)

// How long a command line waits for its person to sign in, and how
// often it asks.
const (
	DeviceAge      = 10 * time.Minute
	DeviceInterval = 2 * time.Second
)

// What becomes of a command line that wants to sign in, beside being
// signed in.
var (
	ErrDevicePending = errors.New("nobody has confirmed the code yet")
	ErrDeviceRefused = errors.New("the person refused the code")
	ErrDeviceGone    = errors.New("the code is not known, is used up, or is too old")
	ErrDevicesFull   = errors.New("too many command lines wait to be signed in")
)

// Devices signs command lines in, in the way of RFC 8628: the command
// line shows a code, a person who is signed in to the inbox types it
// there, and the command line is handed a token of that person.
type Devices struct {
	Maker  *Maker
	Values store.Values
}

// Begun is what a command line is told when it begins.
type Begun struct {
	DeviceCode string // its secret
	UserCode   string // what the person types, such as BCDF-GHJK
	Expires    time.Time
}

// Waiting is a command line that waits for its person.
type Waiting struct {
	Name    string    `json:"name"` // as it calls itself
	From    string    `json:"from"` // address that it spoke from
	Begun   time.Time `json:"begun"`
	Tenant  string    `json:"tenant,omitempty"` // of the person, once confirmed
	Person  string    `json:"person,omitempty"` // who confirmed it
	Refused bool      `json:"refused,omitempty"`
	Code    string    `json:"code"` // what the person types
}

// The buckets of store.Values: a waiting command line by the hash of
// its secret, and that hash by what the person types.
const (
	bucketDevice = "device"
	bucketCode   = "device-code"
)

// mostWaiting bounds the command lines that wait at the same time,
// since anybody may begin.
const mostWaiting = 1000

// Begin has a command line wait. The name is how it calls itself; a
// token of it is named so.
func (d *Devices) Begin(ctx context.Context, name, from string) (Begun, error) {
	if err := checkName(name); err != nil {
		return Begun{}, err
	}
	now := d.Maker.Now()
	all, err := d.Values.ListValues(ctx, bucketCode, now)
	if err != nil {
		return Begun{}, err
	}
	if len(all) >= mostWaiting {
		return Begun{}, ErrDevicesFull
	}

	out := Begun{
		DeviceCode: rand.Text() + rand.Text(),
		UserCode:   userCode(),
		Expires:    now.Add(DeviceAge),
	}
	key := Hash(out.DeviceCode)
	w := Waiting{Name: name, From: from, Begun: now, Code: out.UserCode}
	if err := d.keep(ctx, key, w, out.Expires); err != nil {
		return Begun{}, err
	}
	err = d.Values.SetValue(ctx, bucketCode, out.UserCode, []byte(key), out.Expires)

	return out, err
}

// codeLetters are told apart by everybody, and spell no words.
const codeLetters = "BCDFGHJKLMNPQRSTVWXZ"

// userCode is eight random letters in two halves: 25 billion of them,
// of which nobody gains anything by guessing, since a code hands out
// the guesser's own token.
func userCode() string {
	var raw [8]byte
	rand.Read(raw[:]) //nolint:errcheck // it never fails
	out := make([]byte, 0, 9)
	for i, b := range raw {
		if i == 4 {
			out = append(out, '-')
		}
		out = append(out, codeLetters[int(b)%len(codeLetters)])
	}

	return string(out)
}

// cleanCode reads what a person typed.
func cleanCode(text string) string {
	letters := strings.Map(func(r rune) rune {
		if strings.ContainsRune(codeLetters, r) {
			return r
		}
		return -1
	}, strings.ToUpper(text))
	if len(letters) != 8 {
		return ""
	}

	return letters[:4] + "-" + letters[4:]
}

func (d *Devices) keep(ctx context.Context, key string, w Waiting, expires time.Time) error {
	text, err := json.Marshal(w)
	if err != nil {
		return fmt.Errorf("keep a command line that waits: %w", err)
	}

	return d.Values.SetValue(ctx, bucketDevice, key, text, expires)
}

// Look shows a person which command line a code belongs to; ErrDeviceGone.
func (d *Devices) Look(ctx context.Context, code string) (Waiting, error) {
	_, w, err := d.find(ctx, code)

	return w, err
}

func (d *Devices) find(ctx context.Context, code string) (key string, w Waiting, err error) {
	found, err := d.Values.Value(ctx, bucketCode, cleanCode(code), d.Maker.Now())
	if errors.Is(err, approval.ErrNotFound) {
		return "", Waiting{}, ErrDeviceGone
	}
	if err != nil {
		return "", Waiting{}, err
	}
	w, err = d.waiting(ctx, string(found))

	return string(found), w, err
}

func (d *Devices) waiting(ctx context.Context, key string) (Waiting, error) {
	text, err := d.Values.Value(ctx, bucketDevice, key, d.Maker.Now())
	if errors.Is(err, approval.ErrNotFound) {
		return Waiting{}, ErrDeviceGone
	}
	if err != nil {
		return Waiting{}, err
	}
	var w Waiting
	if err := json.Unmarshal(text, &w); err != nil {
		return Waiting{}, fmt.Errorf("read a command line that waits: %w", err)
	}

	return w, nil
}

// Answer has a person who is signed in confirm or refuse a code, once.
func (d *Devices) Answer(ctx context.Context, code, tenant, person string, confirm bool) error {
	found, err := d.Values.TakeValue(ctx, bucketCode, cleanCode(code), d.Maker.Now())
	if errors.Is(err, approval.ErrNotFound) {
		return ErrDeviceGone
	}
	if err != nil {
		return err
	}
	w, err := d.waiting(ctx, string(found))
	if err != nil {
		return err
	}
	w.Tenant = tenant
	w.Person = person
	w.Refused = !confirm

	return d.keep(ctx, string(found), w, w.Begun.Add(DeviceAge))
}

// Take hands a command line its token, once its person has confirmed
// the code.
func (d *Devices) Take(ctx context.Context, deviceCode string) (store.Token, string, error) {
	key := Hash(deviceCode)
	w, err := d.waiting(ctx, key)
	switch {
	case err != nil:
		return store.Token{}, "", err
	case w.Person == "":
		return store.Token{}, "", ErrDevicePending
	}

	if _, err := d.Values.TakeValue(ctx, bucketDevice, key, d.Maker.Now()); err != nil {
		return store.Token{}, "", ErrDeviceGone // another attempt took it
	}
	if w.Refused {
		return store.Token{}, "", ErrDeviceRefused
	}
	spec := Spec{
		Name:   w.Name + "-" + strings.ToLower(strings.ReplaceAll(w.Code, "-", "")),
		Scopes: []string{string(openapi.ScopeRead), string(openapi.ScopeVote)},
		Person: w.Person,
	}

	return d.Maker.Make(ctx, w.Tenant, spec, By{Person: w.Person})
}
