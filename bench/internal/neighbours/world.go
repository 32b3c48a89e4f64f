package neighbours

import (
	"bufio"
	"bytes"
	"context"
	"encoding/json"
	"errors"
	"fmt"
	"net"
	"os"
	"os/exec"
	"path/filepath"
	"strconv"
	"strings"
	"syscall"
	"time"
)

// The files of both tenants: one call that runs without asking, and one that asks a member of risk.
const (
	agentText = `schema_version: "1.0.0"
metadata: {id: desk, name: Desk, version: "1.0.0", description: Trades for a measurement.}
interface: {input: {type: object}, output: {type: object}}
action_space:
  local_tools:
    - alias: quote
      description: The last price.
      approval: {message_template: "A quote?", condition: {args_match: {amount: {gt: 1000000}}}}
    - {alias: trade, description: Sells., approval: {message_template: "Sell {{tool_args.amount}}?"}}
execution_policy: {id: agf.react, config: {instructions: Trade., model: any}}
`
	peopleText = `schema_version: "1.0.0"
people:
  - {id: mara@example.com, name: Mara, groups: [risk]}
groups: {risk: {description: People who judge.}}
`
)

// tenants are the one that floods and the one that is measured.
const (
	noisy = "acme"
	quiet = "beta"
)

// world is a server process with two tenants, and the identity provider
// of both.
type world struct {
	dir     string
	bin     string
	process *exec.Cmd
	log     *os.File
	base    string
	idp     *provider
}

// start writes the configuration and starts the server.
func start(ctx context.Context, bin string) (*world, error) {
	dir, err := os.MkdirTemp("", "neighbours")
	if err != nil {
		return nil, err
	}
	w := &world{dir: dir, bin: bin}
	if w.idp, err = startProvider(); err == nil {
		err = w.configure()
	}
	if err == nil {
		err = w.serve(ctx)
	}
	if err != nil {
		w.close()
		return nil, err
	}
	return w, nil
}

func (w *world) close() {
	if w.process != nil && w.process.Process != nil {
		_ = w.process.Process.Signal(syscall.SIGTERM)
		_ = w.process.Wait() // its log has the reason
	}
	if w.log != nil {
		_ = w.log.Close()
	}
	if w.idp != nil {
		w.idp.close()
	}
	_ = os.RemoveAll(w.dir) // temporary
}

func (w *world) file(name string) string { return filepath.Join(w.dir, name) }

func (w *world) configure() error {
	listener, err := net.Listen("tcp", "127.0.0.1:0")
	if err != nil {
		return err
	}
	address := listener.Addr().String()
	if err := listener.Close(); err != nil {
		return err
	}
	w.base = "http://" + address
	var tenants strings.Builder
	for _, t := range []string{noisy, quiet} {
		fmt.Fprintf(&tenants, "  - {name: %s, agents: agents, people: people.yaml, ", t)
		fmt.Fprintf(&tenants, "oidc: {issuer: %q, client_id: assent, client_secret_file: secret}}\n", w.idp.url)
	}
	config := fmt.Sprintf(
		"listen: %s\npublic_url: https://assent.example\nstore: assent.db\ndrain: 1s\ntenants:\n%s",
		address,
		tenants.String(),
	)
	files := map[string]string{
		"agents/desk.agf.yaml": agentText,
		"people.yaml":          peopleText,
		"secret":               "s3cret",
		"serve.yaml":           config,
	}
	for name, text := range files {
		if err := os.MkdirAll(filepath.Dir(w.file(name)), 0o700); err != nil {
			return err
		}
		if err := os.WriteFile(w.file(name), []byte(text), 0o600); err != nil {
			return err
		}
	}

	return nil
}

// startTime limits the start of the server.
const startTime = 20 * time.Second

func (w *world) serve(ctx context.Context) (err error) {
	if w.log, err = os.Create(w.file("log")); err != nil {
		return err
	}
	w.process = exec.CommandContext(ctx, w.bin, "serve", "--config", w.file("serve.yaml"), "--json")
	w.process.Stderr = w.log
	out, err := w.process.StdoutPipe()
	if err != nil {
		return err
	}
	if err := w.process.Start(); err != nil {
		return err
	}
	ready := make(chan bool, 1)
	go func() { ready <- bufio.NewScanner(out).Scan() }()
	select {
	case ok := <-ready:
		if ok {
			return nil
		}
	case <-time.After(startTime):
	}

	text, _ := os.ReadFile(w.file("log")) // what there is of it
	return fmt.Errorf("the server does not answer: %s", text)
}

// token makes a token of a tenant.
func (w *world) token(ctx context.Context, tenant, name, scopes string) (string, error) {
	cmd := exec.CommandContext(ctx, w.bin, "token", "create", "--json", "--store", w.file("assent.db"),
		"--tenant", tenant, "--name", name, "--scopes", scopes)
	var errs bytes.Buffer
	cmd.Stderr = &errs
	out, err := cmd.Output()
	if err != nil {
		return "", fmt.Errorf("make a token: %w: %s", err, errs.String())
	}
	var made struct{ Secret string }
	if err := json.Unmarshal(out, &made); err != nil {
		return "", err
	}
	return made.Secret, nil
}

// memory returns the most that the server had in memory at a time, in bytes.
func (w *world) memory() (int64, error) {
	text, err := os.ReadFile(fmt.Sprintf("/proc/%d/status", w.process.Process.Pid))
	if err != nil {
		return 0, err
	}
	for line := range strings.Lines(string(text)) {
		if rest, ok := strings.CutPrefix(line, "VmHWM:"); ok {
			kilobytes, err := strconv.ParseInt(strings.TrimSuffix(strings.TrimSpace(rest), " kB"), 10, 64)
			return kilobytes << 10, err
		}
	}

	return 0, errors.New("the kernel does not tell how much memory the server has")
}

// faults returns the lines of the server's log that report a fault of the server.
func (w *world) faults() []string {
	text, _ := os.ReadFile(w.file("log")) // what there is of it
	var out []string
	for line := range strings.Lines(string(text)) {
		if strings.Contains(line, `"level":"ERROR"`) {
			out = append(out, strings.TrimSpace(line))
		}
	}
	return out
}
