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

// seen is what a page showed to a person. The server seals it into the
// page's forms, so that a form can't claim more than its page showed,
// decide for somebody else, or come from anywhere but a page of this
// person. A seal is for one purpose.
type seen struct {
	Tenant  string `json:"t"`
	Person  string `json:"p"`
	Request string `json:"r"`
	Version int64  `json:"v"`
	Binding string `json:"b"` // of what stood on the page; of an edit, of the call before it
	Full    bool   `json:"f"` // every document stood on the page, whole
	// digests of the documents that the page showed: facts, arguments,
	// the parent's input
	Shown []string `json:"d,omitempty"`
	Edit  string   `json:"e,omitempty"` // digest of the edited arguments that the page showed
	At    int64    `json:"a"`           // Unix milliseconds
}

// purpose is what the forms of a page do. Each has seals of its own,
// since each page shows something else.
type purpose string

const (
	toVote    purpose = "vote"    // answers the call or question that the page shows
	toPreview purpose = "preview" // shows what an edit would do, and changes nothing
	toEdit    purpose = "edit"    // replaces the arguments with those that the page shows, and approves them
	toBatch   purpose = "batch"   // answers one of several calls of a page
	toManage  purpose = "manage"  // is about no request
	toTell    purpose = "said"    // says what became of an answer
)

// said is what became of an answer, for the page that follows.
type said struct {
	Person  string   `json:"p"`
	Request string   `json:"r,omitempty"`
	Kind    string   `json:"k"` // good: it may run; done: it does not, or not yet; note; bad: nothing was done
	Lines   []string `json:"l"`
	Since   int64    `json:"s,omitempty"` // Unix milliseconds of what was shown: the page tells what changed after
	At      int64    `json:"a"`
}

func saying(kind string, lines ...string) said { return said{Kind: kind, Lines: lines} }

// How long a form and a message stay good.
const (
	formAge = 12 * time.Hour
	saidAge = 5 * time.Minute
)

var errSeal = errors.New("this form is not from a page of yours that is still good: open the page again")

// seal writes v with a tag that only this server can make, for one purpose.
func (s *site) seal(to purpose, v any) string {
	body, err := json.Marshal(v)
	if err != nil {
		return "" // opens as nothing
	}
	text := base64.RawURLEncoding.EncodeToString(body)
	return text + "." + base64.RawURLEncoding.EncodeToString(s.tag(to, text))
}

func (s *site) tag(to purpose, text string) []byte {
	mac := hmac.New(sha256.New, s.Key)
	mac.Write([]byte(string(to) + "\x00" + text))
	return mac.Sum(nil)
}

// open reads what seal wrote.
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

// openSeen reads the seal of a form and holds it to whoever posts it.
// With errEarly the seal is good, but the form came too soon.
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
