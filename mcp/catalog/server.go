package catalog

import (
	"crypto/sha256"
	"encoding/hex"
	"fmt"
	"net/url"
	"slices"
	"strings"

	"github.com/assent-dev/assent/internal/jsonmsg"
	"github.com/assent-dev/assent/value"
)

// Server is the identity of a server: a command or an address. Claims that the server makes about
// itself are not part of it. Either Command or Origin is set.
type Server struct {
	Command string   // of a server that is started here
	Args    []string // byte for byte
	Dir     string   // its working directory; "" for the gateway's
	Env     []string // names of the variables that it gets
	Binary  string   // "sha256:…" of the command's file; "" unless it is pinned

	Origin string // of a server that is reached by HTTP: "https://tools.example:8443"
	Path   string
	Query  string // "sha256:…" of the address's query, which may hold a secret; "" without one
}

// AtURL returns the server at an address.
func AtURL(address string) (Server, error) {
	u, err := url.Parse(address)
	switch {
	case err != nil:
		return Server{}, fmt.Errorf("the address of an MCP server: %w", err)
	case u.Scheme != "https" && u.Scheme != "http", u.Host == "", u.User != nil, u.Fragment != "":
		return Server{}, fmt.Errorf(
			"the address of an MCP server: expected https://HOST/PATH without a user and a fragment, found %s",
			u.Redacted(),
		)
	}

	s := Server{Origin: origin(u), Path: u.EscapedPath()}
	if s.Path == "" {
		s.Path = "/"
	}
	if u.RawQuery != "" {
		sum := sha256.Sum256([]byte(u.RawQuery))
		s.Query = "sha256:" + hex.EncodeToString(sum[:])
	}
	return s, nil
}

func origin(u *url.URL) string {
	host := strings.ToLower(u.Hostname())
	if strings.Contains(host, ":") {
		host = "[" + host + "]"
	}
	if port := u.Port(); port != "" && port != usualPort(u.Scheme) {
		host += ":" + port
	}
	return u.Scheme + "://" + host
}

func usualPort(scheme string) string {
	if scheme == "http" {
		return "80"
	}
	return "443"
}

// Text returns the server as JSON, in the form that goes into digests and pin files.
func (s Server) Text() ([]byte, error) {
	return jsonmsg.Object(func(w *jsonmsg.Writer) {
		if s.Command == "" {
			w.Member("origin", s.Origin)
			w.Member("path", s.Path)
			w.Optional("query", s.Query)
			return
		}

		s.program(w)
	})
}

func (s Server) program(w *jsonmsg.Writer) {
	w.Member("command", s.Command)
	w.Name("args").Strings(s.Args)
	w.Member("cwd", s.Dir)
	w.Name("env").Strings(slices.Compact(slices.Sorted(slices.Values(s.Env))))
	w.Optional("sha256", s.Binary)
}

// String describes the server on one line.
func (s Server) String() string {
	if s.Command == "" {
		text := s.Origin + s.Path
		if s.Query != "" {
			text += "?…"
		}
		return text
	}

	words := []string{s.Command}
	for _, arg := range s.Args {
		if arg == "" || strings.ContainsAny(arg, " \t\n\"'\\") {
			arg = fmt.Sprintf("%q", arg)
		}
		words = append(words, arg)
	}

	return strings.Join(words, " ")
}

// prefix separates these digests from all others.
const prefix = "assent-mcp-tool-1\n"

// Digest identifies a valid definition of a tool together with its server: "sha256:" and 64
// hexadecimal digits of the SHA-256 over "assent-mcp-tool-1", a line feed, and the canonical form
// (RFC 8785) of {"server":…,"tool":…}. The members of _meta that volatile names are excluded.
func (s Server) Digest(definition []byte, volatile []string) (string, error) {
	server, err := s.Text()
	if err != nil {
		return "", fmt.Errorf("the identity of the server: %w", err)
	}
	return (&digester{server: server}).sum(steady(definition, volatile))
}

// digester computes the digests of one server's tools and reuses its buffers.
type digester struct {
	server          []byte
	text, canonical []byte
}

func (d *digester) sum(definition []byte) (string, error) {
	d.text = append(append(d.text[:0], `{"server":`...), d.server...)
	d.text = append(append(d.text, `,"tool":`...), definition...)
	d.text = append(d.text, '}')
	var err error
	d.canonical = append(d.canonical[:0], prefix...)
	d.canonical, err = value.AppendCanonicalText(d.canonical, d.text, value.Limits{MaxDepth: maxDepth + 1})
	if err != nil {
		return "", fmt.Errorf("the digest of a tool: %w", err)
	}
	return value.SumCanonical(d.canonical).String(), nil
}

// steady returns a definition without the volatile members of _meta. A _meta that becomes empty is
// removed.
func steady(definition []byte, volatile []string) []byte {
	if len(volatile) == 0 {
		return definition
	}
	meta, rest := jsonmsg.Take(definition, "_meta")
	if !jsonmsg.IsObject(meta) {
		return definition
	}
	for _, name := range volatile {
		_, meta = jsonmsg.Take(meta, name)
	}
	if len(jsonmsg.Members(meta)) == 0 {
		return rest
	}
	return jsonmsg.Put(rest, "_meta", meta)
}
