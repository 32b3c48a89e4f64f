package config

import (
	"bytes"
	"path/filepath"
	"strings"
	"testing"

	"github.com/assent-dev/assent/cmd/internal/term"
	"github.com/assent-dev/assent/cmd/internal/testfiles"
)

const goodGateway = `name: files
agent: desk
agents: agents
callers:
  - {name: here, callbacks: ["http://127.0.0.1:7717"]}
operations:
  - {name: write, description: Writes., schema: s.json, url: "http://127.0.0.1:7801/write"}
`

const goodRAP = `agents: agents
people: people.yaml
rap:
  runtimes:
    - agent: desk
      servers:
        - {name: files, url: "https://tools.example/files", networks: [10.1.0.0/16]}
`

// reads reads a file of assent rap gateway, or of assent serve, and
// returns what was said about it.
func reads(t *testing.T, gateway bool, text string) (said string, err error) {
	t.Helper()
	var errOut bytes.Buffer
	a := Reader{Streams: term.Streams{Err: &errOut}}
	path := testfiles.Write(t, filepath.Join(t.TempDir(), "c.yaml"), text)
	if gateway {
		_, err = a.Gateway(path, gatewayFlags())
	} else {
		_, err = a.readServe(path)
	}
	return errOut.String(), err
}

// TestRAPConfigRefusals checks that an invalid configuration is reported once, at its position,
// with a correction.
func TestRAPConfigRefusals(t *testing.T) {
	for name, c := range map[string]struct {
		gateway     bool
		old, new    string // of the good file
		place, want string
	}{
		"a server and no askers": {
			false,
			"      servers:\n",
			"      server: https://approvals.example\n      servers:\n",
			":5:7:",
			"nobody could ask there",
		},
		"askers and no server": {
			false,
			"      servers:\n",
			"      askers: [{token: a, server_token_file: a.token}]\n      servers:\n",
			":5:7:",
			"tokens of a server, and there is none",
		},
		"an asker twice": {
			false,
			"      servers:\n",
			"      server: https://approvals.example\n      askers:\n        - {token: a, server_token_file: a}\n" +
				"        - {token: a, server_token_file: b}\n      servers:\n",
			":9:11:",
			"another asker",
		},
		"no callbacks": {true, `, callbacks: ["http://127.0.0.1:7717"]`, ``, ":5:5:", "this caller lacks callbacks"},
		"no origin": {
			true,
			`"http://127.0.0.1:7717"`,
			`"127.0.0.1:7717"`,
			":5:30:",
			"https://HOST or https://HOST:PORT, without a path",
		},
		"an origin's path": {true, `7717"]`, `7717/cb"]`, ":5:30:", "without a path"},
		"plain http": {
			true, `http://127.0.0.1:7717`, `http://agents.example`, ":5:30:", "http only of this machine",
		},
		"a second caller": {
			true,
			"callers:\n",
			"callers:\n  - {name: here, token_file: t, callbacks: [\"https://a.example\"]}\n",
			":6:5:",
			`another caller is called "here"`,
		},
		"two without tokens": {
			true,
			"callers:\n",
			"callers:\n  - {name: there, callbacks: [\"https://a.example\"]}\n",
			":6:5:",
			"= expected: token_file",
		},
		"signed with what": {true, "{name: here,", "{name: here, signed: true,", ":5:5:", "signed without a token"},
		"a network":        {true, "{name: here,", "{name: here, networks: 10.1,", ":5:28:", "one such as 10.1.0.0/16"},
		"no URL":           {true, `"http://127.0.0.1:7801/write"`, `"7801/write"`, ":7:62:", "https://HOST/PATH"},
		"a password": {
			true,
			`http://127.0.0.1:7801/`,
			`https://u:p@a.example/`,
			":7:62:",
			"without user and password",
		},
		"no schema": {true, `schema: s.json, `, ``, ":7:5:", "this operation lacks schema"},
		"an operation twice": {
			true,
			"operations:\n",
			"operations:\n  - {name: write, description: W., schema: s.json, url: \"https://a.example\"}\n",
			":8:5:",
			`another operation is called "write"`,
		},
		"nothing to offer": {
			true,
			goodGateway[strings.Index(goodGateway, "operations"):],
			"",
			":1:1:",
			"operations or upstream",
		},
		"no agent":         {true, "agent: desk\n", "", ":1:1:", "this gateway lacks agent"},
		"no agents":        {true, "agents: agents\n", "", ":1:1:", "the directory of the agent's file"},
		"a name of a list": {true, "name: files", "name: [files]", ":1:7:", "a text that is not empty"},
		"nobody":           {true, "agent: desk", "agent: desk\nask: aprovers", ":3:6:", "user, approvers or both"},
		"no approvers": {
			true,
			"agent: desk",
			"agent: desk\nask: both",
			":1:1:",
			"a token of it with the scope request",
		},
		"half a server": {
			true,
			"agent: desk",
			"agent: desk\nserver: https://a.example",
			":1:1:",
			"server_token_file, here or in each caller",
		},
		"the other half": {
			true,
			"agent: desk",
			"agent: desk\nserver_token_file: t",
			":1:1:",
			"server, or no server_token_file",
		},
		"a token for what": {
			true,
			"{name: here,",
			"{name: here, server_token_file: t,",
			":1:1:",
			"a caller has a server_token_file, and there is no server",
		},
		"ports of others": {
			true,
			`"http://127.0.0.1:7717"`,
			`"https://a.example:*"`,
			":5:30:",
			"any port is for addresses of this machine alone",
		},
		"a session": {true, "agent: desk", "agent: desk\nsession: yes", ":3:10:", "an object"},
		"uses":      {true, "agent: desk", "agent: desk\nsession: {uses: 0}", ":3:17:", "a whole number above 0"},
		"a time":    {true, "agent: desk", "agent: desk\nwithin: 5", ":3:9:", "one such as 10s or 2m"},
		"a typo":    {true, "agent: desk", "agent: desk\nwithn: 5m", ":3:1:", "did you mean: within"},

		"no servers": {
			false,
			goodRAP[strings.Index(goodRAP, "      servers"):],
			"",
			":5:7:",
			"this runtime lacks servers",
		},
		"a runtime's agent": {false, "agent: desk", "question_within: 1m", ":5:7:", "this runtime lacks agent"},
		"a server's name":   {false, "name: files, ", "", ":7:11:", "this tool server lacks name"},
		"a server twice": {
			false,
			"      servers:\n",
			"      servers:\n        - {name: files, url: \"https://b.example\"}\n",
			":8:11:",
			`another tool server is called "files"`,
		},
		"an agent twice": {
			false,
			"  runtimes:\n",
			"  runtimes:\n    - {agent: desk, servers: {name: a, url: \"https://a.example\"}}\n",
			":6:7:",
			`another runtime of agent is called "desk"`,
		},
		"what is allowed": {
			false,
			"networks: [10.1.0.0/16]",
			"allow: https://a.example/x",
			":7:68:",
			"without a path",
		},
		"a gateway twice": {
			false,
			"rap:\n",
			"rap:\n  gateways:\n    - &g {name: g, agent: desk, callers: {name: c, callbacks: " +
				"\"https://a.example\"}, upstream: {name: u, url: \"https://u.example\"}}\n" +
				"    - {name: g, agent: desk, callers: {name: c, callbacks: \"https://a.example\"}, upstream: " +
				"{name: u, url: \"https://u.example\"}}\n",
			":6:7:",
			`another gateway is called "g"`,
		},
		"what RAP is": {false, goodRAP[strings.Index(goodRAP, "  runtimes"):], "  - x\n", ":4:3:", "an object"},
	} {
		good := goodRAP
		if c.gateway {
			good = goodGateway
		}
		text := strings.Replace(good, c.old, c.new, 1)
		said, err := reads(t, c.gateway, text)
		if err == nil || text == good || !strings.Contains(said, "c.yaml"+c.place) ||
			!strings.Contains(said, c.want) {
			t.Errorf("%s: %v\n%s", name, err, said)
		}
		if n := strings.Count(said, "[config-invalid]"); n != 1 {
			t.Errorf("%s: %d findings\n%s", name, n, said)
		}
	}

	for name, c := range map[string]struct{ callers, want string }{
		"one token for two": {
			"[{name: a, token_file: a, callbacks: \"https://a.example\"}, {name: b, token_file: b, callbacks: " +
				"\"https://b.example\"}]",
			"several callers would ask by one token",
		},
		"a person elsewhere": {
			"{name: a, person: mara, callbacks: \"https://a.example\"}",
			"person of the caller a can't be told to the server",
		},
	} {
		i, j := strings.Index(goodGateway, "callers:"), strings.Index(goodGateway, "operations:")
		text := goodGateway[:i] + "server: https://s.example\nserver_token_file: t\ncallers: " + c.callers + "\n" +
			goodGateway[j:]
		if said, err := reads(t, true, text); err == nil || !strings.Contains(said, c.want) {
			t.Errorf("%s: %v\n%s", name, err, said)
		}
	}

	for gateway, good := range map[bool]string{true: goodGateway, false: goodRAP} {
		if said, err := reads(t, gateway, good); err != nil {
			t.Errorf("%v\n%s", err, said)
		}
	}
}
