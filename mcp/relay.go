package mcp

import (
	"context"
	"crypto/rand"
	"encoding/json"
	"errors"
	"net/url"
	"slices"
	"strings"
	"unicode"

	"github.com/assent-dev/assent/internal/jsonmsg"
	"github.com/assent-dev/assent/mcp/catalog"
	"github.com/assent-dev/assent/mcp/server"
	"github.com/assent-dev/assent/mcp/wire"
)

// Questions configures what a server may ask during a call. Answers to these questions never
// approve anything.
type Questions struct {
	Elicitation bool     // the user of the client, with the alias before the question
	Sampling    bool     // the model of the client
	Roots       []string // URIs of directories with which the gateway answers; may be nil
	ClientRoots bool     // those of the client instead, if it has any
	// Instructions passes the server's own instructions to the model of the client, with the alias
	// before them.
	Instructions bool
}

const (
	methodSample = "sampling/createMessage"
	methodRoots  = "roots/list"
	mostLinks    = 16 // in one error of a server
)

// relays reports whether any question may reach a client.
func (q *Questions) relays() bool { return q.Elicitation || q.Sampling || q.ClientRoots }

// Declared returns the client capabilities that are reported to a server outside of a client's
// call: all that the configuration relays.
func (q *Questions) Declared() json.RawMessage {
	return q.declared([]byte(`{"elicitation":{"form":{},"url":{}},"sampling":{},"roots":{}}`))
}

// declared returns the client capabilities that are reported to a server for a client: those that
// the client has and the configuration relays.
func (q *Questions) declared(client []byte) json.RawMessage {
	return written(func(w *jsonmsg.Writer) {
		if asks := jsonmsg.Get(client, "elicitation"); q.Elicitation && jsonmsg.IsObject(asks) {
			w.Name("elicitation").Verbatim(asks)
		}
		if model := jsonmsg.Get(client, "sampling"); q.Sampling && jsonmsg.IsObject(model) {
			w.Name("sampling").Verbatim(model)
		}
		if len(q.Roots) > 0 || q.ClientRoots && jsonmsg.IsObject(jsonmsg.Get(client, "roots")) {
			w.Name("roots").Object(func(*jsonmsg.Writer) {})
		}
	})
}

// errNotRelayed means that a server's question can't be passed to the client of the call.
var errNotRelayed = errors.New("this client takes no such requests")

// errNotShown means that a question can't be shown safely.
var errNotShown = errors.New("the question can't be shown")

// relayable returns the params of a server's question as the client gets them. If the gateway
// answers the question itself, own is the answer.
func (f *forwarder) relayable(
	s *Server, able server.Capabilities, method string, params json.RawMessage,
) (shown, own json.RawMessage, err error) {
	q := &s.Questions
	switch {
	case method == methodRoots && q.ClientRoots && jsonmsg.IsObject(jsonmsg.Get(able.Raw, "roots")):
		return orObject(params), nil, nil
	case method == methodRoots && len(q.Roots) > 0:
		return nil, rootsOf(q.Roots), nil
	case method == methodElicit && q.Elicitation:
		shown, err = f.elicitation(s.Alias, able, params)
		return shown, nil, err
	case method == methodSample && q.Sampling && jsonmsg.IsObject(jsonmsg.Get(able.Raw, "sampling")):
		return params, nil, nil
	}

	return nil, nil, errNotRelayed
}

// Answer answers a server's requests while no client waits for it: the configured roots.
func (q *Questions) Answer(_ context.Context, method string, _ json.RawMessage) (json.RawMessage, *wire.Error) {
	if method == methodRoots && len(q.Roots) > 0 {
		return rootsOf(q.Roots), nil
	}
	return nil, wire.Fail(wire.CodeMethodNotFound, "%v", errNotRelayed)
}

func rootsOf(all []string) json.RawMessage {
	return written(func(w *jsonmsg.Writer) {
		var roots [][]byte
		for _, uri := range all {
			roots = append(roots, written(func(w *jsonmsg.Writer) { w.Member("uri", uri) }))
		}
		w.Name("roots").Elements(roots)
	})
}

// elicitation returns a question for the user with the server's alias before it and texts that are
// safe to show.
func (f *forwarder) elicitation(
	alias string, able server.Capabilities, params json.RawMessage,
) (json.RawMessage, error) {
	if mode, _ := jsonmsg.ReadString(jsonmsg.Get(params, "mode")); mode == "url" {
		return f.link(alias, able, params)
	}
	if !able.Form {
		return nil, errNotRelayed
	}
	return labelled(alias, params)
}

// labelled puts the alias of a server before its question.
func labelled(alias string, params json.RawMessage) (json.RawMessage, error) {
	message, is := jsonmsg.ReadString(jsonmsg.Get(params, "message"))
	if !is {
		return nil, errNotShown
	}
	message, _ = catalog.Instructions(message)
	text, err := jsonmsg.Marshal(alias + " asks: " + message)
	if err != nil {
		return nil, err
	}
	safe := catalog.Sanitise(jsonmsg.Put(params, "message", text))
	if safe.Problem != "" {
		return nil, errNotShown
	}
	return safe.Text, nil
}

// link returns a server's link for the client. It must be an https URL that doesn't lead to a page
// of assent. Its id is replaced with one of the gateway's.
func (f *forwarder) link(alias string, able server.Capabilities, params json.RawMessage) (json.RawMessage, error) {
	text, _ := jsonmsg.ReadString(jsonmsg.Get(params, "url"))
	if !able.URL || !f.mayLead(text) {
		return nil, errNotRelayed
	}
	params, err := labelled(alias, params)
	if err != nil || jsonmsg.Get(params, "elicitationId") == nil {
		return params, err
	}
	id, err := jsonmsg.Marshal("el_" + rand.Text())
	return jsonmsg.Put(params, "elicitationId", id), err
}

// mayLead reports whether a client may be sent to a URL that a server chose. It must not be a page
// where people approve.
func (f *forwarder) mayLead(text string) bool {
	u, err := url.Parse(text)
	if err != nil || u.Scheme != "https" || u.User != nil || !plainHost(u.Hostname()) {
		return false
	}
	own := slices.Clone(f.cfg.Own)
	if f.cfg.Page != nil {
		own = append(own, f.cfg.Page("x"))
	}
	return !slices.ContainsFunc(own, func(page string) bool {
		o, err := url.Parse(page)
		return err != nil || strings.EqualFold(o.Hostname(), u.Hostname())
	})
}

// plainHost reports whether a host name is written in the one form that can be compared. Browsers
// accept other spellings of the same host, too.
func plainHost(name string) bool {
	odd := func(c rune) bool { return c > unicode.MaxASCII || c == '%' }
	return name != "" && !strings.HasSuffix(name, ".") && !strings.ContainsFunc(name, odd)
}

// asker returns a function that answers a server's questions while a call of a legacy client is
// open. It returns nil if the client can't be asked this way.
func (f *forwarder) asker(
	s *Server, with *server.Exchange,
) func(context.Context, string, json.RawMessage) (json.RawMessage, *wire.Error) {
	if with == nil || with.Modern() {
		return nil
	}
	return func(ctx context.Context, method string, params json.RawMessage) (json.RawMessage, *wire.Error) {
		asked, own, err := f.relayable(s, with.Capabilities(), method, params)
		if err != nil || own != nil {
			return ownAnswer(method, own, err)
		}
		return with.Ask(ctx, method, asked)
	}
}

// nobodyChose is the answer to a question that was not shown to the user.
const nobodyChose = `{"action":"cancel"}`

// ownAnswer returns the answer to a server's question that was not passed to the client.
func ownAnswer(method string, own json.RawMessage, err error) (json.RawMessage, *wire.Error) {
	switch {
	case err != nil && method == methodElicit:
		return json.RawMessage(nobodyChose), nil
	case err != nil:
		return nil, wire.Fail(wire.CodeMethodNotFound, "%v", err)
	}

	return own, nil
}

// relayedError returns a server's error as the client gets it. An error that sends the user to a
// page is replaced if a link may not lead there.
func (f *forwarder) relayedError(r *server.Request, alias string, bad *wire.Error) *wire.Error {
	if bad.Code != wire.CodeURLElicitation {
		return bad
	}
	refused := wire.Fail(
		wire.CodeInternal,
		"the server %s wants the user to open a page that is not shown here",
		alias,
	)
	if r.Modern || r.Version != wire.V20251125 || !f.servers[alias].Questions.Elicitation {
		return refused
	}
	fields := jsonmsg.Read(bad.Data, wire.Limits())
	var links [][]byte
	for _, one := range fields.Elements("elicitations", mostLinks) {
		params, err := f.link(alias, r.Capabilities, one)
		if err != nil {
			return refused
		}
		links = append(links, params)
	}

	if fields.Err() != nil {
		return refused
	}
	message, _ := catalog.Instructions(bad.Message)
	out := wire.Fail(bad.Code, "%s: %s", alias, message)
	out.Data = written(func(w *jsonmsg.Writer) { w.Name("elicitations").Elements(links) })
	return out
}
