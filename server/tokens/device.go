package tokens

import (
	"context"
	"crypto/aes"
	"crypto/cipher"
	"crypto/hkdf"
	"crypto/rand"
	"crypto/sha256"
	"encoding/base64"
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

// Why a command line gets no token.
var (
	ErrDevicePending = errors.New("nobody has confirmed the code yet")
	ErrDeviceRefused = errors.New("the person refused the code")
	ErrDeviceGone    = errors.New("the code is not known, is used up, or is too old")
	ErrDevicesFull   = errors.New("too many codes that this person typed wait for their command lines")
)

// Devices signs command lines in, in the way of RFC 8628: the command
// line shows a code, a person who is signed in to the inbox types it
// there, and the command line is handed a token of that person. Until a
// person has typed the code nothing is stored: the device code carries
// what the server has to know, sealed.
type Devices struct {
	Maker  *Maker
	Values store.Values
	Key    []byte // that device codes are sealed under; only Begin and Take need it
}

// Begun is the answer to a command line that begins.
type Begun struct {
	DeviceCode string // its secret
	UserCode   string // what the person types, such as BCDF-GHJK-LMNP
	Expires    time.Time
}

// waiting is what a device code carries.
type waiting struct {
	Name    string    `json:"name"` // as the command line calls itself
	Code    string    `json:"code"` // what the person types
	Expires time.Time `json:"expires"`
}

// answered is what a person said to a code.
type answered struct {
	Tenant  string `json:"tenant"`
	Person  string `json:"person"`
	Refused bool   `json:"refused,omitempty"`
}

// The buckets of store.Values: answers by what the person typed, and
// device codes that were used, by their hashes.
const (
	bucketCode = "device-code"
	bucketUsed = "device"
)

// mostAnswered is how many codes of one person may wait for their
// command lines.
const mostAnswered = 20

// devicePurpose is what the key of device codes is derived for.
const devicePurpose = "assent device code v1"

func (d *Devices) sealing() (cipher.AEAD, error) {
	key, err := hkdf.Key(sha256.New, d.Key, nil, devicePurpose, 32)
	if err != nil {
		return nil, fmt.Errorf("the key of device codes: %w", err)
	}
	block, err := aes.NewCipher(key)
	if err != nil {
		return nil, fmt.Errorf("the key of device codes: %w", err)
	}

	return cipher.NewGCMWithRandomNonce(block)
}

// Begin gives a command line its codes. The name is how it calls
// itself; a token of it is named so.
func (d *Devices) Begin(name string) (Begun, error) {
	if err := checkName(name); err != nil {
		return Begun{}, err
	}
	seal, err := d.sealing()
	if err != nil {
		return Begun{}, err
	}
	w := waiting{name, userCode(), d.Maker.Now().Add(DeviceAge)}
	text, err := json.Marshal(w)
	if err != nil {
		return Begun{}, fmt.Errorf("seal a device code: %w", err)
	}
	sealed := base64.RawURLEncoding.EncodeToString(seal.Seal(nil, nil, text, nil))

	return Begun{DeviceCode: sealed, UserCode: w.Code, Expires: w.Expires}, nil
}

// open reads a device code; ErrDeviceGone if it is none of this server's
// or has expired.
func (d *Devices) open(deviceCode string) (w waiting, err error) {
	seal, err := d.sealing()
	if err != nil {
		return waiting{}, err
	}
	sealed, err := base64.RawURLEncoding.DecodeString(deviceCode)
	if err != nil {
		return waiting{}, ErrDeviceGone
	}
	text, err := seal.Open(nil, nil, sealed, nil)
	if err != nil || json.Unmarshal(text, &w) != nil || !d.Maker.Now().Before(w.Expires) {
		return waiting{}, ErrDeviceGone
	}

	return w, nil
}

// codeLetters are told apart by everybody, and spell no words.
const codeLetters = "BCDFGHJKLMNPQRSTVWXZ"

// codeLength is the number of letters of a code: so many that a stranger
// who begins without end holds no code that another command line shows.
// The last one is computed from the others, so that a typing error is
// noticed.
const codeLength = 12

// userCode is a random code in groups of four letters.
func userCode() string {
	var raw [codeLength - 1]byte
	rand.Read(raw[:]) //nolint:errcheck // it never fails
	out := make([]byte, 0, codeLength)
	for _, b := range raw {
		out = append(out, codeLetters[int(b)%len(codeLetters)])
	}

	return grouped(string(append(out, checkLetter(string(out)))))
}

// checkLetter is a weighted sum of the letters. The weights have no
// divisor in common with the number of letters, so that one wrong letter
// always gives another sum.
func checkLetter(letters string) byte {
	weights := []int{1, 3, 7, 9}
	sum := 0
	for i := range len(letters) {
		sum += weights[i%len(weights)] * strings.IndexByte(codeLetters, letters[i])
	}
	return codeLetters[sum%len(codeLetters)]
}

func grouped(letters string) string { return letters[:4] + "-" + letters[4:8] + "-" + letters[8:] }

// CleanCode reads a code that a person typed. It returns an empty string
// if no command line was given that code.
func CleanCode(text string) string {
	letters := strings.Map(func(r rune) rune {
		if strings.ContainsRune(codeLetters, r) {
			return r
		}
		return -1
	}, strings.ToUpper(text))
	if len(letters) != codeLength || letters[codeLength-1] != checkLetter(letters[:codeLength-1]) {
		return ""
	}

	return grouped(letters)
}

// Answer has a person who is signed in confirm or refuse a code, once.
func (d *Devices) Answer(ctx context.Context, code, tenant, person string, confirm bool) error {
	code = CleanCode(code)
	if code == "" {
		return ErrDeviceGone
	}
	now := d.Maker.Now()
	all, err := d.Values.ListValues(ctx, bucketCode, now)
	if err != nil {
		return err
	}
	if all[code] != nil {
		return ErrDeviceGone
	}
	theirs := 0
	for _, text := range all {
		if a, err := readAnswer(text); err == nil && a.Tenant == tenant && a.Person == person {
			theirs++
		}
	}
	if theirs >= mostAnswered {
		return ErrDevicesFull
	}
	text, err := json.Marshal(answered{tenant, person, !confirm})
	if err != nil {
		return fmt.Errorf("keep the answer to a code: %w", err)
	}

	return d.Values.SetValue(ctx, bucketCode, code, text, now.Add(DeviceAge))
}

func readAnswer(text []byte) (a answered, err error) {
	if err = json.Unmarshal(text, &a); err != nil {
		err = fmt.Errorf("read the answer to a code: %w", err)
	}

	return a, err
}

// Take hands a command line its token, once its person has confirmed
// the code.
func (d *Devices) Take(ctx context.Context, deviceCode string) (store.Token, string, error) {
	w, err := d.open(deviceCode)
	if err != nil {
		return store.Token{}, "", err
	}
	a, err := d.use(ctx, w, Hash(deviceCode))
	switch {
	case err != nil:
		return store.Token{}, "", err
	case a.Refused:
		return store.Token{}, "", ErrDeviceRefused
	}
	spec := Spec{
		Name:   w.Name + "-" + strings.ToLower(strings.ReplaceAll(w.Code[:9], "-", "")),
		Scopes: []string{string(openapi.ScopeRead), string(openapi.ScopeVote)},
		Person: a.Person,
	}

	return d.Maker.Make(ctx, a.Tenant, spec, By{Person: a.Person})
}

// use takes the answer to a code, which a device code does once.
func (d *Devices) use(ctx context.Context, w waiting, key string) (answered, error) {
	now := d.Maker.Now()
	if _, err := d.Values.Value(ctx, bucketUsed, key, now); err == nil {
		return answered{}, ErrDeviceGone
	} else if !errors.Is(err, approval.ErrNotFound) {
		return answered{}, err
	}
	text, err := d.Values.TakeValue(ctx, bucketCode, w.Code, now) // one caller gets it
	if errors.Is(err, approval.ErrNotFound) {
		return answered{}, ErrDevicePending
	}
	if err != nil {
		return answered{}, err
	}
	if err := d.Values.SetValue(ctx, bucketUsed, key, nil, w.Expires); err != nil {
		return answered{}, err
	}

	return readAnswer(text)
}
