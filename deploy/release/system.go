package main

import (
	"bytes"
	"crypto/sha256"
	"encoding/hex"
	"encoding/pem"
	"fmt"
	"os"
	"path/filepath"
	"slices"
	"strings"
	"text/template"

	"aead.dev/minisign"
	"github.com/goreleaser/nfpm/v2"
	_ "github.com/goreleaser/nfpm/v2/deb"
	"github.com/goreleaser/nfpm/v2/files"
	_ "github.com/goreleaser/nfpm/v2/rpm"
	"golang.org/x/crypto/x509roots/fallback/bundle"
)

const summary = "Decide when an AI agent must ask a person, and prove what ran"

// systemPackages writes the deb and rpm packages: the binaries in /usr/bin
// and a systemd unit that is not started.
func (r *release) systemPackages(t target, _ []entry) error {
	built := filepath.Join(r.out, "build", t.String())
	unit, err := r.read("deploy/assent.service", "")
	if err != nil {
		return err
	}
	unitFile := filepath.Join(built, "assent.service")
	text := bytes.ReplaceAll(unit.text, []byte("/usr/local/bin/"), []byte("/usr/bin/"))
	if err := os.WriteFile(unitFile, text, 0o644); err != nil {
		return err
	}
	file := func(from, to string, mode os.FileMode) *files.Content {
		return &files.Content{Source: from, Destination: to, FileInfo: &files.ContentFileInfo{Mode: mode, MTime: r.time}}
	}
	contents := files.Contents{
		file(unitFile, "/usr/lib/systemd/system/assent.service", 0o644),
		file(filepath.Join(r.root, "LICENSE"), "/usr/share/doc/assent/copyright", 0o644),
		file(filepath.Join(r.root, "CHANGELOG.md"), "/usr/share/doc/assent/CHANGELOG.md", 0o644),
		{Destination: "/etc/assent", Type: files.TypeDir, FileInfo: &files.ContentFileInfo{Mode: 0o755, MTime: r.time}},
	}
	for _, program := range programs {
		contents = append(contents, file(filepath.Join(built, program), "/usr/bin/"+program, 0o755))
	}
	for _, format := range []string{"deb", "rpm"} {
		info := nfpm.WithDefaults(&nfpm.Info{
			Name: "assent", Arch: t.arch, Platform: "linux", Version: r.version, Section: "admin", Priority: "optional",
			Maintainer: "assent developers <security@assent.dev>", Description: summary, License: "Apache-2.0",
			Homepage: "https://github.com/assent-dev/assent", MTime: r.time,
			Overridables: nfpm.Overridables{Contents: slices.Clone(contents), RPM: nfpm.RPM{BuildHost: "assent.dev"}},
		})
		packager, err := nfpm.Get(format)
		if err != nil {
			return err
		}
		if err := nfpm.PrepareForPackager(info, format); err != nil {
			return err
		}
		var out bytes.Buffer
		if err := packager.Package(info, &out); err != nil {
			return fmt.Errorf("%s: %w", format, err)
		}
		if err := r.write(packager.ConventionalFileName(info), out.Bytes()); err != nil {
			return err
		}
	}

	return nil
}

// certificates are the roots that Mozilla trusts, as PEM: an empty image has
// none, and assent speaks TLS to identity providers and webhooks.
func certificates() []byte {
	var out bytes.Buffer
	for root := range bundle.Roots() {
		_ = pem.Encode(&out, &pem.Block{Type: "CERTIFICATE", Bytes: root.Certificate}) // a buffer takes all
	}

	return out.Bytes()
}

var formulaText = template.Must(template.New("formula").Parse(`class Assent < Formula
  desc "{{.Summary}}"
  homepage "https://github.com/assent-dev/assent"
  version "{{.Version}}"
  license "Apache-2.0"
{{range $os, $files := .Files}}
  on_{{$os}} do
{{- range $files}}
    on_{{.CPU}} do
      url "https://github.com/assent-dev/assent/releases/download/v{{$.Version}}/{{.Name}}"
      sha256 "{{.Sum}}"
    end
{{- end}}
  end
{{end}}
  def install
    bin.install "agf-validate", "assent"
  end

  test do
    assert_match version.to_s, shell_output("#{bin}/assent version")
    assert_match version.to_s, shell_output("#{bin}/agf-validate version")
  end
end
`))

// formula writes the Homebrew formula, which installs the archives.
func (r *release) formula(chosen []target) error {
	type archive struct{ CPU, Name, Sum string }
	archives := map[string][]archive{}
	for _, t := range chosen {
		system := map[string]string{"darwin": "macos", "linux": "linux"}[t.os]
		if system == "" {
			continue
		}
		name := r.base(t) + ".tar.gz"
		sum, err := digest(filepath.Join(r.out, name))
		if err != nil {
			return err
		}
		cpu := map[string]string{"amd64": "intel", "arm64": "arm"}[t.arch]
		archives[system] = append(archives[system], archive{cpu, name, sum})
	}
	var out bytes.Buffer
	err := formulaText.Execute(&out, map[string]any{"Summary": summary, "Version": r.version, "Files": archives})
	if err != nil {
		return err
	}

	return r.write("assent.rb", out.Bytes())
}

func digest(path string) (string, error) {
	text, err := os.ReadFile(path)
	sum := sha256.Sum256(text)

	return hex.EncodeToString(sum[:]), err
}

// checksums writes SHA256SUMS over all files, and its minisign signature if
// there is a key.
func (r *release) checksums(keyFile string) error {
	entries, err := os.ReadDir(r.out)
	if err != nil {
		return err
	}
	var sums strings.Builder
	for _, e := range entries {
		sum, err := digest(filepath.Join(r.out, e.Name()))
		if err != nil {
			return err
		}
		sums.WriteString(sum + "  " + e.Name() + "\n")
	}
	if err := r.write("SHA256SUMS", []byte(sums.String())); err != nil || keyFile == "" {
		return err
	}
	key, err := minisign.PrivateKeyFromFile("", keyFile)
	if err != nil {
		return fmt.Errorf("read the key: %w", err)
	}
	comment := "assent " + r.version
	signature := minisign.SignWithComments(key, []byte(sums.String()), comment, "signature of SHA256SUMS")

	return r.write("SHA256SUMS.minisig", signature)
}
