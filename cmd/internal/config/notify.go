package config

import (
	"maps"
	"reflect"
	"sync"

	"github.com/assent-dev/assent/cmd/internal/channels"
	"github.com/assent-dev/assent/internal/document"
	"github.com/assent-dev/assent/mcp/config"
	"github.com/assent-dev/assent/server/notify"
)

// Notify contains a tenant's settings for each notification channel, by the channel's field, in
// values that the channel's settings created.
type Notify struct{ said map[string]any }

// Place returns the value into which the settings of a channel are read.
func (n *Notify) Place(field string) reflect.Value {
	for _, c := range channels.All() {
		if c.Settings == nil || c.Settings.Field != field {
			continue
		}
		if n.said[field] == nil {
			n.put(field, c.Settings.New())
		}

		return document.Target(n.said[field])
	}

	return reflect.Value{}
}

// Say sets the settings of a channel.
func (n *Notify) Say(field string, settings any) {
	place := reflect.New(reflect.TypeOf(settings))
	place.Elem().Set(reflect.ValueOf(settings))
	n.put(field, place.Interface())
}

func (n *Notify) put(field string, place any) {
	said := map[string]any{field: place}
	for other, there := range n.said { // which copies of the tenant have too
		if other != field {
			said[other] = there
		}
	}
	n.said = said
}

// Receivers returns the receivers that are notified of requests through a channel.
func (n Notify) Receivers(c notify.Channel) []notify.Receiver {
	if c.Settings == nil || n.said[c.Settings.Field] == nil {
		return nil
	}

	return c.Settings.Receivers(n.said[c.Settings.Field])
}

// wholeTable returns the table with the fields of channels and of MCP gateways added. Callers must
// not change it.
var wholeTable = sync.OnceValue(func() []byte {
	fields := map[string][]byte{}
	for _, c := range channels.All() {
		if c.Settings != nil {
			fields[c.Settings.Field] = c.Settings.Schema
		}
	}
	text, err := document.Join(table, []string{"tenant_fields", "properties", "notify", "properties"}, fields)
	if err == nil {
		gateways := map[string][]byte{"mcp": mcpSection("").Schema}
		text, err = document.Join(text, []string{"tenant_fields", "properties"}, gateways)
	}
	if err != nil {
		panic(err) // all of it is compiled in, and read by tests
	}

	return text
})

// mcpSection returns the section for MCP gateways in a tenant's configuration.
func mcpSection(dir string) config.Section {
	s, err := config.NewSection(dir)
	if err != nil {
		panic(err) // it is compiled in, and read by tests
	}

	return s
}

// channelChecks adds the checks of the channels' settings.
func channelChecks(all map[string]document.Check) map[string]document.Check {
	for _, c := range channels.All() {
		if c.Settings != nil {
			maps.Copy(all, c.Settings.Checks)
		}
	}

	return all
}
