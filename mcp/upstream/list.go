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

// errLarge means that a list exceeds the limits.
var errLarge = errors.New("the list is too large")

// List returns the elements of all pages of a list. An empty cursor ends the list, as in the
// official clients. So does a cursor that was seen before, because some servers return one page for
// ever.
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

// distinct removes elements that are byte for byte equal to an earlier one.
func distinct(all []json.RawMessage) []json.RawMessage {
	seen := map[string]bool{}
	return slices.DeleteFunc(all, func(one json.RawMessage) bool {
		again := seen[string(one)]
		seen[string(one)] = true
		return again
	})
}

// member returns the name of the member that holds the list of a method's result.
func member(method string) string {
	if method == "resources/templates/list" {
		return "resourceTemplates"
	}
	name, _, _ := strings.Cut(method, "/")
	return name
}

// cursorParams returns the params that request a page.
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

// elements returns the unchanged elements of a list in a result.
func elements(result []byte, name string) ([]json.RawMessage, error) {
	f := jsonmsg.Read(result, wire.Limits())
	var out []json.RawMessage
	for _, item := range f.Elements(name, maxItems) {
		out = append(out, json.RawMessage(item))
	}
	return out, f.Err()
}
