// Package info holds what an agent adds to its call or question for the people who are asked: a
// reason, a link to a ticket, a diff of the change.
//
// These are the agent's words, not facts. Every channel shows them below the facts about the call,
// escaped and labelled as the agent's. They are in no binding, decide nothing, and can't affect
// what is shown above them. Webhooks and chat messages contain only their number.
package info

import (
	"encoding/json"
	"fmt"
	"net/url"
	"strings"
	"unicode/utf8"

	"github.com/assent-dev/assent/internal/safetext"
)

// Item is a label with a text, a link or a unified diff.
type Item struct {
	Label string `json:"label"`
	Text  string `json:"text,omitempty"`
	Link  string `json:"link,omitempty"`
	Diff  string `json:"diff,omitempty"`
}

// The limits for the items of one call.
const (
	MaxItems = 20
	MaxLabel = 100      // characters
	MaxBytes = 64 << 10 // total size of all items
	maxLink  = 2_000    // bytes
)

// Error reports which part of an item is wrong, and what was expected.
type Error struct {
	Path string // such as context.2.link
	Want string
}

// Error returns the path followed by what was expected.
func (e *Error) Error() string { return e.Path + ": expected " + e.Want }

// Check returns an *Error unless the items are within the limits.
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

// wants returns the field that is wrong and what it accepts, or empty strings if the item is valid.
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

// wantsLink refuses links that might do something other than show a page, or that contain
// credentials.
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

// Host returns the host of the link. Every channel shows it in front of the link.
func (it *Item) Host() string {
	u, err := url.Parse(it.Link)
	if err != nil {
		return ""
	}

	return u.Host
}

// Text returns the items as one text for digests, or an empty string if there are none.
func Text(items []Item) string {
	if len(items) == 0 {
		return ""
	}
	out, err := json.Marshal(items)
	if err != nil { // strings can always be marshalled
		return fmt.Sprintf("%q", items)
	}

	return string(out)
}
