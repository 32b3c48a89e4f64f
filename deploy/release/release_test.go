package main

import (
	"crypto/rand"
	"os"
	"path/filepath"
	"strings"
	"testing"
	"time"

	"aead.dev/minisign"
)

func TestChoose(t *testing.T) {
	all, err := choose("")
	if err != nil || len(all) != len(targets) {
		t.Errorf("%v, %v", all, err)
	}
	some, err := choose("linux_arm64,windows_amd64")
	if err != nil || len(some) != 2 || some[1].file("assent") != "assent.exe" {
		t.Errorf("%v, %v", some, err)
	}
	if _, err := choose("linux_amd64,plan9_amd64"); err == nil || !strings.Contains(err.Error(), `no target "plan9_amd64"`) {
		t.Errorf("%v", err)
	}
}

func TestChecksumsAreSigned(t *testing.T) {
	dir := t.TempDir()
	public, private, err := minisign.GenerateKey(rand.Reader)
	if err != nil {
		t.Fatal(err)
	}
	text, err := minisign.EncryptKey("", private)
	if err != nil {
		t.Fatal(err)
	}
	key := filepath.Join(dir, "key")
	if err := os.WriteFile(key, text, 0o600); err != nil {
		t.Fatal(err)
	}
	r := release{version: "1.2.3", out: filepath.Join(dir, "dist"), time: time.Unix(0, 0)}
	if err := os.Mkdir(r.out, 0o755); err != nil {
		t.Fatal(err)
	}
	if err := r.write("a.tar.gz", []byte("a")); err != nil {
		t.Fatal(err)
	}
	if err := r.checksums(key); err != nil {
		t.Fatal(err)
	}
	sums, err := os.ReadFile(filepath.Join(r.out, "SHA256SUMS"))
	if err != nil {
		t.Fatal(err)
	}
	if want := "ca978112ca1bbdcafac231b39a23dc4da786eff8147c4e72b9807785afee48bb  a.tar.gz\n"; string(sums) != want {
		t.Errorf("got %s", sums)
	}
	signature, err := os.ReadFile(filepath.Join(r.out, "SHA256SUMS.minisig"))
	if err != nil || !minisign.Verify(public, sums, signature) || minisign.Verify(public, []byte("b"), signature) {
		t.Errorf("the signature does not verify: %v", err)
	}
	if err := r.checksums(filepath.Join(dir, "absent")); err == nil {
		t.Error("a release with a missing key is not signed, and says nothing")
	}
}

// TestRefusesAnotherVersion checks that a release is refused if its version is not the one in the
// sources, which the binaries print.
func TestRefusesAnotherVersion(t *testing.T) {
	r := release{version: "9.9.9", root: "../..", out: filepath.Join(t.TempDir(), "dist")}
	if err := r.prepare(true); err == nil || !strings.Contains(err.Error(), `the version is "9.9.9", but the sources say`) {
		t.Errorf("%v", err)
	}
}

func TestRefusesADirectoryWithFiles(t *testing.T) {
	source, err := os.ReadFile("../../cmd/internal/term/term.go")
	if err != nil {
		t.Fatal(err)
	}
	r := release{version: string(versionLine.FindSubmatch(source)[1]), root: "../..", out: "."}
	if err := r.prepare(true); err == nil || !strings.Contains(err.Error(), "is not empty") {
		t.Errorf("%v", err)
	}
}

// TestClientsHaveTheVersionOfTheSources checks that the clients for Python and TypeScript carry the version of the binaries.
func TestClientsHaveTheVersionOfTheSources(t *testing.T) {
	source, err := os.ReadFile("../../cmd/internal/term/term.go")
	if err != nil {
		t.Fatal(err)
	}
	version := string(versionLine.FindSubmatch(source)[1])
	r := release{version: version, root: "../.."}
	p, err := r.project()
	if err != nil {
		t.Fatal(err)
	}
	want := "Requires-Dist: joserfc>=1.6,<2; extra == 'permits'\n"
	if text := p.metadata(); !strings.Contains(text, want) || !strings.Contains(text, "Name: assent-client\nVersion: "+version+"\n") {
		t.Errorf("the metadata lacks %q or the name:\n%s", want, text)
	}
	if _, err := (&release{version: "9.9.9", root: "../.."}).project(); err == nil {
		t.Error("a client of another version is packed")
	}
	for _, file := range []string{"package.json", "package-lock.json"} {
		text, err := os.ReadFile("../../clients/typescript/" + file)
		if err != nil || !strings.Contains(string(text), `"version": "`+version+`"`) {
			t.Errorf("clients/typescript/%s does not have version %s: %v", file, version, err)
		}
	}
}
