package config

import (
	"net"
	"net/netip"
	"net/url"
	"path/filepath"
	"slices"
	"strings"
	"time"

	"github.com/assent-dev/assent/internal/document"
	"github.com/assent-dev/assent/internal/pattern"
	"github.com/assent-dev/assent/rap/peer"
)

// formats returns the text formats that the table uses.
func formats(dir string) map[string]document.Format {
	beside := func(name string) string {
		if dir == "" || filepath.IsAbs(name) || strings.HasPrefix(name, "$") { // fill_in may make it absolute
			return name
		}

		return filepath.Join(dir, name)
	}

	return map[string]document.Format{
		"duration":   document.Duration(),
		"permit_age": {Strict: true, Read: readPermitAge},
		"hold":       {Strict: true, Read: readHold},
		"path":       text(beside),
		"store":      text(unless(isStoreURL, beside)),
		"watermark":  text(unless(func(s string) bool { return s == NoWatermark }, beside)),
		"argument":   holds(isArgument, "has a NUL in it", "a text without one"),
		"variable":   holds(IsVariable, "is no name of a variable", "letters, digits and _, such as API_KEY"),
		"name": holds(
			isName,
			"is no name of an address",
			"lower-case letters, digits and hyphens, a letter or digit first, such as issue-tracker",
		),
		"alias":   holds(IsAlias, "is no alias", "letters, digits and _, such as issue_tracker"),
		"listen":  holds(isAddress, "is no address to listen at", "HOST:PORT, such as 127.0.0.1:7719"),
		"host":    holds(isHost, "is no name", "one such as assent.internal, without scheme and port"),
		"network": holds(isNetwork, "is no network", "one such as 10.1.0.0/16"),
		"scope":   holds(isScope, "is no scope", "one word, such as mcp:tools"),
		"origin":  holds(isOrigin, "is no origin", "https://HOST or https://HOST:PORT, without a path"),
		"url": holds(isCallable, "is no address that could be called",
			"https://HOST/PATH without user and password; http only of this machine"),
	}
}

func text(look func(text string) string) document.Format {
	return document.Format{Read: func(text string) (any, string, string) { return look(text), "", "" }}
}

func unless(is func(string) bool, look func(string) string) func(string) string {
	return func(s string) string {
		if is(s) {
			return s
		}

		return look(s)
	}
}

func holds(ok func(text string) bool, problem, expected string) document.Format {
	return document.Format{Read: func(text string) (any, string, string) {
		if !ok(text) {
			return nil, problem, expected
		}

		return text, "", ""
	}}
}

func isStoreURL(s string) bool { return strings.Contains(s, "://") }

func isArgument(s string) bool { return !strings.ContainsRune(s, 0) }

var (
	variable = pattern.Of(`^[A-Za-z_][A-Za-z0-9_]*$`)
	alias    = pattern.Of(`^[A-Za-z_][A-Za-z0-9_]*$`)
	name     = pattern.Of(`^[a-z0-9][a-z0-9-]{0,62}$`)
	header   = pattern.Of("^[A-Za-z0-9!#$%&'*+.^_`|~-]+$")
)

// IsVariable reports whether a name may be that of a variable.
func IsVariable(s string) bool { return variable().MatchString(s) }

// IsAlias reports whether a name may be used as a server's alias in agents' files and before the
// names of its tools. It may not contain two underscores, which separate the alias from the name.
func IsAlias(s string) bool { return alias().MatchString(s) && !strings.Contains(s, "__") }

func isName(s string) bool { return name().MatchString(s) }

func isAddress(s string) bool {
	_, port, err := net.SplitHostPort(s)

	return err == nil && port != ""
}

func isHost(s string) bool {
	return s != "" && !strings.ContainsAny(s, "/:@?# \t")
}

func isNetwork(s string) bool {
	_, err := netip.ParsePrefix(s)

	return err == nil
}

// isScope reports whether a text is a scope-token (RFC 6749 section
// 3.3).
func isScope(s string) bool {
	other := func(r rune) bool { return r <= ' ' || r >= 0x7f || r == '"' || r == '\\' }

	return s != "" && !strings.ContainsFunc(s, other)
}

func isOrigin(s string) bool {
	u, err := url.Parse(s)
	if err != nil || u.Host == "" || u.User != nil {
		return false
	}

	return u.Scheme+"://"+u.Host == s && slices.Contains([]string{"http", "https"}, u.Scheme)
}

// reference matches a text that fill_in may replace. The result is checked at the start.
var reference = pattern.Of(`\$\{[^}]*\}`)

// isCallable reports whether package peer would accept a URL. Its addresses are compared with
// networks at the start.
func isCallable(s string) bool {
	_, err := peer.New(peer.Config{URL: reference().ReplaceAllString(s, "x"), Networks: []netip.Prefix{
		netip.PrefixFrom(netip.IPv4Unspecified(), 0),
		netip.PrefixFrom(netip.IPv6Unspecified(), 0),
	}})

	return err == nil
}

func readPermitAge(s string) (any, string, string) {
	d, err := time.ParseDuration(s)
	if err != nil || d <= 0 || d > 24*time.Hour {
		return nil, "is no age of a permit", "a time such as 15m, at most 24h"
	}

	return d, "", ""
}

// Holds returns, for clients whose limits are known, how long a call may wait there for an answer.
func Holds() map[string]time.Duration {
	return map[string]time.Duration{
		"claude-code-stdio": 25 * time.Minute,
		"claude-code-http":  4 * time.Minute,
		"claude-desktop":    225 * time.Second,
		"codex":             4 * time.Minute,
		"vscode":            time.Hour,
	}
}

func readHold(s string) (any, string, string) {
	if d, known := Holds()[s]; known {
		return d, "", ""
	}
	d, err := time.ParseDuration(s)
	if err != nil || d < 0 {
		return nil, "is neither a duration nor a client that is known",
			"one such as 45s, claude-code-stdio, claude-code-http, claude-desktop, codex or vscode"
	}

	return d, "", ""
}
