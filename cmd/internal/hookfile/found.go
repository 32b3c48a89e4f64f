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

// content is a parsed settings file.
type content struct {
	file  *settings.File
	root  *settings.Table
	hooks *settings.Table
	ours  []entry // in the order of the product's events
	// rest counts the items in an event's list that are not hooks of assent.
	rest map[string]int
}

// entry is a hook of assent in a file.
type entry struct {
	event   string
	line    int            // where the list of the event begins
	fields  map[string]any // of the handler
	item    any
	program string
	args    []string
	// shared is set if the hook's group has other hooks.
	shared bool
	// guarded is set if the command line begins with the guard.
	guarded bool
}

// read parses a file and finds the hooks of assent in it.
func (s spot) read(f *settings.File, text []byte) (*content, error) {
	c := &content{file: f}
	var err error
	if c.root, err = settings.Parse(settings.JSON, s.path, text); err != nil {
		return nil, err
	}
	if c.hooks, err = settings.Parse(settings.JSON, s.path, text, "hooks"); err != nil {
		return nil, err
	}
	c.rest = map[string]int{}
	for _, event := range s.allEvents() {
		if err := s.readEvent(c, event); err != nil {
			return nil, err
		}
	}

	return c, nil
}

// readEvent finds the hooks of assent at an event.
func (s spot) readEvent(c *content, event string) error {
	list := c.hooks.Member(event)
	if list == nil {
		return nil
	}
	if _, err := c.hooks.List(event); err != nil {
		return err
	}
	for _, item := range list.Value.([]any) {
		e, found := s.entryOf(item)
		if !found {
			c.rest[event]++
			continue
		}

		e.event = event
		e.line = list.Line
		e.item = item
		c.ours = append(c.ours, e)
	}

	return nil
}

// at returns the hooks of assent at an event.
func (c *content) at(event string) (out []entry) {
	for _, e := range c.ours {
		if e.event == event {
			out = append(out, e)
		}
	}

	return out
}

// changed returns the content of the same file with another text.
func (s spot) changed(c *content, text []byte) (*content, error) {
	f := *c.file
	f.Text = text

	return s.read(&f, text)
}

// entryOf returns the hook of assent in an item of an event's list, if there is one.
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

			guarded: isGuarded(handler[s.line]),
		}, true
	}

	return entry{}, false
}

// words returns the program and arguments of a handler, or nil if its command line can't be parsed.
func (s spot) words(handler map[string]any) []string {
	command, _ := handler[s.line].(string)
	list, apart := handler["args"].([]any)
	if !apart {
		words, err := shell.Fields(strings.TrimPrefix(command, guard), func(string) string { return "" })
		if err != nil {
			return nil // not ours: our lines can always be parsed
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

func isGuarded(line any) bool {
	text, _ := line.(string)
	return strings.HasPrefix(text, guard)
}

func isAssent(program string) bool {
	return strings.TrimSuffix(filepath.Base(filepath.ToSlash(program)), ".exe") == "assent"
}

// timeLimit returns the time limit in the hook's settings, or 0 if they have none.
func (s spot) timeLimit(fields map[string]any) time.Duration {
	number, _ := fields[s.limit].(json.Number)
	units, err := number.Float64()
	if err != nil {
		return 0
	}

	return time.Duration(units * float64(s.unit))
}

// without returns the text of the file without the hooks of assent. empty is true if the file then
// contains no settings of others.
func (s spot) without(c *content) (text []byte, empty bool, err error) {
	there := len(c.ours) > 0
	for _, event := range slices.Backward(s.allEvents()) {
		if text, err = s.withoutEvent(c, event); err != nil {
			return nil, false, err
		}
		if c, err = s.changed(c, text); err != nil {
			return nil, false, err
		}
	}

	empty = there && c.root.Member("hooks") == nil && !slices.ContainsFunc(c.root.Members(), s.others)

	return c.file.Text, empty, nil
}

func (s spot) withoutEvent(c *content, event string) ([]byte, error) {
	ours := c.at(event)
	switch {
	case len(ours) == 0:
		return c.file.Text, nil
	case c.rest[event] == 0 && len(c.hooks.Members()) > 1:
		return c.hooks.Change([]string{event})
	case c.rest[event] == 0:
		return c.root.Change([]string{"hooks"})
	}

	var items []any
	for _, e := range ours {
		items = append(items, e.item)
	}
	list, _, err := c.hooks.Without(event, items)
	if err != nil {
		return nil, err
	}

	return c.hooks.Change([]string{event}, list)
}

// others reports whether a member of the file is a setting of others.
func (s spot) others(m settings.Member) bool {
	return m.Name != "hooks" && !(s.version && m.Name == "version")
}

// with returns the text of the file with one more hook at each event.
func (s spot) with(c *content, items map[string]settings.Object) ([]byte, error) {
	last := ""
	for _, event := range s.allEvents() {
		if items[event] == nil {
			continue
		}
		text, err := s.withEvent(c, last, event, items[event])
		if err != nil {
			return nil, err
		}
		if c, err = s.changed(c, text); err != nil {
			return nil, err
		}

		last = event
	}

	return c.file.Text, nil
}

// withEvent returns the text with a new event inserted after the event last, or at the end if last
// is empty. The lines around it stay unchanged.
func (s spot) withEvent(c *content, last, name string, item settings.Object) ([]byte, error) {
	event := settings.Object{{Name: name, Value: []settings.Object{item}}}
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

	list, err := c.hooks.List(name, item)
	if err != nil {
		return nil, err
	}
	switch {
	case c.hooks.Member(name) != nil:
		return c.hooks.Change([]string{name}, list)
	case last == "":
		return c.hooks.Change(nil, list)
	}

	before, err := c.hooks.List(last)
	if err != nil {
		return nil, err
	}

	return c.hooks.Change([]string{last}, before, list)
}
