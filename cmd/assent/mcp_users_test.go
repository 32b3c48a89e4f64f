package main

import (
	"encoding/json"
	"fmt"
	"io"
	"net/http"
	"os"
	"path/filepath"
	"regexp"
	"strings"
	"testing"

	"github.com/assent-dev/assent/internal/must"
	"github.com/assent-dev/assent/mcp/mcptest"
)

// usersDir returns a gateway whose callers' users are asked.
func usersDir(t *testing.T, more string) (config string) {
	t.Helper()
	dir := t.TempDir()
	writeFiles(t, dir, map[string]string{
		"clerk.agf.yaml": mcptest.Clerk,
		"gateway.yaml":   strings.Replace(filesConfig, "hold: 1s", "hold: 1m"+more, 1) + "ask: user\n",
		"people.yaml":    "schema_version: \"1.0.0\"\npeople:\n  - {id: mara}\n  - {id: ben}\n",
	})
	return filepath.Join(dir, "gateway.yaml")
}

// message reads the next message of the gateway.
func (c *mcpClient) message() (line, method string, id json.RawMessage) {
	c.t.Helper()
	if !c.lines.Scan() {
		c.t.Fatalf("the gateway ended: %v", c.lines.Err())
	}
	var m struct {
		ID     json.RawMessage
		Method string
	}
	must.Do(c.t, json.Unmarshal(c.lines.Bytes(), &m))
	return c.lines.Text(), m.Method, m.ID
}

// answersForm makes a call, and answers the form about it.
func (c *mcpClient) answersForm(path, decision string) string {
	c.t.Helper()
	fmt.Fprintf(c.in, `{"jsonrpc":"2.0","id":"a","method":"tools/call","params":{"name":"write_file","arguments":`+
		`{"path":%q}}}`+"\n", path)
	line, method, id := c.message()
	if method != "elicitation/create" || !strings.Contains(line, path) {
		c.t.Fatalf("got %s, expected a form", line)
	}
	fmt.Fprintf(c.in, `{"jsonrpc":"2.0","id":%s,"result":{"action":"accept","content":{"decision":%q}}}`+"\n", id, decision)
	line, _, _ = c.message()
	return line
}

// TestMCPUserAnswersInTheClient: the one person of this machine, and
// the person of a caller among others.
func TestMCPUserAnswersInTheClient(t *testing.T) {
	for who, more := range map[string]string{"you": "", "mara": ", person: mara"} {
		t.Run(who, func(t *testing.T) {
			file := usersDir(t, ", in_place: true"+more)
			if more != "" {
				addLine(t, file, "people: people.yaml\n")
			}
			c := startMCPWith(t, `{"elicitation":{}}`, "--config", file)
			if got := c.answersForm("/a", "approve"); !strings.Contains(got, "done") {
				t.Errorf("approved: %s", got)
			}
			if got := c.answersForm("/b", "deny"); !strings.Contains(got, "Not run. "+who+" denied this call") {
				t.Errorf("denied: %s", got)
			}
			if n := callsIn(t, filepath.Dir(file), "write_file"); n != 1 {
				t.Errorf("%d calls ran", n)
			}
			c.end(c.in.Close)
			at := inboxOf(t, "--config", file, "--person", who)
			out, errOut, _ := ran("", append([]string{"list", "--state", "answered", "--json"}, at...)...)
			id := regexp.MustCompile(`qst_[0-9a-z]+`).FindString(out)
			out, more, _ := ran("", append([]string{"show", id, "--json"}, at...)...)
			if !regexp.MustCompile(`"channel": *"mcp"`).MatchString(out) {
				t.Errorf("the answer doesn't say by which way it came: %s%s%s", out, errOut, more)
			}
		})
	}
}

// TestMCPLinksDemandASignIn: the page behind a link shows nothing without a sign-in, and opening it
// runs nothing.
func TestMCPLinksDemandASignIn(t *testing.T) {
	file := usersDir(t, "")
	addLine(t, file, "link: url\n")
	c := startMCPWith(t, `{"elicitation":{"url":{}}}`, "--config", file)
	got := c.call("write_file", `{"path":"/secret"}`, "-32042")
	link := regexp.MustCompile(`"url":"([^"]+)"`).FindStringSubmatch(got)
	if link == nil || !regexp.MustCompile(`^http://127\.0\.0\.1:\d+/requests/qst_\w+$`).MatchString(link[1]) {
		t.Fatalf("got %s", got)
	}
	resp, err := http.Get(link[1])
	must.Do(t, err)
	defer resp.Body.Close()
	page, err := io.ReadAll(resp.Body)
	must.Do(t, err)
	if strings.Contains(string(page), "secret") || !strings.Contains(strings.ToLower(string(page)), "sign in") {
		t.Errorf("the page is %d %s", resp.StatusCode, page)
	}
	if n := callsIn(t, filepath.Dir(file), "write_file"); n != 0 {
		t.Errorf("%d calls ran", n)
	}
}

// addLine adds a line to a file.
func addLine(t *testing.T, file, line string) {
	t.Helper()
	text, err := os.ReadFile(file)
	must.Do(t, err)
	writeFiles(t, filepath.Dir(file), map[string]string{filepath.Base(file): string(text) + line})
}
