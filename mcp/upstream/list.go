package upstream

import (
	"context"
	"encoding/json"
	"errors"
	"fmt"
	"slices"
	"strings"

	"github.com/assent-dev/assent/internal/jsonmsg"
	"github.com/assent-dev/assent/mcp/wire"
)

// The bounds of a list.
const (
	maxPages = 1000
	maxItems = 100_000
	maxBytes = 64 << 20
)

// errLarge says that a list has no end that anybody would want.
var errLarge = errors.New("the list is too large")

// List returns the elements of a list, all pages of it. An empty cursor
// ends it, as in the official clients, and so does one that came before:
// some servers give one page for ever.
func (s *Server) List(ctx context.Context, method string) ([]json.RawMessage, error) {
	var all []json.RawMessage
	size := 0
	cursor, more := "", false
	seen := map[string]bool{"": true}
	for page := 0; ; page++ {
		out, err := s.Do(ctx, Request{Method: method, Params: cursorParams(cursor, more)})
		if err != nil {
			return nil, err
		}
		if out.Error != nil {
			return nil, fmt.Errorf("%s: %w", method, out.Error)
		}
		items, err := elements(out.Result, member(method))
		if err != nil {
			return nil, fmt.Errorf("%s: %w", method, err)
		}
		all = append(all, items...)
		size += len(out.Result)
		if page >= maxPages || len(all) > maxItems || size > maxBytes {
			return nil, errLarge
		}
		if cursor, more = jsonmsg.ReadString(jsonmsg.Get(out.Result, "nextCursor")); !more || cursor == "" {
			return all, nil
		}
		if seen[cursor] {
			return distinct(all), nil
		}
		seen[cursor] = true
	}
}

// distinct leaves out elements that stand there before, byte for byte.
func distinct(all []json.RawMessage) []json.RawMessage {
	seen := map[string]bool{}
	return slices.DeleteFunc(all, func(one json.RawMessage) bool {
		again := seen[string(one)]
		seen[string(one)] = true
		return again
	})
}

// member is the member of a result that holds the list of a method.
func member(method string) string {
	if method == "resources/templates/list" {
		return "resourceTemplates"
	}
	name, _, _ := strings.Cut(method, "/")
	return name
}

// cursorParams ask for a page.
func cursorParams(cursor string, given bool) json.RawMessage {
	if !given {
		return nil
	}
	text, err := jsonmsg.Object(func(w *jsonmsg.Writer) { w.Member("cursor", cursor) })
	if err != nil {
		return nil
	}
	return text
}

// elements are those of a list in a result, as they stand there.
func elements(result []byte, name string) ([]json.RawMessage, error) {
	f := jsonmsg.Read(result, wire.Limits())
	var out []json.RawMessage
	for _, item := range f.Elements(name, maxItems) {
		out = append(out, json.RawMessage(item))
	}
	return out, f.Err()
}
