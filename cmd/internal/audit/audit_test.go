package audit

import (
	"bytes"
	"crypto/rand"
	"errors"
	"io"
	"os"
	"path/filepath"
	"strings"
	"testing"
	"time"

	"github.com/assent-dev/assent/approval"
	"github.com/assent-dev/assent/approval/ledger"
	"github.com/assent-dev/assent/cmd/internal/config"
	"github.com/assent-dev/assent/cmd/internal/remote"
	"github.com/assent-dev/assent/cmd/internal/system"
	"github.com/assent-dev/assent/cmd/internal/term"
	"github.com/assent-dev/assent/internal/must"
)

// exported returns a ledger of one entry, and the signer of its checkpoint.
func exported(t *testing.T, e ledger.Entry) (export, checkpoint []byte, publicKey string) {
	t.Helper()
	signer, _, err := ledger.GenerateKey("acme.example", rand.Reader)
	must.Do(t, err)
	record, err := e.Seal(rand.Reader)
	must.Do(t, err)
	tree, err := ledger.Extend(0, nil, [][]byte{record.Leaf})
	must.Do(t, err)
	note, err := signer.Sign(ledger.Checkpoint{Origin: ledger.Origin("default"), Size: 1, Root: tree.Root})
	must.Do(t, err)
	var out bytes.Buffer
	w, err := ledger.NewWriter(&out, note, signer.PublicKey())
	must.Do(t, err)
	must.Do(t, errors.Join(w.Write(record.Leaf, record.Openings), w.Close()))
	return out.Bytes(), note, signer.PublicKey()
}

// verify runs the command on an export.
func verify(export []byte, flags ...string) (code int, said string) {
	var out bytes.Buffer
	streams := term.Streams{In: bytes.NewReader(export), Out: &out, Err: &out}
	code = term.Run(
		commands{remote.Caller{Reader: config.Reader{Streams: streams}}}.auditCommand(),
		streams,
		append([]string{"verify", "-"}, flags...),
	)
	return code, out.String()
}

// TestVerifyReadsWhatTheLedgerTells: a ledger can be complete and correctly signed, and still
// contain entries that must not occur. Then the operator of the service wrote them.
func TestVerifyReadsWhatTheLedgerTells(t *testing.T) {
	export, _, key := exported(t, ledger.Entry{
		Time:    time.Unix(1, 0),
		Tenant:  "default",
		Type:    approval.EventConsumed,
		Subject: "apr_1",
		Actor:   "bot",
		Facts: map[string]any{
			"agent":    "a",
			"target":   "tool t",
			"state":    "consumed",
			"binding":  "sha256:00",
			"revision": 0,
		},
	})
	code, said := verify(export, "--public-key", key)
	if code != term.ExitNo || !strings.Contains(said, "NOT VERIFIED: entry 0: apr_1") ||
		!strings.Contains(said, "the signatures hold") {
		t.Errorf("exit %d\n%s", code, said)
	}
}

// TestAnExportIsNotProvenByItsOwnKey: an export that was not compared with anything from outside is
// only consistent with itself, and the exit code reports that.
func TestAnExportIsNotProvenByItsOwnKey(t *testing.T) {
	export, checkpoint, key := exported(t, ledger.Entry{
		Time:    time.Unix(1, 0),
		Tenant:  "default",
		Type:    approval.EventStarted,
		Subject: "server",
		Actor:   "server",
	})
	kept := filepath.Join(t.TempDir(), "kept")
	must.Do(t, os.WriteFile(kept, checkpoint, 0o600))
	_, _, other := exported(t, ledger.Entry{
		Time:    time.Unix(1, 0),
		Tenant:  "default",
		Type:    approval.EventStarted,
		Subject: "server",
		Actor:   "server",
	})

	for name, c := range map[string]struct {
		flags []string
		code  int
		says  []string
	}{
		"nothing": {
			nil,
			term.ExitLoose,
			[]string{"verified: all 1 entries", "not pinned", "give --public-key", "not anchored", "give --since"},
		},
		"the key": {
			[]string{"--public-key", key},
			term.ExitLoose,
			[]string{"verified: all 1 entries", "not anchored"},
		},
		"a checkpoint": {
			[]string{"--since", kept},
			term.ExitLoose,
			[]string{"verified: all 1 entries", "not pinned"},
		},
		"both": {
			[]string{"--public-key", key, "--since", kept},
			term.ExitOK,
			[]string{"verified: all 1 entries", "begins with the 1 entries"},
		},
		"one of two keys": {[]string{"--public-key", other, "--public-key", key, "--since", kept}, term.ExitOK, nil},
		"another key":     {[]string{"--public-key", other, "--since", kept}, term.ExitNo, []string{"NOT VERIFIED"}},
		"as a document": {
			[]string{"--json"},
			term.ExitLoose,
			[]string{`"verified": true`, `"key_pinned": false`, `"anchored": false`},
		},
		"nothing readable": {[]string{"--since", kept + "2"}, term.ExitFailure, []string{"no such file"}},
	} {
		code, said := verify(export, c.flags...)
		if code != c.code {
			t.Errorf("%s: exit %d, want %d\n%s", name, code, c.code, said)
		}
		for _, text := range c.says {
			if !strings.Contains(said, text) {
				t.Errorf("%s: %q is missing in\n%s", name, text, said)
			}
		}
	}

	if code, said := verify(bytes.Replace(export, []byte("server"), []byte("sErver"), 1)); code != term.ExitNo {
		t.Errorf("changed: exit %d\n%s", code, said)
	}
}

// TestWhatIsExportedIsItsOwnersAlone: like a backup, an export is readable only by its owner, and
// overwrites no file.
func TestWhatIsExportedIsItsOwnersAlone(t *testing.T) {
	path := filepath.Join(t.TempDir(), "export")
	fill := func(w io.Writer) error {
		_, err := io.WriteString(w, "all")
		return err
	}
	must.Do(t, system.Create(path, 0o600, fill))
	info, err := os.Stat(path)
	if err != nil || info.Mode().Perm() != 0o600 {
		t.Errorf("mode %v, %v", info.Mode(), err)
	}
	if err := system.Create(path, 0o600, fill); err == nil {
		t.Error("a file is written over")
	}
}
