package server

import "github.com/assent-dev/assent/internal/jsonmsg"

// tasksExtension is the name of the modern tasks.
const tasksExtension = "io.modelcontextprotocol/tasks"

// Capabilities are the capabilities that a client declares.
type Capabilities struct {
	Form  bool   // show a form to its user (elicitation)
	URL   bool   // show a link to its user
	Tasks bool   // modern: follow a task instead of an answer
	Raw   []byte // as the client sent them; nil for none
}

// readCapabilities reads the capabilities of a client. Before forms had a name of their own, an
// empty elicitation meant that the client can show them.
func readCapabilities(raw []byte) Capabilities {
	c := Capabilities{Raw: raw}
	elicitation := jsonmsg.Get(raw, "elicitation")
	if jsonmsg.IsObject(elicitation) {
		c.URL = jsonmsg.IsObject(jsonmsg.Get(elicitation, "url"))
		c.Form = jsonmsg.IsObject(jsonmsg.Get(elicitation, "form")) || !c.URL
	}
	c.Tasks = jsonmsg.IsObject(jsonmsg.Get(jsonmsg.Get(raw, "extensions"), tasksExtension))
	return c
}
