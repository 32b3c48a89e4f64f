package editor

import "encoding/json"

// The objects of the Language Server Protocol (3.17) that are used here.
type (
	// position counts lines and UTF-16 code units from 0.
	position struct {
		Line      int `json:"line"`
		Character int `json:"character"`
	}

	span struct {
		Start position `json:"start"`
		End   position `json:"end"`
	}

	location struct {
		URI   string `json:"uri"`
		Range span   `json:"range"`
	}

	diagnostic struct {
		Range       span      `json:"range"`
		Severity    int       `json:"severity"`
		Code        string    `json:"code"`
		Description *link     `json:"codeDescription,omitempty"`
		Source      string    `json:"source"`
		Message     string    `json:"message"`
		Related     []related `json:"relatedInformation,omitempty"`
	}

	link struct {
		Href string `json:"href"`
	}

	related struct {
		Location location `json:"location"`
		Message  string   `json:"message"`
	}

	published struct {
		URI         string       `json:"uri"`
		Version     int          `json:"version"`
		Diagnostics []diagnostic `json:"diagnostics"`
	}

	textEdit struct {
		Range span   `json:"range"`
		Text  string `json:"newText"`
	}

	workspaceEdit struct {
		Changes map[string][]textEdit `json:"changes"`
	}

	codeAction struct {
		Title       string        `json:"title"`
		Kind        string        `json:"kind"`
		Diagnostics []diagnostic  `json:"diagnostics"`
		Edit        workspaceEdit `json:"edit"`
	}

	markup struct {
		Kind  string `json:"kind"`
		Value string `json:"value"`
	}

	hover struct {
		Contents markup `json:"contents"`
		Range    span   `json:"range"`
	}

	completion struct {
		Label  string `json:"label"`
		Kind   int    `json:"kind"`
		Detail string `json:"detail,omitempty"`
		Insert string `json:"insertText,omitempty"`
	}
)

// These are the parameters of requests and notifications.
type (
	item struct {
		URI     string `json:"uri"`
		Version int    `json:"version"`
		Text    string `json:"text"`
	}

	beginning struct {
		Root    string   `json:"rootUri"`
		Folders []folder `json:"workspaceFolders"`
	}

	folder struct {
		URI string `json:"uri"`
	}

	opened struct {
		Document item `json:"textDocument"`
	}

	changed struct {
		Document item `json:"textDocument"`
		Changes  []struct {
			Range *json.RawMessage `json:"range"`
			Text  string           `json:"text"`
		} `json:"contentChanges"`
	}

	placed struct {
		Document item     `json:"textDocument"`
		Position position `json:"position"`
		NewName  string   `json:"newName"`
		Context  struct {
			Declaration bool `json:"includeDeclaration"`
		} `json:"context"`
	}

	acting struct {
		Document item `json:"textDocument"`
		Range    span `json:"range"`
	}
)

// These are the protocol's numbers for kinds of completions and for severities.
const (
	kindField = 5
	kindValue = 12

	severityError   = 1
	severityWarning = 2
	severityInfo    = 3
)

// capabilities returns the capabilities of this server. Editors must send whole texts.
func capabilities() map[string]any {
	return map[string]any{
		"capabilities": map[string]any{
			"textDocumentSync":   map[string]any{"openClose": true, "change": 1, "save": true},
			"hoverProvider":      true,
			"definitionProvider": true,
			"referencesProvider": true,
			"completionProvider": map[string]any{"triggerCharacters": []string{"{", ".", ":", " "}},
			"renameProvider":     map[string]any{"prepareProvider": true},
			"codeActionProvider": map[string]any{"codeActionKinds": []string{"quickfix"}},
		},
		"serverInfo": map[string]any{"name": "agf-validate"},
	}
}
