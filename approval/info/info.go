// Package info is what an agent says about its call or question, for
// the people who are asked: why it wants it, a link to the ticket, the
// change it would make.
//
// These are the agent's words, not facts. Every channel shows them
// below what is known of the call, escaped and labelled as the agent's;
// they are in no binding, decide nothing, and can't change what stands
// above them. Webhooks and chat messages say how many there are, and no
// more.
package info

import (
	"encoding/json"
	"fmt"
	"net/url"
	"strings"
	"unicode/utf8"

	"github.com/assent-dev/assent/internal/safetext"
)

// Item is one thing that the agent says: a label with a text, a link or
// a unified diff.
type Item struct {
	Label string `json:"label"`
	Text  string `json:"text,omitempty"`
	Link  string `json:"link,omitempty"`
	Diff  string `json:"diff,omitempty"`
}

// The bounds of what an agent may say about one call.
const (
	MaxItems = 20
	MaxLabel = 100      // characters
	MaxBytes = 64 << 10 // of everything together
	maxLink  = 2_000    // bytes
)

// Error says what of an item is refused, and what would be right.
type Error struct {
	Path string // such as context.2.link
	Want string
}

// Error puts the place first.
func (e *Error) Error() string { return e.Path + ": expected " + e.Want }

// Check holds what an agent says to its bounds. The error is an *Error.
func Check(items []Item) error {
	if len(items) > MaxItems {
		return &Error{"context", fmt.Sprintf("at most %d items", MaxItems)}
	}
	size := 0
	for i := range items {
		it := &items[i]
		size += len(it.Label) + len(it.Text) + len(it.Link) + len(it.Diff)
		if field, want := it.wants(); want != "" {
			return &Error{strings.TrimSuffix(fmt.Sprintf("context.%d.%s", i, field), "."), want}
		}
	}

	if size > MaxBytes {
		return &Error{"context", fmt.Sprintf("at most %d bytes together", MaxBytes)}
	}

	return nil
}

// wants says which field is wrong and what it takes; "" when none is.
func (it *Item) wants() (field, want string) {
	given := 0
	for _, text := range []string{it.Text, it.Link, it.Diff} {
		if text != "" {
			given++
		}
		if !utf8.ValidString(text) || strings.ContainsRune(text, 0) {
			return "", "UTF-8 text without NUL"
		}
	}

	n := utf8.RuneCountInString(it.Label)
	switch {
	case n == 0 || n > MaxLabel || !utf8.ValidString(it.Label) || strings.ContainsFunc(it.Label, safetext.Hidden):
		return "label", fmt.Sprintf("1 to %d visible characters", MaxLabel)
	case given != 1:
		return "", "one of text, link and diff"
	case it.Link != "":
		return "link", wantsLink(it.Link)
	case it.Diff != "":
		_, err := ParseDiff(it.Diff)
		if err != nil {
			return "diff", err.Error()
		}
	}

	return "", ""
}

// wantsLink refuses links that could do something else than show a page,
// or that carry what a person should not see.
func wantsLink(link string) string {
	const want = "an https address of at most 2000 bytes, without a user name or password in it"
	u, err := url.Parse(link)
	switch {
	case err != nil || len(link) > maxLink || u.Scheme != "https" || u.Host == "" || u.User != nil:
		return want
	case strings.ContainsFunc(link, func(r rune) bool { return r <= ' ' || r > '~' || r == '\\' }):
		return want + "; other characters are written as %xx, and host names in their ASCII form"
	}

	return ""
}

// Host is where a link leads: every channel shows it in front.
func (it *Item) Host() string {
	u, err := url.Parse(it.Link)
	if err != nil {
		return ""
	}

	return u.Host
}

// Text writes items as one text, for digests; "" for none.
func Text(items []Item) string {
	if len(items) == 0 {
		return ""
	}
	out, err := json.Marshal(items)
	if err != nil { // texts always have a form
		return fmt.Sprintf("%q", items)
	}

	return string(out)
}
