package repotest

import (
	"debug/elf"
	"os"
	"path/filepath"
	"regexp"
	"slices"
	"strings"
	"testing"

	"github.com/assent-dev/assent/internal/testbin"
	"github.com/assent-dev/assent/internal/yamldoc"
)

// TestStaticBinaries: the binaries of make build run on systems without a C library: in an empty
// image, and in Alpine. The test checks the binaries of tests, and that make builds with the same
// flags.
func TestStaticBinaries(t *testing.T) {
	recipe := shell(t, `eval set -- "$(make --no-print-directory --dry-run build BIN=/out)"; printf '%s\n' "$@"`)
	want := slices.Concat([]string{"CGO_ENABLED=0", "go", "build"}, testbin.Flags(), []string{"-o", "/out/",
		"./cmd/..."})
	if got := strings.Split(strings.TrimSpace(recipe), "\n"); !slices.Equal(got, want) {
		t.Errorf("make build runs %q, want %q", got, want)
	}

	bin := binaries(t)
	for _, name := range programs() {
		f, err := elf.Open(filepath.Join(bin, name))
		if err != nil {
			t.Fatal(err)
		}
		for _, p := range f.Progs {
			if p.Type == elf.PT_INTERP || p.Type == elf.PT_DYNAMIC {
				t.Errorf("%s has a %v: it needs libraries of the machine", name, p.Type)
			}
		}
		if err := f.Close(); err != nil {
			t.Error(err)
		}
	}

	checkDeployment(t, filepath.Join(bin, "assent"))
}

// programs returns the names of the programs that make builds.
func programs() []string { return []string{"assent", "agf-validate"} }

// binaries returns a folder with what make builds.
func binaries(t *testing.T) string {
	t.Helper()
	bin := t.TempDir()
	for _, name := range programs() {
		if err := os.Symlink(testbin.Path(t, "cmd/"+name), filepath.Join(bin, name)); err != nil {
			t.Fatal(err)
		}
	}
	return bin
}

// checkDeployment compares the files under deploy with the binary and the repository, as far as
// that is possible without running them.
func checkDeployment(t *testing.T, assent string) {
	t.Helper()
	file := func(name string) string { return readText(t, filepath.Join(top, "deploy", name)) }
	docker := file("Dockerfile")
	for _, line := range []string{"FROM golang:" + goVersion(t) + " AS build\n", "RUN make build BIN=/out",
		"USER nonroot:nonroot\n", "distroless/static"} {
		if !strings.Contains(docker, line) {
			t.Errorf("deploy/Dockerfile has no %q", line)
		}
	}

	for _, copied := range regexp.MustCompile(`/out/(\S+)`).FindAllStringSubmatch(docker, -1) {
		if _, err := os.Stat(filepath.Join(filepath.Dir(assent), copied[1])); err != nil {
			t.Errorf("deploy/Dockerfile copies %s, which make doesn't build", copied[1])
		}
	}
	var commands [][]string
	for _, m := range regexp.MustCompile(`(?m)^(?:CMD|    command:) *(\[.*\])$`).FindAllStringSubmatch(docker+"\n"+
		file("compose.yaml"), -1) {
		commands = append(commands, regexp.MustCompile(`[^\s",\[\]]+`).FindAllString(m[1], -1))
	}
	for _, m := range regexp.MustCompile(`(?m)^ExecStart(?:Pre)?=-?/usr/local/bin/assent (.*)$`).FindAllStringSubmatch(file("assent.service"), -1) {
		commands = append(commands, strings.Fields(m[1]))
	}
	if len(commands) != 4 {
		t.Errorf("deploy runs %d commands, want 4: %q", len(commands), commands)
	}
	for _, c := range commands {
		checkCommand(t, assent, c)
	}
	checkCompose(t, file("compose.yaml"))
	checkNames(t, file)
	checkServeFile(t, assent, file("serve.yaml"))
}

// goVersion returns the version of Go that the module asks for, without its
// last number.
func goVersion(t *testing.T) string {
	t.Helper()
	found := regexp.MustCompile(`(?m)^go (\d+\.\d+)`).
		FindStringSubmatch(readText(t, filepath.Join(top, "go.mod")))
	if found == nil {
		t.Fatal("go.mod names no version of Go")
	}
	return found[1]
}

// checkCommand compares a command line with the help of the binary.
func checkCommand(t *testing.T, assent string, words []string) {
	t.Helper()
	first := slices.IndexFunc(words, func(w string) bool { return strings.HasPrefix(w, "-") })
	help := shell(t, assent+" "+strings.Join(words[:first], " ")+" --help")
	for _, w := range words[first:] {
		if strings.HasPrefix(w, "--") && !regexp.MustCompile(`(?m)^ +(-\w, )?`+w+`\b`).MatchString(help) {
			t.Errorf("deploy: assent %s: there is no %s", strings.Join(words, " "), w)
		}
	}
}

// checkCompose checks that everything that the compose file refers to exists.
func checkCompose(t *testing.T, text string) {
	t.Helper()
	doc, findings := yamldoc.Parse("deploy/compose.yaml", []byte(text), yamldoc.Limits{})
	if doc == nil || len(findings) > 0 {
		t.Fatal(findings)
	}
	build := doc.Root.Get("services").Get("assent").Get("build")
	context := filepath.Join(top, "deploy", build.Get("context").Text)
	for _, path := range []string{build.Get("dockerfile").Text, "go.mod", "Makefile"} {
		if _, err := os.Stat(filepath.Join(context, path)); err != nil {
			t.Error(err)
		}
	}
	services, volumes := doc.Root.Get("services"), doc.Root.Get("volumes")
	for _, service := range services.Fields {
		name := service.Key.Text
		for _, secret := range items(service.Value, "secrets") {
			if doc.Root.Get("secrets").Get(secret) == nil {
				t.Errorf("deploy/compose.yaml: service %s wants the secret %s, which is none", name, secret)
			}
		}
		for _, volume := range items(service.Value, "volumes") {
			from, _, _ := strings.Cut(volume, ":")
			_, err := os.Stat(filepath.Join(top, "deploy", from))
			switch {
			case from == "./config": // the operator makes it
			case strings.HasPrefix(from, "./") && err != nil:
				t.Errorf("deploy/compose.yaml: service %s: %v", name, err)
			case !strings.HasPrefix(from, "./") && volumes.Get(from) == nil:
				t.Errorf("deploy/compose.yaml: service %s mounts the volume %s, which is none", name, from)
			}
		}
		for _, other := range items(service.Value, "depends_on") {
			if services.Get(other) == nil {
				t.Errorf("deploy/compose.yaml: service %s needs %s, which is none", name, other)
			}
		}
	}
}

// items returns the texts of a list, or the keys of a mapping. A service may leave both out.
func items(service *yamldoc.Node, field string) []string {
	var out []string
	if node := service.Get(field); node != nil {
		for _, item := range node.Items {
			out = append(out, item.Text)
		}
		for _, each := range node.Fields {
			out = append(out, each.Key.Text)
		}
	}

	return out
}

// checkNames checks that Caddy, Dex and the service use the same addresses.
func checkNames(t *testing.T, file func(string) string) {
	t.Helper()
	const public, issuer = "https://assent.example.com", "https://login.example.com"
	for name, texts := range map[string][]string{
		"serve.yaml": {
			"public_url: " + public + "\n",
			`issuer: "` + issuer + `"`,
			"client_id: assent,",
			"/run/secrets/oidc",
		},
		"dex/config.yaml": {
			"issuer: " + issuer + " ",
			"id: assent\n",
			`"` + public + `/auth/callback/default"`,
			"0.0.0.0:5556",
		},
		"caddy/Caddyfile": {
			"\nassent.example.com {",
			"\nlogin.example.com {",
			"reverse_proxy assent:7717 ",
			"reverse_proxy dex:5556\n",
		},
		"compose.yaml": {"aliases: [assent.example.com, login.example.com]"},
	} {
		for _, text := range texts {
			if !strings.Contains(file(name), text) {
				t.Errorf("deploy/%s has no %q", name, text)
			}
		}
	}
}

// checkServeFile checks the configuration with the binary. It puts an
// example's agents into the directory that the file names.
func checkServeFile(t *testing.T, assent, text string) {
	t.Helper()
	etc := t.TempDir()
	example := os.DirFS(filepath.Join(top, "examples", "trading-desk"))
	if err := os.CopyFS(filepath.Join(etc, "desk"), example); err != nil {
		t.Fatal(err)
	}
	text = strings.NewReplacer("/etc/assent/agents", etc+"/desk/agent.agf.yaml", "/etc/assent/policies",
		etc+"/desk/policies", "/etc/assent/people.yaml", etc+"/desk/people.yaml", "/etc/assent/", etc+"/",
		"/run/secrets/", etc+"/").Replace(text)
	for name, content := range map[string]string{
		"serve.yaml": text,
		"store.url":  "postgres://assent:x@postgres/assent\n",
	} {
		if err := os.WriteFile(filepath.Join(etc, name), []byte(content), 0o600); err != nil {
			t.Fatal(err)
		}
	}

	if out := shell(t, assent+" serve --check --config "+etc+"/serve.yaml"); !strings.HasSuffix(out,
		"nothing is wrong\n") {
		t.Errorf("deploy/serve.yaml: %s", out)
	}
}
