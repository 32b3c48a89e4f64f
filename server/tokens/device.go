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

// How long a command line waits for its person to sign in, and how often it polls.
const (
	DeviceAge      = 10 * time.Minute
	DeviceInterval = 2 * time.Second
)

// Reasons why a command line gets no token.
var (
	ErrDevicePending = errors.New("nobody has confirmed the code yet")
	ErrDeviceRefused = errors.New("the person refused the code")
	ErrDeviceGone    = errors.New("the code is not known, is used up, or is too old")
	ErrDevicesFull   = errors.New("too many codes that this person typed wait for their command lines")
)

// Devices signs command lines in like RFC 8628: the command line shows a code, a person who
// is signed in to the inbox types it there, and the command line gets a token of that
// person. Nothing is stored until a person has typed the code, because the device code
// contains what the server needs to know, encrypted.
type Devices struct {
	Maker  *Maker
	Values store.Values
	Key    []byte // that encrypts device codes; only Begin and Take need it
}

// Begun is the answer to a command line that begins to sign in.
type Begun struct {
	DeviceCode string // its secret
	UserCode   string // what the person types, such as BCDF-GHJK-LMNP
	Expires    time.Time
}

// waiting is the content of a device code.
type waiting struct {
	Name    string    `json:"name"` // as the command line calls itself
	Code    string    `json:"code"` // what the person types
	Expires time.Time `json:"expires"`
}

// answered is a person's answer to a code.
type answered struct {
	Tenant  string `json:"tenant"`
	Person  string `json:"person"`
	Refused bool   `json:"refused,omitempty"`
}

// The buckets of store.Values: answers by typed code, and used device codes by their
// hashes.
const (
	bucketCode = "device-code"
	bucketUsed = "device"
)

// mostAnswered is the maximal number of codes of one person that may wait for their command
// lines.
const mostAnswered = 20

// devicePurpose is the purpose for which the key of device codes is derived.
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

// Begin returns codes for a command line. name is the name that the command line gives
// itself; its token gets that name.
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

// open decrypts a device code. It returns ErrDeviceGone if the code is not from this server
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

// codeLetters are easy to distinguish, and spell no words.
const codeLetters = "BCDFGHJKLMNPQRSTVWXZ"

// codeLength is the number of letters of a code. It is large enough that a stranger who
// begins again and again gets no code that another command line shows. The last letter is
// computed from the others, so that typing errors are noticed.
const codeLength = 12

// userCode returns a random code in groups of four letters.
func userCode() string {
	var raw [codeLength - 1]byte
	rand.Read(raw[:]) //nolint:errcheck // it never fails
	out := make([]byte, 0, codeLength)
	for _, b := range raw {
		out = append(out, codeLetters[int(b)%len(codeLetters)])
	}

	return grouped(string(append(out, checkLetter(string(out)))))
}

// checkLetter computes a weighted sum of the letters. The weights have no divisor in common
// with the number of letters, so one wrong letter always changes the sum.
func checkLetter(letters string) byte {
	weights := []int{1, 3, 7, 9}
	sum := 0
	for i := range len(letters) {
		sum += weights[i%len(weights)] * strings.IndexByte(codeLetters, letters[i])
	}
	return codeLetters[sum%len(codeLetters)]
}

func grouped(letters string) string { return letters[:4] + "-" + letters[4:8] + "-" + letters[8:] }

// CleanCode normalizes a code that a person typed. It returns an empty string if the text
// can't be a code.
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

// Answer confirms or refuses a code for a signed-in person. A code can be answered once.
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

// Take gives a command line its token after its person has confirmed the code.
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

// use takes the answer to a code. A device code can do that once.
func (d *Devices) use(ctx context.Context, w waiting, key string) (answered, error) {
	now := d.Maker.Now()
	if _, err := d.Values.Value(ctx, bucketUsed, key, now); err == nil {
		return answered{}, ErrDeviceGone
	} else if !errors.Is(err, approval.ErrNotFound) {
		return answered{}, err
	}
	text, err := d.Values.TakeValue(ctx, bucketCode, w.Code, now) // only one caller gets it
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
