package resolve

import (
	"fmt"
	"strconv"

	"github.com/assent-dev/assent/schema"
	"github.com/assent-dev/assent/value"
)

// Bind returns the binding of a call under this plan: "sha256:…" over
// the agent's id and version, the plan's version, principal and
// session, kind and target, the tool definition, its annotations and declared arguments,
// the parent's input and the arguments in canonical form (RFC 8785).
// Any change of any of them gives another binding. An unreadable call
// has none.
func (p *Plan) Bind(c *Call) (string, error) {
	t := p.find(c)
	if t == nil {
		t = &target{limits: p.argumentLimits(place{})}
	}
	args, err := p.args(c, t)
	if err != nil {
		return "", fmt.Errorf("arguments: %w", err)
	}
	parent, err := p.parentInput(c)
	if err != nil {
		return "", fmt.Errorf("parent input: %w", err)
	}
	return p.bind(c, documents{args, parent}).String(), nil
}

// bind writes the bound facts as one object in canonical form, its keys
// in order, and digests it.
func (p *Plan) bind(c *Call, d documents) value.Digest {
	b := make([]byte, 0, 1024+len(d.args.canonical)+len(d.parent.canonical))
	b = append(b, p.bindHead...)
	b = appendHints(append(b, `,"annotations":`...), c.Annotations)
	b = append(append(b, `,"args":`...), d.args.canonical...)
	b = appendDeclared(b, c.Declared)
	b = strconv.AppendBool(append(b, `,"parent_given":`...), c.ParentInput != nil)
	b = append(append(b, `,"parent_input":`...), d.parent.canonical...) // null when there is none
	b = append(b, p.bindPlan...)
	b = appendText(append(b, `,"principal":`...), c.Principal)
	b = appendText(append(b, `,"session":`...), c.Session)
	b = appendText(append(b, `,"target":{"agent":`...), c.Agent)
	b = appendText(append(b, `,"kind":`...), string(c.Kind))
	b = appendText(append(b, `,"remote":`...), remoteName(c.Remote))
	b = appendText(append(b, `,"server":`...), c.Server)
	b = appendText(append(b, `,"skill":`...), c.Skill)
	b = appendText(append(b, `,"tool":`...), c.Tool)
	b = appendText(append(b, `,"tool_definition":`...), c.ToolDefinition)
	return value.SumCanonical(append(b, "}}"...))
}

// bindPlan returns the part of every binding that depends on the plan.
func bindPlan(version value.Digest) []byte {
	return appendText([]byte(`,"plan":`), version.String())
}

// bindHead returns the part of every binding that depends on the agent.
func bindHead(m *schema.Metadata) []byte {
	b := appendText([]byte(`{"agent":{"id":`), m.ID)
	b = appendText(append(b, `,"version":`...), m.Version)
	return append(b, '}')
}

// appendHints appends annotations as the server reported them. Policies can match them, so an
// approval is valid for these annotations only.
func appendHints(dst []byte, hints map[string]bool) []byte {
	v := value.Value{Kind: value.Object}
	for name, hint := range hints {
		v.Members = append(v.Members, value.Member{Key: name, Value: value.Value{Kind: value.Bool, Bool: hint}})
	}

	return v.AppendCanonical(dst)
}

// appendDeclared appends the declared arguments, if any, since rules can match them. Bindings of calls
// without them are as they were before there were declared arguments.
func appendDeclared(dst []byte, names []string) []byte {
	if len(names) == 0 {
		return dst
	}
	v := value.Value{Kind: value.Array}
	for _, name := range names {
		v.Items = append(v.Items, value.Value{Kind: value.String, Text: name})
	}
	return v.AppendCanonical(append(dst, `,"declared":`...))
}

func appendText(dst []byte, s string) []byte {
	return value.Value{Kind: value.String, Text: s}.AppendCanonical(dst)
}

func remoteName(r Remote) string {
	switch r {
	case RemoteYes:
		return "remote"
	case RemoteNo:
		return "local"
	default:
		return ""
	}
}
