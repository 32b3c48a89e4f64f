package wire

import (
	"encoding/json"
	"strings"

	"github.com/assent-dev/assent/internal/jsonmsg"
)

// reserved is the prefix of the protocol's own keys of _meta.
const reserved = "io.modelcontextprotocol/"

// The keys of _meta that a gateway reads.
const (
	KeyVersion      = reserved + "protocolVersion"
	KeyCapabilities = reserved + "clientCapabilities"
	KeyClientInfo   = reserved + "clientInfo"
	KeyServerInfo   = reserved + "serverInfo"
	KeyLogLevel     = reserved + "logLevel"
	KeySubscription = reserved + "subscriptionId"
	KeyProgress     = "progressToken"
)

// traces returns the keys of the trace context, which are relayed.
func traces() []string { return []string{"traceparent", "tracestate", "baggage"} }

// Meta is the _meta of params.
type Meta struct {
	Version      string          // modern: of this request; "" when absent
	Capabilities json.RawMessage // modern: of the client for this request; nil when absent
	ClientInfo   json.RawMessage // self-reported, never for security; nil when absent
	LogLevel     string          // modern
	Progress     ID              // token for progress; zero when absent
	Trace        []jsonmsg.Member
	Foreign      []jsonmsg.Member // all other keys
}

// IsModern reports whether the request is of a modern version.
func (m *Meta) IsModern() bool { return m.Version != "" || m.Capabilities != nil }

// ReadMeta reads the _meta of params, which is optional.
func ReadMeta(params []byte) (Meta, *Error) {
	all, err := split(objectOr(params), "_meta")
	if err != nil {
		return Meta{}, badParams(err)
	}
	return readMeta(all["_meta"])
}

// readMeta parses _meta. It refuses a key that a reader could take for another one, and a key of
// the protocol with an invalid value.
func readMeta(raw []byte) (Meta, *Error) {
	var m Meta
	if raw == nil {
		return m, nil
	}
	if !jsonmsg.IsObject(raw) {
		return m, Fail(CodeInvalidParams, "params._meta: expected an object, found %s", jsonmsg.Describe(raw))
	}

	lim := Limits()
	lim.FoldKeys = true
	f := jsonmsg.Read(raw, lim)
	for _, member := range f.Members() {
		if !m.take(member) {
			return m, Fail(
				CodeInvalidParams,
				"params._meta.%s: not what the protocol expects there",
				member.Name,
			)
		}
	}

	if f.Err() != nil {
		return m, Fail(CodeInvalidParams, "params._meta: %v", f.Err())
	}
	return m, nil
}

// take stores a key. It returns false if the value of a protocol key is invalid.
func (m *Meta) take(member jsonmsg.Member) (ok bool) {
	switch name := member.Name; {
	case name == KeyVersion:
		m.Version, ok = jsonmsg.ReadString(member.Raw)
		return ok && m.Version != ""
	case name == KeyLogLevel:
		m.LogLevel, ok = jsonmsg.ReadString(member.Raw)
		return ok
	case name == KeyProgress:
		m.Progress, ok = ReadID(member.Raw)
		return ok
	case name == KeyCapabilities:
		m.Capabilities = member.Raw
		return jsonmsg.IsObject(member.Raw)
	case name == KeyClientInfo:
		m.ClientInfo = member.Raw
		return jsonmsg.IsObject(member.Raw)
	case isTrace(name):
		m.Trace = append(m.Trace, member)
	case !Reserved(name):
		m.Foreign = append(m.Foreign, member)
	}

	return true
}

func isTrace(name string) bool {
	for _, trace := range traces() {
		if name == trace {
			return true
		}
	}

	return false
}

// Reserved reports whether a key of _meta belongs to the protocol: the
// second label of its prefix is modelcontextprotocol or mcp.
func Reserved(key string) bool {
	prefix, _, has := strings.Cut(key, "/")
	labels := strings.Split(prefix, ".")
	return has && len(labels) > 1 && (labels[1] == "modelcontextprotocol" || labels[1] == "mcp")
}

// Append writes the _meta of a request as an object. The gateway's own keys come before the others.
func (m *Meta) Append(dst []byte) ([]byte, error) {
	w := jsonmsg.Append(dst)
	w.Object(m.write)
	return w.Text, w.Err()
}

// write writes the protocol's keys, the trace context and foreign keys, in this order.
func (m *Meta) write(w *jsonmsg.Writer) {
	w.Optional(KeyVersion, m.Version)
	if m.Capabilities != nil {
		w.Name(KeyCapabilities).Verbatim(m.Capabilities)
	}
	if m.ClientInfo != nil {
		w.Name(KeyClientInfo).Verbatim(m.ClientInfo)
	}
	w.Optional(KeyLogLevel, m.LogLevel)
	if !m.Progress.IsZero() {
		w.Name(KeyProgress).Verbatim([]byte(m.Progress.Text()))
	}
	for _, member := range append(m.Trace[:len(m.Trace):len(m.Trace)], m.Foreign...) {
		w.Name(member.Name).Verbatim(member.Raw)
	}
}

// IsEmpty reports whether there is nothing to write.
func (m *Meta) IsEmpty() bool {
	own := m.Version != "" || m.LogLevel != "" || m.Capabilities != nil || m.ClientInfo != nil
	return !own && m.Progress.IsZero() && len(m.Trace) == 0 && len(m.Foreign) == 0
}
