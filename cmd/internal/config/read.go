package config

import (
	_ "embed"
	"fmt"
	"maps"
	"net/netip"
	"path/filepath"
	"strings"
	"sync"
	"time"

	"github.com/assent-dev/assent/cmd/internal/stores"
	"github.com/assent-dev/assent/cmd/internal/term"
	"github.com/assent-dev/assent/diag"
	"github.com/assent-dev/assent/internal/document"
	"github.com/assent-dev/assent/internal/yamldoc"
	"github.com/assent-dev/assent/rap/peer"
	"github.com/assent-dev/assent/resolve"
)

// table defines every field and flag of the configurations. The settings of channels are defined in
// the channels' directories.
//
//go:embed config.schema.json
var table []byte

// schemaURL is the base URL of the published schemas.
const schemaURL = "https://github.com/assent-dev/assent/schema/"

// JSON returns the JSON Schema of a configuration, "serve" or
// "gateway", for editors and other validators.
func JSON(kind string) ([]byte, error) {
	name := map[string]string{"serve": "serve", "gateway": "gateway_file"}[kind]

	return document.Publish(wholeTable(), name, schemaURL+kind+".schema.json")
}

// schemas returns the schemas of the table. They are loaded once, because the flags of several
// commands are created from them whenever the program starts.
var schemas = sync.OnceValue(func() *document.Schema {
	s, err := document.Load(wholeTable())
	if err != nil {
		panic(err) // the table is compiled in, and read by tests
	}

	return s
})

// schemaOf returns one of the schemas of the table.
func schemaOf(name string) *document.Schema { return schemas().Def(name) }

// read reads a file according to a schema of the table. It prints findings with their positions to
// the error stream.
func (a Reader) read(file, name string, into any) error {
	src, err := term.ReadFile(file, nil)
	if err != nil {
		return err
	}
	doc, findings := yamldoc.Parse(file, src, yamldoc.Limits{})
	d := decoder(filepath.Dir(file))
	if doc != nil {
		d.Decode(doc.Root, schemaOf(name), into)
	}
	d.Findings = append(yamldoc.Stopping(findings), d.Findings...)
	if len(d.Findings) == 0 {
		return nil
	}
	diag.Stamp(d.Findings, file)
	term.PrintFindings(a.Err, d.Findings, map[string][]byte{file: src})

	return fmt.Errorf("the configuration %s can't be used", file)
}

// decoder reads documents, or flags, whose paths are as seen from a
// directory.
func decoder(dir string) *document.Decoder {
	gateways := mcpSection(dir)
	all := formats(dir)
	maps.Copy(all, gateways.Formats)
	d := &document.Decoder{
		Rule:    "config-invalid",
		Formats: all,
		Checks: channelChecks(map[string]document.Check{
			"serve":        check(checkServeFile),
			"witness":      check(checkWitness),
			"size_parts":   check(checkParts),
			"count_parts":  check(checkParts),
			"size_shares":  check(checkParts),
			"count_shares": check(checkParts),
			"caller":       check(checkCaller),
			"gateway":      check(checkServed),
			"runtime":      check(checkRuntime),
			"gateway_file": check(checkGatewayFile),
		}),
	}
	maps.Copy(d.Checks, gateways.Checks)
	return d
}

func check[T any](look func(*document.Decoder, *yamldoc.Node, *T)) document.Check {
	return func(d *document.Decoder, n *yamldoc.Node, object any) { look(d, n, object.(*T)) }
}

// formats returns the forms of text that the table names.
func formats(dir string) map[string]document.Format {
	beside := func(name string) string {
		if dir == "" || name == "" || filepath.IsAbs(name) {
			return name
		}

		return filepath.Join(dir, name)
	}
	text := func(look func(text string) string) document.Format {
		return document.Format{Read: func(text string) (any, string, string) { return look(text), "", "" }}
	}
	holds := func(strict bool, problem, expected string, ok func(text string) bool) document.Format {
		return document.Format{
			Strict: strict,
			Read: func(text string) (any, string, string) {
				if !ok(text) {
					return nil, problem, expected
				}

				return text, "", ""
			},
		}
	}

	return map[string]document.Format{
		"duration": document.Duration(),
		"age":      {Strict: true, Read: readAge},
		"path":     text(beside),
		"store": text(func(text string) string {
			if stores.IsURL(text) {
				return text
			}

			return beside(text)
		}),
		"watermark": text(func(text string) string {
			if text == NoWatermark {
				return text
			}

			return beside(text)
		}),
		"listen":  holds(true, "is no address to listen at", "HOST:PORT, such as 127.0.0.1:7717", isAddress),
		"host":    holds(false, "is no name", "one such as assent.internal, without scheme and port", hostName),
		"network": holds(true, "is no network", "one such as 10.1.0.0/16", isNetwork),
		"url": holds(false, "is no address that could be called",
			"https://HOST/PATH without user and password; http only of this machine", callable),
		"origin":   {Read: readOrigin},
		"callback": {Read: readCallback},
		"target":   {Read: readTarget},
		"size":     {Strict: true, Read: readSize},
	}
}

// leastRetention is the minimum of retention: a smaller value is probably a mistake.
const leastRetention = 24 * time.Hour

func readAge(text string) (any, string, string) {
	age, err := term.ParseAge(text)
	switch {
	case err != nil:
		return nil, "is no age", "one such as 90d or 36h"
	case age < leastRetention:
		return nil, "is too short: people may still need what they approved", "at least 1d"
	}

	return age, "", ""
}

func isNetwork(text string) bool {
	_, err := netip.ParsePrefix(text)

	return err == nil
}

// callable returns an error if package peer would not call a URL. The error doesn't contain the
// URL, because paths and queries may contain secrets.
func callable(text string) bool {
	_, err := peer.New(peer.Config{URL: text, Networks: everywhere()})

	return err == nil
}

func readOrigin(text string) (any, string, string) {
	if _, err := peer.New(peer.Config{Allow: []string{text}, Networks: everywhere()}); err != nil {
		return nil, "is no origin that could be reached", "https://HOST or https://HOST:PORT, without a path; http " +
			"only of this machine"
	}

	return text, "", ""
}

// readCallback reads origins, and origins of this machine at any port:
// http://127.0.0.1:*.
func readCallback(text string) (any, string, string) {
	origin, anyPort := strings.CutSuffix(text, ":*")
	switch {
	case !anyPort:
		return readOrigin(text)
	case !peer.LocalWithoutPort(origin):
		return nil, "can't be reached: any port is for addresses of this machine alone",
			"http://127.0.0.1:*, or an origin with its port"
	}

	return text, "", ""
}

func readTarget(text string) (any, string, string) {
	if err := resolve.CheckTarget(text); err != nil {
		return nil, "is no target: " + err.Error(), "such as \"tool grep\" or \"mcp_tool files/grep\""
	}

	return text, "", ""
}

func readSize(text string) (any, string, string) {
	bytes, err := parseSize(text)
	if err != nil {
		return nil, "is no size", "a whole number above 0, with KiB, MiB or GiB behind it unless it counts bytes, " +
			"such as 256MiB"
	}

	return bytes, "", ""
}
