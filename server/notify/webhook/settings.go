package webhook

import (
	_ "embed"
	"fmt"
	"net/netip"

	"github.com/assent-dev/assent/internal/document"
	"github.com/assent-dev/assent/internal/guard"
	"github.com/assent-dev/assent/internal/yamldoc"
	"github.com/assent-dev/assent/server/notify"
)

//go:embed settings.schema.json
var schema []byte

// Settings are a tenant's configuration of one receiver of webhooks.
type Settings struct {
	notify.Route
	Name        string   `doc:"name"`
	URLFile     string   `doc:"url_file"` // used instead of URL, because paths of webhooks are often secrets
	URL         string   `doc:"url"`
	SecretFiles []string `doc:"secret_file"` // whsec_…; each one signs, so that a receiver can change secrets
	Loopback    bool     `doc:"loopback"`    // allow this machine, also with plain http
	Networks    []string `doc:"networks"`    // private networks that are allowed
}

// Channel describes the channel.
func Channel() notify.Channel {
	settings := notify.NewSettings("webhooks", schema, receivers)
	settings.Checks = map[string]document.Check{"webhook": check}

	return notify.Channel{Name: "webhook", Settings: settings}
}

func check(d *document.Decoder, n *yamldoc.Node, object any) {
	s := object.(*Settings)
	whole := s.Name != "" && len(s.SecretFiles) > 0
	if whole && (s.URL == "") == (s.URLFile == "") {
		d.Wrong(n, "this webhook lacks something", "name, secret_file, and one of url and url_file", "")
	}
}

// receivers returns the receivers of a tenant, which may have several.
func receivers(all []Settings) []notify.Receiver {
	var out []notify.Receiver
	for _, s := range all {
		out = append(out, notify.Receiver{
			Key:   s.Name,
			Route: s.Route,
			Check: func(read notify.Secrets) []error {
				_, err := s.sender(read)
				return []error{err}
			},
			Open: func(h notify.Host) (notify.Sender, error) { return s.sender(h.Secrets) },
		})
	}

	return out
}

func (s Settings) sender(read notify.Secrets) (*Sender, error) {
	address := s.URL
	if s.URLFile != "" {
		var err error
		if address, err = read(s.URLFile); err != nil {
			return nil, err
		}
	}

	cfg := Config{URL: address, Guard: guard.Guard{Loopback: s.Loopback}}
	for _, text := range s.Networks {
		network, err := netip.ParsePrefix(text)
		if err != nil {
			return nil, fmt.Errorf("networks: %w", err)
		}
		cfg.Guard.Allow = append(cfg.Guard.Allow, network)
	}

	for _, file := range s.SecretFiles {
		secret, err := read(file)
		if err != nil {
			return nil, err
		}
		cfg.Secrets = append(cfg.Secrets, secret)
	}

	return New(cfg)
}
