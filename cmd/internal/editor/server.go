// Package editor implements the Language Server Protocol for editors: diagnostics while the user
// types, descriptions of fields, completion, definitions and references, renaming, and fixes of
// findings.
package editor

import (
	"context"
	"encoding/json"
	"errors"
	"fmt"
	"io"
	"path/filepath"
	"runtime/debug"
	"slices"
	"strings"
	"sync/atomic"

	"github.com/sourcegraph/jsonrpc2"

	"github.com/assent-dev/assent/diag"
	"github.com/assent-dev/assent/internal/yamldoc"
	"github.com/assent-dev/assent/lint"
	"github.com/assent-dev/assent/lint/rules"
	"github.com/assent-dev/assent/policy"
)

// Settings are the inputs for checking files.
type Settings struct {
	Options  lint.Options
	Policies []*policy.Policy // that references may lead to
	Groups   []string         // that policies may ask; nil: unknown
	HelpURL  func(rule string) string
	// Drift returns how the text of an agent's file differs from the committed one: calls that are
	// newly asked about, or no longer. It is called when a file is opened or saved. If it is nil,
	// nothing is compared.
	Drift func(path string, src []byte) []Drift
}

// Drift is one change since the last commit.
type Drift struct {
	At      diag.Position // in the text; the zero Position is its beginning
	Message string
	Loosens bool // or may loosen
}

// Load reads the settings. It is called at the start, and after a file was saved.
type Load func() (Settings, error)

// ErrNoShutdown means that the editor disconnected without a shutdown request.
var ErrNoShutdown = errors.New("the editor ended without a shutdown request")

// Serve serves one editor until it ends the session. It answers malformed messages with an error.
func Serve(ctx context.Context, in io.Reader, out io.Writer, load Load) error {
	settings, err := load()
	if err != nil {
		return err
	}
	s := &server{
		load:      load,
		settings:  settings,
		documents: map[string]*document{},
		drifts:    map[string][]Drift{},
		done:      make(chan struct{}),
	}
	s.worker = lint.New(rules.All(), settings.Options).Worker()
	source := &watched{Reader: in}
	conn := jsonrpc2.NewConn(ctx, newStream(source, out), jsonrpc2.HandlerWithError(s.handle))
	select {
	case <-s.done:
	case <-conn.DisconnectNotify():
	}

	err = conn.Close()
	switch {
	case s.shutdown:
		return nil
	case source.ended.Load():
		return ErrNoShutdown
	case err != nil && !errors.Is(err, jsonrpc2.ErrClosed):
		return fmt.Errorf("a message can't be read: %w", err)
	}

	return errors.New("the editor ended the connection")
}

// watched records whether the input has ended.
type watched struct {
	io.Reader
	ended atomic.Bool
}

func (w *watched) Read(p []byte) (int, error) {
	n, err := w.Reader.Read(p)
	if errors.Is(err, io.EOF) {
		w.ended.Store(true)
	}
	return n, err
}

// server is one session. Its connection passes it one message at a time.
type server struct {
	load      Load
	settings  Settings
	worker    *lint.Worker
	documents map[string]*document // by URI
	drifts    map[string][]Drift   // by URI, as of when it was opened or saved
	folders   []string             // that the editor has open
	shutdown  bool
	done      chan struct{}
}

// handle answers one message. A panic becomes an error response and does not end the session.
func (s *server) handle(
	ctx context.Context,
	conn *jsonrpc2.Conn,
	req *jsonrpc2.Request,
) (result any, err error) {
	defer func() {
		if r := recover(); r != nil {
			err = fmt.Errorf("%s: internal error: %v\n%s", req.Method, r, debug.Stack())
		}
	}()
	var params json.RawMessage
	if req.Params != nil {
		params = *req.Params
	}
	if answer := s.requests()[req.Method]; answer != nil {
		return answer(params)
	}
	if take := s.notifications()[req.Method]; take != nil {
		return nil, take(ctx, conn, params)
	}
	if req.Notif || strings.HasPrefix(req.Method, "$/") {
		return nil, nil // the protocol wants unknown notifications passed over
	}
	return nil, &jsonrpc2.Error{
		Code:    jsonrpc2.CodeMethodNotFound,
		Message: req.Method + " is not offered",
	}
}

func (s *server) requests() map[string]func(json.RawMessage) (any, error) {
	return map[string]func(json.RawMessage) (any, error){
		"initialize":                 s.begin,
		"shutdown":                   s.shut,
		"textDocument/hover":         at(s, (*document).hover),
		"textDocument/completion":    at(s, complete),
		"textDocument/definition":    at(s, (*document).definition),
		"textDocument/prepareRename": at(s, (*document).renamable),
		"textDocument/rename":        at(s, (*document).rename),
		"textDocument/references":    at(s, (*document).references),
		"textDocument/codeAction":    s.actions,
	}
}

func (s *server) notifications() map[string]func(context.Context, *jsonrpc2.Conn, json.RawMessage) error {
	return map[string]func(context.Context, *jsonrpc2.Conn, json.RawMessage) error{
		"textDocument/didOpen":            s.open,
		"textDocument/didChange":          s.change,
		"textDocument/didSave":            s.reload,
		"workspace/didChangeWatchedFiles": s.reload,
		"textDocument/didClose":           s.close,
		"exit":                            s.exit,
	}
}

// at returns the handler for requests about a position. If the file is not open, the response is
// empty.
func at[T any](
	s *server,
	answer func(*document, *Settings, placed) (T, error),
) func(json.RawMessage) (any, error) {
	return func(params json.RawMessage) (any, error) {
		var p placed
		if err := json.Unmarshal(params, &p); err != nil {
			return nil, invalid(err)
		}
		d := s.documents[p.Document.URI]
		if d == nil || d.foreign || !d.has(p.Position) {
			return nil, nil
		}
		d.around = workspace{open: s.documents, folders: s.folders}
		return answer(d, &s.settings, p)
	}
}

// begin stores the folders that the editor has open.
func (s *server) begin(params json.RawMessage) (any, error) {
	var p beginning
	if err := json.Unmarshal(params, &p); err != nil {
		return nil, invalid(err)
	}
	s.folders = nil
	for _, f := range append(p.Folders, folder{URI: p.Root}) {
		if path := pathOf(f.URI); path != "" && !slices.Contains(s.folders, path) {
			s.folders = append(s.folders, path)
		}
	}
	return capabilities(), nil
}

func invalid(err error) error {
	return &jsonrpc2.Error{Code: jsonrpc2.CodeInvalidParams, Message: err.Error()}
}

func (s *server) shut(json.RawMessage) (any, error) {
	s.shutdown = true
	return nil, nil
}

func (s *server) exit(context.Context, *jsonrpc2.Conn, json.RawMessage) error {
	close(s.done)
	return nil
}

func (s *server) open(ctx context.Context, conn *jsonrpc2.Conn, params json.RawMessage) error {
	var p opened
	if err := json.Unmarshal(params, &p); err != nil {
		return invalid(err)
	}
	delete(s.drifts, p.Document.URI)
	return s.take(ctx, conn, p.Document)
}

func (s *server) change(ctx context.Context, conn *jsonrpc2.Conn, params json.RawMessage) error {
	var p changed
	if err := json.Unmarshal(params, &p); err != nil {
		return invalid(err)
	}
	if len(p.Changes) == 0 {
		return nil
	}
	last := p.Changes[len(p.Changes)-1]
	if last.Range != nil {
		return invalid(errors.New("whole texts are asked for, and a part of one came"))
	}
	p.Document.Text = last.Text
	return s.take(ctx, conn, p.Document)
}

// take stores the text of a document and publishes its diagnostics.
func (s *server) take(ctx context.Context, conn *jsonrpc2.Conn, it item) error {
	d := newDocument(it)
	s.check(d)
	if old := s.documents[it.URI]; old != nil && yamldoc.Stops(d.found) && d.root() == nil {
		d.tree = old.root() // names that were there a moment ago are better than none
	}
	s.documents[it.URI] = d
	return s.publish(ctx, conn, d)
}

// reload reads the settings again, because a policy may have been saved. If they can't be read, the
// old ones stay in use.
func (s *server) reload(ctx context.Context, conn *jsonrpc2.Conn, _ json.RawMessage) error {
	if settings, err := s.load(); err == nil {
		s.settings = settings
		s.worker = lint.New(rules.All(), settings.Options).Worker()
	}
	clear(s.drifts)
	return s.recheck(ctx, conn)
}

// recheck checks every open document again.
func (s *server) recheck(ctx context.Context, conn *jsonrpc2.Conn) error {
	for _, d := range s.documents {
		s.check(d)
		if err := s.publish(ctx, conn, d); err != nil {
			return err
		}
	}

	return nil
}

func (s *server) close(ctx context.Context, conn *jsonrpc2.Conn, params json.RawMessage) error {
	var p opened
	if err := json.Unmarshal(params, &p); err != nil {
		return invalid(err)
	}
	delete(s.documents, p.Document.URI)
	delete(s.drifts, p.Document.URI)
	return conn.Notify(ctx, "textDocument/publishDiagnostics", published{
		URI:         p.Document.URI,
		Diagnostics: []diagnostic{},
	})
}

// check lints a document.
func (s *server) check(d *document) {
	name := filepath.Base(d.path())
	switch {
	case d.foreign:
	case d.content == lint.PolicyContent:
		d.found = s.worker.Policy(name, d.src).Findings
	case d.content == lint.PeopleContent:
		d.found = s.worker.People(name, d.src).Findings
	default:
		d.found = s.worker.Agent(name, d.src, d.files()).Findings
	}
}

func (s *server) publish(ctx context.Context, conn *jsonrpc2.Conn, d *document) error {
	return conn.Notify(ctx, "textDocument/publishDiagnostics", published{
		URI:         d.uri,
		Version:     d.version,
		Diagnostics: s.diagnostics(d),
	})
}

// diagnostics returns the findings of a document, and its changes since the last commit.
func (s *server) diagnostics(d *document) []diagnostic {
	list := []diagnostic{}
	for _, f := range d.found {
		list = append(list, d.diagnostic(f, &s.settings))
	}
	for _, c := range s.drift(d) {
		list = append(list, d.drifted(c))
	}
	return list
}

// drift compares a document with the committed version. The result is kept until the document is
// opened or saved again.
func (s *server) drift(d *document) []Drift {
	known, ok := s.drifts[d.uri]
	if !ok && s.settings.Drift != nil && !d.foreign && d.content == lint.AgentContent && d.path() != "" {
		known = s.settings.Drift(d.path(), d.src)
		s.drifts[d.uri] = known
	}
	return known
}

// drifted converts a change since the last commit to a diagnostic.
func (d *document) drifted(c Drift) diagnostic {
	end := c.At
	end.Column = len(d.line(c.At.Line-1)) + 1
	return diagnostic{
		Range:    d.span(diag.Range{Start: c.At, End: end}),
		Severity: c.severity(),
		Code:     "since-last-commit",
		Source:   "agf-validate",
		Message:  c.Message,
	}
}

func (c Drift) severity() int {
	if c.Loosens {
		return severityWarning
	}
	return severityInfo
}

// diagnostic converts a finding to a diagnostic, with the same text as on the terminal.
func (d *document) diagnostic(f diag.Finding, set *Settings) diagnostic {
	text := f.Message
	if f.Nearest != "" {
		text += fmt.Sprintf(" (did you mean %q?)", f.Nearest)
	}
	if f.Expected != "" {
		text += "\nwant " + f.Expected
	}
	out := diagnostic{
		Range:       d.span(f.Range),
		Severity:    severity(f.Severity),
		Code:        f.Rule,
		Description: &link{Href: set.HelpURL(f.Rule)},
		Source:      "agf-validate",
		Message:     text,
	}
	for _, r := range f.Related {
		if r.File == "" {
			out.Related = append(out.Related, related{
				Location: location{URI: d.uri, Range: d.span(r.Range)},
				Message:  r.Message,
			})
		}
	}

	return out
}

func severity(s diag.Severity) int {
	switch s {
	case diag.Error:
		return severityError
	case diag.Warning:
		return severityWarning
	}

	return severityInfo
}

// scalars returns the scalars that match a condition.
func scalars(root *yamldoc.Node, wanted func(spot) bool) (found []spot) {
	eachScalar(root, nil, func(s spot) bool {
		if wanted(s) {
			found = append(found, s)
		}
		return true
	})
	return found
}
