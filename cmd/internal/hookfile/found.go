package hookfile

import (
	"encoding/json"
	"path/filepath"
	"slices"
	"strings"
	"time"

	"mvdan.cc/sh/v3/shell"

	"github.com/assent-dev/assent/internal/settings"
)

// content is a settings file as it is read.
type content struct {
	file  *settings.File
	root  *settings.Table
	hooks *settings.Table
	list  *settings.Member // of the event; nil when there is none
	ours  []entry
	// rest counts the items of the list that are of others.
	rest int
}

// entry is a hook of assent in a file.
type entry struct {
	line    int            // where the list of the event begins
	fields  map[string]any // of the handler
	item    any
	program string
	args    []string
	// shared: others stand in the same group.
	shared bool
}

// read reads a file, and finds the hooks of assent in it.
func (s spot) read(f *settings.File, text []byte) (*content, error) {
	c := &content{file: f}
	var err error
	if c.root, err = settings.Parse(settings.JSON, s.path, text); err != nil {
		return nil, err
	}
	if c.hooks, err = settings.Parse(settings.JSON, s.path, text, "hooks"); err != nil {
		return nil, err
	}
	if c.list = c.hooks.Member(s.event); c.list == nil {
		return c, nil
	}
	if _, err := c.hooks.List(s.event); err != nil {
		return nil, err
	}
	for _, item := range c.list.Value.([]any) {
		e, found := s.entryOf(item)
		if !found {
			c.rest++
			continue
		}

		e.line = c.list.Line
		e.item = item
		c.ours = append(c.ours, e)
	}

	return c, nil
}

// entryOf finds a hook of assent in an item of the list.
func (s spot) entryOf(item any) (entry, bool) {
	fields, _ := item.(map[string]any)
	handlers := []any{item}
	if s.groups {
		handlers, _ = fields["hooks"].([]any)
	}
	for _, h := range handlers {
		handler, _ := h.(map[string]any)
		words := s.words(handler)
		if len(words) < 3 || !isAssent(words[0]) || words[1] != "hook" || words[2] != s.name {
			continue
		}

		return entry{
			fields:  handler,
			program: words[0],
			args:    words[1:],
			shared:  len(handlers) > 1,
		}, true
	}

	return entry{}, false
}

// words are the program of a handler and its arguments; nil when they
// can't be told.
func (s spot) words(handler map[string]any) []string {
	command, _ := handler[s.line].(string)
	list, apart := handler["args"].([]any)
	if !apart {
		words, err := shell.Fields(command, func(string) string { return "" })
		if err != nil {
			return nil // of somebody else: ours have no such words
		}

		return words
	}

	out := []string{command}
	for _, arg := range list {
		text, _ := arg.(string)
		out = append(out, text)
	}

	return out
}

func isAssent(program string) bool {
	return strings.TrimSuffix(filepath.Base(filepath.ToSlash(program)), ".exe") == "assent"
}

// timeLimit is what the product gives the hook; 0 when it doesn't say.
func (s spot) timeLimit(fields map[string]any) time.Duration {
	number, _ := fields[s.limit].(json.Number)
	units, err := number.Float64()
	if err != nil {
		return 0
	}

	return time.Duration(units * float64(s.unit))
}

// without is the file's text without the hooks of assent, and whether
// nothing of anybody else is in it.
func (s spot) without(c *content) (text []byte, empty bool, err error) {
	switch {
	case len(c.ours) == 0:
		text = c.file.Text
	case c.rest > 0:
		text, err = s.withoutItems(c)
	case len(c.hooks.Members()) > 1:
		text, err = c.hooks.Change([]string{s.event})
	default:
		text, err = c.root.Change([]string{"hooks"})
		empty = !slices.ContainsFunc(c.root.Members(), s.others)
	}

	return text, empty, err
}

func (s spot) withoutItems(c *content) ([]byte, error) {
	var items []any
	for _, e := range c.ours {
		items = append(items, e.item)
	}
	list, _, err := c.hooks.Without(s.event, items)
	if err != nil {
		return nil, err
	}

	return c.hooks.Change([]string{s.event}, list)
}

// others reports whether a member of the file is somebody's settings.
func (s spot) others(m settings.Member) bool {
	return m.Name != "hooks" && !(s.version && m.Name == "version")
}

// with is the file's text with one more hook.
func (s spot) with(c *content, item settings.Object) ([]byte, error) {
	event := settings.Object{{Name: s.event, Value: []settings.Object{item}}}
	switch {
	case len(c.root.Members()) == 0 && strings.TrimSpace(string(c.file.Text)) == "":
		var out settings.Object
		if s.version {
			out = append(out, settings.Field{Name: "version", Value: 1})
		}
		return settings.Document(append(out, settings.Field{Name: "hooks", Value: event})), nil
	case c.root.Member("hooks") == nil:
		return c.root.Change(nil, c.root.New("hooks", event))
	}

	list, err := c.hooks.List(s.event, item)
	if err != nil {
		return nil, err
	}
	var old []string
	if c.list != nil {
		old = []string{s.event}
	}

	return c.hooks.Change(old, list)
}
