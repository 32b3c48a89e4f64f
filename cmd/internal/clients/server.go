package clients

import (
	"fmt"
	"maps"
	"net/textproto"
	"path/filepath"
	"slices"
	"strings"

	"github.com/assent-dev/assent/internal/settings"
	"github.com/assent-dev/assent/mcp/config"
)

// server is a client's entry in the form of the gateway's configuration.
type server struct {
	config.Upstream

	name string // in the client's file
	// carried are variables that the gateway's entry sets, because only the client can replace
	// their references.
	carried map[string]string
	// inherited are variables of the client's environment.
	inherited []string
	// The following values are written to files of their own: variables, headers by name, and the
	// token.
	variables map[string]string
	headers   map[string]string
	token     string
	notes     []string
}

// kind is the kind of an entry.
type kind uint8

const (
	other kind = iota // built into the client, or nothing that we know
	ours              // a gateway
	off               // switched off
	plain             // a server that can be moved, or should
)

// kindOf returns the kind of an entry.
func (c client) kindOf(m settings.Member) kind {
	fields, ok := m.Value.(map[string]any)
	if !ok {
		return other
	}
	if isGateway(c, fields) {
		return ours
	}
	if fields["disabled"] == true || fields["enabled"] == false {
		return off
	}
	_, program := fields[c.words.command]
	has := func(name string) bool { return fields[name] != nil }
	if program || slices.ContainsFunc(c.words.urls, has) {
		return plain
	}

	return other
}

// isGateway reports whether an entry starts a gateway of assent.
func isGateway(c client, fields map[string]any) bool {
	command, _ := fields[c.words.command].(string)
	program := strings.TrimSuffix(filepath.Base(filepath.ToSlash(command)), ".exe")

	return program == "assent" && gatewayConfig(c, fields) != ""
}

// gatewayConfig returns the configuration file in the arguments of an entry: assent mcp gateway
// --config FILE.
func gatewayConfig(c client, fields map[string]any) string {
	args, _ := fields[c.words.args].([]any)
	want := []any{"mcp", "gateway", "--config"}
	if len(args) < 4 || !slices.Equal(args[:3], want) {
		return ""
	}
	file, _ := args[3].(string)

	return file
}

// reader converts the fields of an entry to a server.
type reader struct {
	spot spot
	w    words
	name string
	line int
	in   map[string]any
	out  server
	err  error
}

// serverOf converts an entry. It returns an error if the gateway could not do something in the same
// way as the client.
func (s spot) serverOf(m settings.Member) (server, error) {
	r := reader{
		spot: s,
		w:    s.client.words,
		name: m.Name,
		line: m.Line,
		in:   maps.Clone(m.Value.(map[string]any)),
	}
	r.out.name, r.out.Alias = m.Name, aliasOf(m.Name)
	r.out.carried, r.out.FillIn = map[string]string{}, map[string]string{}
	r.program()
	r.remote()
	r.variables()
	r.dotenv()
	r.tools()
	r.rest()

	return r.out, r.err
}

// wrong stores the first error.
func (r *reader) wrong(format string, args ...any) {
	if r.err == nil {
		r.err = fmt.Errorf(
			"%s:%d: the server %s: %s",
			r.spot.file,
			r.line,
			r.name,
			fmt.Sprintf(format, args...),
		)
	}
}

// take returns and removes a field.
func (r *reader) take(name string) any {
	if name == "" {
		return nil
	}
	v := r.in[name]
	delete(r.in, name)

	return v
}

func (r *reader) text(name string) string {
	v := r.take(name)
	s, ok := v.(string)
	r.expect(ok || v == nil, name, "a text")

	return s
}

func (r *reader) expect(holds bool, name, what string) {
	if !holds {
		r.wrong("%s: expected %s", name, what)
	}
}

// textOf returns a value as a text. It sets ok to false if the value is no text.
func textOf(value any, ok *bool) string {
	text, is := value.(string)
	*ok = *ok && is

	return text
}

func (r *reader) list(name string) []string {
	var out []string
	v := r.take(name)
	items, ok := v.([]any)
	for _, item := range items {
		out = append(out, textOf(item, &ok))
	}
	r.expect(ok || v == nil, name, "a list of texts")

	return out
}

func (r *reader) texts(name string) map[string]string {
	out := map[string]string{}
	v := r.take(name)
	fields, ok := v.(map[string]any)
	for key, value := range fields {
		out[key] = textOf(value, &ok)
	}
	r.expect(ok || v == nil, name, "texts by their names")

	return out
}

// filled replaces references that have the same value wherever the gateway starts. If the client
// replaces others in the variables of an entry, the gateway takes them from there.
func (r *reader) filled(name, text string) string {
	if r.w.refers == nil {
		return text
	}
	return r.w.refers.ReplaceAllStringFunc(text, func(found string) string {
		value, known := r.spot.valueOf(found)
		switch {
		case known:
			return value
		case !r.w.carries:
			r.unsupported(name, found)
			return found
		}
		from := r.variable("ref_" + strings.Trim(found, "${}"))
		for r.out.carried[from] != "" && r.out.carried[from] != found {
			from += "_"
		}
		r.out.carried[from], r.out.FillIn[found] = found, from
		return found
	})
}

// unsupported adds an error about a reference.
func (r *reader) unsupported(name, reference string) {
	r.wrong("%s holds %s, which only %s can fill in: write what it stands for, then install again",
		name, reference, r.spot.client.title)
}

// valueOf returns the value that a client would use for a reference, if it is known: directories of
// the user and of the project.
func (s spot) valueOf(reference string) (value string, known bool) {
	name := strings.TrimPrefix(strings.Trim(reference, "${}"), "env:")
	switch name {
	case "HOME", "userHome":
		return s.home, s.home != ""
	case "workspaceFolder", "workspaceRoot", "CLAUDE_PROJECT_DIR":
		return s.project, s.project != ""
	case "workspaceFolderBasename":
		return filepath.Base(s.project), s.project != ""
	case "pathSeparator", "/":
		return string(filepath.Separator), true
	}
	return "", false
}

func (r *reader) program() {
	r.out.Command = r.filled(r.w.command, r.text(r.w.command))
	for _, arg := range r.list(r.w.args) {
		r.out.Args = append(r.out.Args, r.filled(r.w.args, arg))
	}
	cwd := r.filled(r.w.cwd, r.text(r.w.cwd))
	switch {
	case r.out.Command == "":
	case filepath.IsAbs(cwd) || r.w.refers != nil && r.w.refers.MatchString(cwd):
		r.out.Cwd = cwd
	case r.spot.project != "":
		r.out.Cwd = filepath.Join(r.spot.project, cwd)
	case cwd != "":
		r.wrong("cwd: expected an absolute path, since nobody knows where %s starts", r.spot.client.title)
	}
}

func (r *reader) remote() {
	for _, name := range r.w.urls {
		if u := r.filled(name, r.text(name)); r.out.URL == "" {
			r.out.URL = u
		}
	}
	r.named()
	r.out.headers = map[string]string{}
	headers := r.texts(r.w.headers)
	for _, name := range slices.Sorted(maps.Keys(headers)) {
		r.header(name, headers[name])
	}
}

// named reads the token and the headers whose values are variables of the client's environment.
func (r *reader) named() {
	r.out.TokenEnv = r.text(r.w.tokenEnv)
	r.out.HeaderEnv = r.texts(r.w.headerEnv)
	r.out.inherited = slices.Sorted(maps.Values(r.out.HeaderEnv))
	if r.out.TokenEnv != "" {
		r.out.inherited = append(r.out.inherited, r.out.TokenEnv)
	}
}

// header moves a header's value into a file, a bearer token into its own, unless only the client
// can replace its references.
func (r *reader) header(name, value string) {
	token, bearer := strings.CutPrefix(value, "Bearer ")
	switch {
	case config.IsOurHeader(name):
		r.out.notes = append(r.out.notes, "the header "+name+" is left out: the gateway sets it itself")
	case r.carry(name, value):
		r.out.HeaderEnv[name] = r.variable(name)
	case textproto.CanonicalMIMEHeaderKey(name) == "Authorization" && bearer:
		r.out.token = token
	default:
		r.out.headers[name] = value
	}
}

// carry reports whether a value has to stay in the client's file, as a variable of the gateway's
// entry, and moves it there.
func (r *reader) carry(name, value string) bool {
	if r.w.refers == nil || !r.w.refers.MatchString(value) {
		return false
	}
	if !r.w.carries {
		r.unsupported(name, r.w.refers.FindString(value))
		return false
	}
	r.out.carried[r.variable(name)] = value

	return true
}

// variable returns the name of the gateway's variable for a value of a server.
func (r *reader) variable(name string) string {
	return strings.ToUpper("ASSENT_" + r.out.Alias + "_" + aliasOf(name))
}

func (r *reader) variables() {
	r.out.EnvFrom, r.out.variables = map[string]string{}, map[string]string{}
	env := r.texts(r.w.env)
	for _, name := range slices.Sorted(maps.Keys(env)) {
		if !config.IsVariable(name) {
			r.wrong("%s: %q is no name of a variable: take it out", r.w.env, name)
		}
		// If the client doesn't replace references in env, the value is a plain text.
		if r.w.carries && r.carry(name, env[name]) {
			r.out.EnvFrom[name] = r.variable(name)
		} else {
			r.out.variables[name] = env[name]
		}
	}

	for _, name := range r.list(r.w.envNames) {
		if r.out.URL == "" {
			r.out.EnvFrom[name] = name
		}
		r.out.inherited = append(r.out.inherited, name)
	}
}

// dotenv sets the file of variables, which the gateway reads when it starts.
func (r *reader) dotenv() {
	file := r.text("envFile")
	if file == "" {
		return
	}
	if rest, found := strings.CutPrefix(file, "~/"); found {
		file = filepath.Join(r.spot.home, rest)
	}
	expanded := braces().ReplaceAllStringFunc(file, func(found string) string {
		value, known := r.spot.valueOf(found)
		if !known {
			r.unsupported("envFile", found)
		}
		return value
	})
	if !filepath.IsAbs(expanded) && r.spot.project != "" {
		expanded = filepath.Join(r.spot.project, expanded)
	}
	if !filepath.IsAbs(expanded) {
		r.wrong("envFile: expected an absolute path, since nobody knows where %s starts", r.spot.client.title)
	}
	r.out.DotenvFile = expanded
}

// tools converts the lists of tools that the client offers.
func (r *reader) tools() {
	for _, name := range []string{"includeTools", "enabled_tools", "available_tools"} {
		if list, is := r.in[name].([]any); is && len(list) == 0 && name != "available_tools" {
			r.wrong("%s: it offers no tool at all: take the server out", name)
		}
		for _, tool := range r.list(name) {
			tool, _, _ = strings.Cut(tool, "(") // Gemini CLI allows arguments behind a name
			r.out.IncludeTools = append(r.out.IncludeTools, tool)
		}
	}
	if slices.Contains(r.out.IncludeTools, "*") {
		r.out.IncludeTools = nil
	}
	for _, name := range []string{"excludeTools", "disabled_tools"} {
		r.out.ExcludeTools = append(r.out.ExcludeTools, r.list(name)...)
	}
}

// aside returns fields that the gateway can ignore for every client: they describe a server, repeat
// other fields, or suppress questions of the client itself.
func aside() []string {
	return []string{
		"description", "transport", "title", "name", "display_name", "displayName", "icon", "icons", "tags", "version",
		"homepage", "comment", "$comment", "_comment", "disabled", "enabled", "timeout", "alwaysAllow", "autoApprove",
	}
}

// rest returns an error for unknown fields, because their effect would be lost.
func (r *reader) rest() {
	for _, name := range slices.Concat(r.w.aside, aside()) {
		delete(r.in, name)
	}
	left := slices.Sorted(maps.Keys(r.in))
	if len(left) > 0 {
		r.wrong("%s: the gateway can't do what this says: take it out, or choose others with --server", left[0])
	}
	if r.out.Command != "" && r.out.URL != "" {
		r.wrong("expected a program or an address, and this has both")
	}
	if r.out.URL != "" { // no program is started
		r.out.variables, r.out.EnvFrom, r.out.DotenvFile = nil, nil, ""
	}
}

// aliasOf derives an alias from a name.
func aliasOf(name string) string {
	alias := strings.Map(func(c rune) rune {
		if c < 0x80 && (c >= '0' && c <= '9' || c|0x20 >= 'a' && c|0x20 <= 'z') {
			return c
		}

		return '_'
	}, name)
	for strings.Contains(alias, "__") {
		alias = strings.ReplaceAll(alias, "__", "_")
	}
	if alias == "" || alias[0] >= '0' && alias[0] <= '9' {
		alias = "t_" + alias
	}

	return alias
}
