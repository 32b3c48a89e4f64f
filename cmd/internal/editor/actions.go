package editor

import (
	"encoding/json"

	"github.com/assent-dev/assent/lint/fix"
)

// actions returns the fixes for the findings in a range.
func (s *server) actions(params json.RawMessage) (any, error) {
	var p acting
	if err := json.Unmarshal(params, &p); err != nil {
		return nil, invalid(err)
	}
	list := []codeAction{}
	d := s.documents[p.Document.URI]
	if d == nil {
		return list, nil
	}
	for _, r := range fix.Of(d.src, d.found) {
		if at := d.span(r.Finding.Range); at.End.Line < p.Range.Start.Line ||
			at.Start.Line > p.Range.End.Line {
			continue
		}
		list = append(list, codeAction{
			Title:       r.Title,
			Kind:        "quickfix",
			Diagnostics: []diagnostic{d.diagnostic(r.Finding, &s.settings)},
			Edit: workspaceEdit{Changes: map[string][]textEdit{d.uri: {{
				Range: span{Start: d.offset(r.Edit.Start), End: d.offset(r.Edit.End)},
				Text:  r.Edit.Text,
			}}}},
		})
	}

	return list, nil
}
