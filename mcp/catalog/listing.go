package catalog

import (
	"errors"
	"fmt"

	"github.com/assent-dev/assent/internal/jsonmsg"
	"github.com/assent-dev/assent/value"
)

// maxList bounds the list of one server, in bytes.
const maxList = 64 << 20

// Elements reads a whole list that was saved in a file: the result of tools/list, the response that
// contains it, or only the array of tools. Errors begin with the place. The elements are not
// validated; see Read.
func Elements(file string, text []byte) ([][]byte, error) {
	if _, err := jsonmsg.Check(text, value.Limits{MaxBytes: maxList}); err != nil {
		var unsound *value.Error
		if errors.As(err, &unsound) && unsound.Line > 0 {
			return nil, fmt.Errorf(
				"%s:%d:%d: no list of tools: %s",
				file,
				unsound.Line,
				unsound.Column,
				unsound.Detail,
			)
		}

		return nil, fmt.Errorf("%s: no list of tools: %w", file, err)
	}

	path, list := inner(text)
	place := func(path []string, format string, args ...any) error {
		line, column := jsonmsg.Place(text, path)
		return fmt.Errorf("%s:%d:%d: %w", file, line, column, fmt.Errorf(format, args...))
	}
	if jsonmsg.IsObject(list) {
		if more := jsonmsg.Get(list, "nextCursor"); more != nil && string(more) != "null" {
			return nil, place(
				below(path, "nextCursor"),
				"the list goes on: put the tools of all pages into one list",
			)
		}

		path = below(path, "tools")
		list = jsonmsg.Get(list, "tools")
	}

	if jsonmsg.Describe(list) != "an array" {
		return nil, place(
			path,
			"expected the result of tools/list, or an array of tools; found %s",
			jsonmsg.Describe(list),
		)
	}

	var out [][]byte
	for raw, err := range value.SplitArray(list) {
		if err != nil {
			return nil, place(path, "no list of tools: %w", err)
		}
		out = append(out, raw)
	}

	return out, nil
}

// inner returns the result of a response, or the whole text if it is no response.
func inner(text []byte) (path []string, list []byte) {
	if result := jsonmsg.Get(text, "result"); jsonmsg.IsObject(result) {
		return []string{"result"}, result
	}
	return nil, jsonmsg.Trim(text)
}
