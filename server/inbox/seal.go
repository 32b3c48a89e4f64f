package inbox

import (
	"crypto/hmac"
	"crypto/sha256"
	"encoding/base64"
	"encoding/json"
	"errors"
	"strings"
	"time"
)

// seen describes what a page showed to a person. The server seals it into the page's forms, so that
// a form can't claim more than its page showed, decide for another person, or come from anywhere
// other than a page of this person. A seal is valid for one purpose.
type seen struct {
	Tenant  string `json:"t"`
	Person  string `json:"p"`
	Request string `json:"r"`
	Version int64  `json:"v"`
	Binding string `json:"b"` // digest of what the page showed; for an edit, of the call before it
	Full    bool   `json:"f"` // every document was shown in full
	// Shown lists the digests of the documents that the page showed: facts, arguments, and the
	// parent's input.
	Shown []string `json:"d,omitempty"`
	Edit  string   `json:"e,omitempty"` // digest of the edited arguments that the page showed
	At    int64    `json:"a"`           // Unix milliseconds
}

// purpose identifies what the forms of a page do. Each purpose has separate seals, because each page shows
// something else.
type purpose string

const (
	toVote    purpose = "vote"    // answers the call or question that the page shows
	toPreview purpose = "preview" // shows the effect of an edit, and changes nothing
	toEdit    purpose = "edit"    // replaces the arguments with those that the page shows, and approves them
	toBatch   purpose = "batch"   // answers one of several calls on a page
	toManage  purpose = "manage"  // is not about a request
	toTell    purpose = "said"    // reports the result of an answer
)

// said is the result of an answer, shown on the next page.
type said struct {
	Person  string   `json:"p"`
	Request string   `json:"r,omitempty"`
	Kind    string   `json:"k"` // good: it may run; done: it does not, or not yet; note; bad: nothing was done
	Lines   []string `json:"l"`
	Since   int64    `json:"s,omitempty"` // Unix milliseconds of what was shown; the page lists later changes
	At      int64    `json:"a"`
}

func saying(kind string, lines ...string) said { return said{Kind: kind, Lines: lines} }

// How long forms and messages are valid.
const (
	formAge = 12 * time.Hour
	saidAge = 5 * time.Minute
)

var errSeal = errors.New("this form is not from a page of yours that is still good: open the page again")

// seal encodes v with a tag that only this server can create, for one purpose.
func (s *site) seal(to purpose, v any) string {
	body, err := json.Marshal(v)
	if err != nil {
		return "" // open refuses it
	}
	text := base64.RawURLEncoding.EncodeToString(body)
	return text + "." + base64.RawURLEncoding.EncodeToString(s.tag(to, text))
}

func (s *site) tag(to purpose, text string) []byte {
	mac := hmac.New(sha256.New, s.Key)
	mac.Write([]byte(string(to) + "\x00" + text))
	return mac.Sum(nil)
}

// open decodes the result of seal.
func (s *site) open(to purpose, sealed string, v any) error {
	text, tag, _ := strings.Cut(sealed, ".")
	got, err := base64.RawURLEncoding.DecodeString(tag)
	if err != nil || !hmac.Equal(got, s.tag(to, text)) {
		return errSeal
	}
	body, err := base64.RawURLEncoding.DecodeString(text)
	if err != nil || json.Unmarshal(body, v) != nil {
		return errSeal
	}
	return nil
}

// openSeen opens the seal of a form and checks that it belongs to the visitor. errEarly means that
// the seal is valid, but the form was posted too soon.
func (s *site) openSeen(to purpose, sealed string, v *visit) (seen, error) {
	var out seen
	if err := s.open(to, sealed, &out); err != nil {
		return seen{}, err
	}
	age := s.Now().Sub(time.UnixMilli(out.At))
	if out.Tenant != v.Tenant || out.Person != v.Person.ID || age < 0 || age > formAge {
		return seen{}, errSeal
	}
	if age < s.Arm {
		return out, errEarly
	}
	return out, nil
}

var errEarly = errors.New(
	"that came right after the page opened, so it may have been meant for something else: " +
		"look, and answer again",
)
