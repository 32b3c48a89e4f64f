package main

import (
	"bufio"
	"io"
	"net/http"
	"os/exec"
	"strings"
	"syscall"
	"testing"

	"github.com/assent-dev/assent/internal/must"
	"github.com/assent-dev/assent/internal/testwait"
)

// TestMCPInboxTellsHowToAnswer: it is for real agents, unlike what serve
// --dev starts.
func TestMCPInboxTellsHowToAnswer(t *testing.T) {
	_, file := mcpDir(t)
	cmd := exec.Command("assent", "mcp", "inbox", "--config", file)
	out, err := cmd.StdoutPipe()
	must.Do(t, err)
	var logs testwait.Buffer
	cmd.Stderr = &logs
	must.Do(t, cmd.Start())
	lines, link := bufio.NewScanner(out), ""
	for _, want := range []string{
		"Whoever reads this terminal can sign in and answer as you.",
		"sign in, once, within 10 minutes: http://127.0.0.1:",
		"in a terminal: assent watch --server http://127.0.0.1:",
		"one at a time: assent approve ID --server http://127.0.0.1:",
	} {
		if !lines.Scan() || !strings.HasPrefix(lines.Text(), want) {
			t.Errorf("it prints %q, expected %q", lines.Text(), want)
		}
		if at := strings.Index(lines.Text(), "http://"); at > 0 && link == "" {
			link = lines.Text()[at:]
		}
	}

	if page := pageAt(t, link); strings.Contains(page, "Dev mode") || !strings.Contains(page, "Sign in as") {
		t.Errorf("the page of the link is %s", page)
	}
	_ = cmd.Process.Signal(syscall.SIGTERM)
	if err := cmd.Wait(); err != nil || strings.Contains(logs.String(), "DEV MODE") {
		t.Errorf("it ended with %v, and said\n%s", err, logs.String())
	}
}

func pageAt(t *testing.T, url string) string {
	t.Helper()
	resp, err := http.Get(url)
	must.Do(t, err)
	defer resp.Body.Close()
	text, err := io.ReadAll(resp.Body)
	must.Do(t, err)
	return string(text)
}
