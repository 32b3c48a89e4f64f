package sqlstore

import (
	"bytes"
	"encoding/json"
	"errors"

	"github.com/assent-dev/assent/approval"
)

// revisions are the encoded revisions of a request. They are most of its document and never change, only grow in number.
type revisions struct {
	n    int
	text []byte
}

// hole is where they go: no text within the document can hold these bytes, since quotes in texts are escaped.
var hole = []byte(`"revisions":null`)

// encode writes the document of a request. What it knows of the revisions from last time is written as it is.
func encode(r *approval.Request, known revisions) (body []byte, now revisions, err error) {
	if known.n != len(r.Revisions) {
		if known.text, err = json.Marshal(r.Revisions); err != nil {
			return nil, revisions{}, err
		}
		known.n = len(r.Revisions)
	}
	shell := *r
	shell.Revisions = nil
	text, err := json.Marshal(&shell)
	if err != nil {
		return nil, revisions{}, err
	}
	before, after, ok := bytes.Cut(text, hole)
	if !ok {
		return nil, revisions{}, errors.New("the document has no place for revisions")
	}
	body = make([]byte, 0, len(text)+len(known.text))
	body = append(append(append(body, before...), hole[:len(hole)-len("null")]...), known.text...)
	return append(body, after...), known, nil
}
