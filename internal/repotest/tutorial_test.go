package repotest

import (
	"net"
	"net/http"
	"os"
	"os/exec"
	"path/filepath"
	"regexp"
	"strings"
	"testing"

	"github.com/assent-dev/assent/internal/testwait"
)

var tutorialBlock = regexp.MustCompile(
	"(?s)`([^`\n]+)`:\n\n```(?:yaml|sh)\n(.*?)```|```sh\n(assent serve.*?)```|```console\n.*?```",
)

// TestReadmeTutorial writes the files of docs/tutorial.md, starts its service and runs its commands in an empty
// directory, in the order of the page.
func TestReadmeTutorial(t *testing.T) {
	const page = "docs/tutorial.md"
	bin := binaries(t)
	work := filepath.Join(t.TempDir(), "work")
	if err := os.Mkdir(work, 0o755); err != nil {
		t.Fatal(err)
	}
	listener, err := net.Listen("tcp", "127.0.0.1:0")
	if err != nil {
		t.Fatal(err)
	}
	address := listener.Addr().String()
	if err := listener.Close(); err != nil {
		t.Fatal(err)
	}
	export := "cd " + work + " && export PATH=" + bin + ":$PATH ASSENT_SERVER=http://" + address
	export += " ASSENT_TOKEN=$(cat payer.token 2>/dev/null); "
	steps := tutorialBlock.FindAllStringSubmatch(readText(t, filepath.Join(top, page)), -1)
	prepare := func() {
		for len(steps) > 0 && !strings.HasPrefix(steps[0][0], "```console") {
			step := steps[0]
			steps = steps[1:]
			if step[3] != "" {
				startService(t, export+strings.Replace(step[3], "127.0.0.1:7717", address, 1), address)
				continue
			}
			if err := os.WriteFile(filepath.Join(work, step[1]), []byte(step[2]), 0o600); err != nil {
				t.Fatal(err)
			}
		}
		if len(steps) > 0 {
			steps = steps[1:]
		}
	}
	blocks := consoleBlock.FindAllStringSubmatch(readText(t, filepath.Join(top, page)), -1)
	left := 0
	runsAsShown(t, page, 20, func(command string) string {
		if left == 0 {
			prepare()
			left = strings.Count("\n"+blocks[0][1], "\n$ ")
			blocks = blocks[1:]
		}
		left--
		return shell(t, export+command)
	})
}

// startService runs a command that serves until the test ends, and waits until it is ready.
func startService(t *testing.T, command, address string) {
	t.Helper()
	output := &testwait.Buffer{}
	service := exec.Command("bash", "-c", strings.Replace(command, "; assent", "; exec assent", 1))
	service.Stdout, service.Stderr = output, output
	if err := service.Start(); err != nil {
		t.Fatal(err)
	}
	t.Cleanup(func() {
		_ = service.Process.Kill()
		_ = service.Wait()
	})
	testwait.Until(t, "the service of the page", func() bool {
		answer, err := http.Get("http://" + address + "/readyz")
		if err != nil {
			return false
		}
		return answer.Body.Close() == nil && answer.StatusCode == http.StatusOK
	})
}
