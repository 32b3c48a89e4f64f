package audit

import (
	"bufio"
	"bytes"
	"context"
	"encoding/json"
	"errors"
	"fmt"
	"io"
	"io/fs"
	"os"
	"strings"

	"github.com/spf13/cobra"

	"github.com/assent-dev/assent/approval"
	"github.com/assent-dev/assent/approval/ledger"
	"github.com/assent-dev/assent/cmd/internal/term"
)

func (a commands) auditCommand() *cobra.Command {
	return term.Parent(
		"audit",
		"Export the ledger, and verify exports, proofs and checkpoints offline",
		"verify needs no server and no store: a file, and the public key that you have from the operator, not "+
			"from the file.\n"+
			"Exit code 0: verified and anchored, 1: not verified, 2: could not be read, 3: everything in the file "+
			"is right, but no key or no older checkpoint of\n"+
			"yours was compared (--public-key, and --since or --witness).",
		a.exportCommand(),
		a.verifyCommand(),
		a.proofCommand(),
		a.checkpointCommand(),
	)
}

// verifyFlags are the flags of assent audit verify.
type verifyFlags struct {
	publicKeys   []string
	since        []string
	witness      string
	witnessToken string
	asJSON       bool
}

func (a commands) verifyCommand() *cobra.Command {
	var f verifyFlags
	cmd := &cobra.Command{
		Use:   "verify FILE|- --public-key FILE|KEY (--since CHECKPOINT | --witness FILE|URL)",
		Short: "Verify an export, or the proof of one entry, offline",
		Args: term.OneOf(
			"one FILE that `assent audit export` or `assent audit proof` wrote, or - for standard input",
		),
		RunE: func(cmd *cobra.Command, args []string) error { return a.verify(cmd.Context(), f, args[0]) },
	}
	flags := cmd.Flags()
	flags.StringArrayVar(
		&f.publicKeys,
		"public-key",
		nil,
		"`KEY` that must have signed, or the file that holds it; without it the file's own key is used, which "+
			"proves nothing about who signed (repeatable: any of them)",
	)
	flags.StringArrayVar(
		&f.since,
		"since",
		nil,
		"`FILE` of an older checkpoint that you kept: the log must begin with what it covers (repeatable)",
	)
	flags.StringVar(
		&f.witness,
		"witness",
		"",
		"`FILE|URL` of a witness: the log must agree with every checkpoint of it that the witness has",
	)
	flags.StringVar(
		&f.witnessToken,
		"witness-token-file",
		"",
		"`FILE` of the token for the witness, where it is another assent server",
	)
	flags.BoolVar(&f.asJSON, "json", false, "print a JSON document")
	return cmd
}

// verdict is the result of a verification, and its JSON document.
type verdict struct {
	Verified  bool   `json:"verified"`
	Problem   string `json:"problem,omitempty"`
	Entry     *int64 `json:"entry,omitempty"`   // that is wrong, or that the proof is of
	Entries   int64  `json:"entries,omitempty"` // of the log
	Redacted  int64  `json:"redacted,omitempty"`
	Root      string `json:"root,omitempty"`
	Log       string `json:"log,omitempty"`
	Since     *int64 `json:"since,omitempty"` // entries that the latest of the older checkpoints covers
	PublicKey string `json:"public_key,omitempty"`
	KeyPinned bool   `json:"key_pinned"`
	// the key is pinned and, for an export, an older checkpoint was compared
	Anchored  bool            `json:"anchored"`
	Handovers int             `json:"handovers,omitempty"` // changes of the key that were followed
	Leaf      json.RawMessage `json:"leaf,omitempty"`      // of a proof

	Audit    *approval.AuditSummary `json:"audit,omitempty"`    // of an export: what the entries tell
	Problems []approval.Problem     `json:"problems,omitempty"` // in what they tell
}

func (a commands) verify(ctx context.Context, f verifyFlags, path string) error {
	keys, err := publicKeysOf(f.publicKeys)
	if err != nil {
		return err
	}
	outside, err := a.outside(ctx, f)
	if err != nil {
		return err
	}
	in := io.NopCloser(a.In)
	if path != "-" {
		if in, err = os.Open(path); err != nil {
			return err
		}
	}
	defer in.Close()
	v, err := Check(in, keys, outside)
	var wrong *ledger.VerifyError
	if errors.As(err, &wrong) {
		v = verdict{Problem: wrong.Problem, KeyPinned: len(keys) > 0}
		if wrong.Index >= 0 {
			v.Entry = &wrong.Index
		}
	} else if err != nil {
		return err
	}

	return a.printVerdict(v, f.asJSON)
}

func publicKeysOf(texts []string) ([]string, error) {
	var out []string
	for _, text := range texts {
		key, err := PublicKeyOf(text)
		if err != nil {
			return nil, err
		}
		out = append(out, key)
	}

	return out, nil
}

// PublicKeyOf reads the key from the file with this name. If there is no such file, the text itself
// is the key.
func PublicKeyOf(text string) (string, error) {
	content, err := term.ReadFile(text, nil)
	key := strings.TrimSpace(string(content))
	if errors.Is(err, fs.ErrNotExist) && strings.Count(text, "+") >= 2 {
		key, err = text, nil
	}
	switch {
	case err != nil:
		return "", fmt.Errorf("--public-key: expected a file or a key of the form name+hash+base64: %w", err)
	case strings.HasPrefix(key, "PRIVATE+KEY+"): // never printed, and never needed to verify
		return "", errors.New(
			"--public-key: this is the secret key that signs: expected the public one, the .pub file beside it",
		)
	case strings.Count(key, "+") < 2:
		return "", fmt.Errorf("--public-key: %s holds no key of the form name+hash+base64", text)
	}

	return key, nil
}

// maxProofFile limits the size of a proof in bytes.
const maxProofFile = 64 << 20

// Check verifies a proof or an export, depending on the content of the file. outside finds older
// checkpoints of a log.
func Check(in io.Reader, keys []string, outside checkpoints) (verdict, error) {
	r := bufio.NewReader(in)
	begin, err := r.Peek(64)
	if err != nil && !errors.Is(err, io.EOF) {
		return verdict{}, err
	}
	if len(begin) == 0 {
		return verdict{}, errors.New("the file is empty, expected an export or a proof")
	}
	if bytes.HasPrefix(begin, []byte(`{"format":"assent-proof/`)) {
		return checkProof(r, keys, outside)
	}
	whole, since, err := anchors(r, outside)
	if err != nil {
		return verdict{}, err
	}
	var auditor approval.Auditor
	var lost []string
	report, err := ledger.Verify(whole, ledger.VerifyOptions{
		Also:  keys,
		Since: since,
		Each: func(i int64, l ledger.Leaf, o ledger.Openings) error {
			auditor.AddOpened(i, l, o)
			if l.Type == approval.EventRestored {
				lost = append(lost, restoredAt(i, l))
			}
			return nil
		},
	})
	if err != nil {
		return verdict{}, explained(err, lost)
	}
	problems, told := auditor.Problems(), auditor.Summary()
	if len(problems) > 0 {
		first := problems[0]
		return verdict{
			Problem:   first.Subject + ": " + first.Text,
			Entry:     &first.Index,
			Audit:     &told,
			Problems:  problems,
			PublicKey: report.PublicKey,
			KeyPinned: report.KeyPinned,
		}, nil
	}

	v := verdict{
		Audit:     &told,
		Verified:  true,
		Entries:   report.Entries,
		Redacted:  report.Redacted,
		Root:      report.Root.String(),
		Log:       report.Checkpoint.Origin,
		PublicKey: report.PublicKey,
		KeyPinned: report.KeyPinned,
		Anchored:  report.KeyPinned && report.Since != nil,
		Handovers: len(report.Handovers),
	}
	if report.Since != nil {
		v.Since = &report.Since.Size
	}
	return v, nil
}

// restoredAt describes a restore in words.
func restoredAt(index int64, l ledger.Leaf) string {
	fact := func(name string) string {
		v, _ := l.Facts.Get(name)
		return v.Num.Canonical()
	}
	text := fmt.Sprintf("entry %d tells that the store was restored at %s entries", index, fact("size"))
	if _, known := l.Facts.Get("lost_size"); known {
		text += ", and that there had been " + fact("lost_size")
	}
	return text
}

// explained adds the restores that the ledger records to a problem, because entries that were lost
// in a restore can't be found.
func explained(err error, lost []string) error {
	var wrong *ledger.VerifyError
	if len(lost) == 0 || !errors.As(err, &wrong) {
		return err
	}
	return &ledger.VerifyError{Index: wrong.Index, Problem: wrong.Problem + "; " + strings.Join(lost, "; ")}
}

func checkProof(r io.Reader, keys []string, outside checkpoints) (verdict, error) {
	if outside != nil {
		return verdict{}, errors.New(
			"--since and --witness are for exports: a proof says nothing about older checkpoints",
		)
	}
	file, err := io.ReadAll(io.LimitReader(r, maxProofFile))
	if err != nil {
		return verdict{}, err
	}
	var proof ledger.Proof
	file = bytes.TrimRight(file, "\n")
	report, err := ledger.VerifyProof(file, keys...)
	if err != nil {
		return verdict{}, err
	}
	if err := proof.UnmarshalJSON(file); err != nil {
		return verdict{}, err
	}
	return verdict{
		Verified:  true,
		Entry:     &report.Index,
		Entries:   report.Checkpoint.Size,
		Redacted:  int64(report.Redacted),
		Root:      report.Checkpoint.Root.String(),
		Log:       report.Checkpoint.Origin,
		PublicKey: report.PublicKey,
		KeyPinned: report.KeyPinned,
		Anchored:  report.KeyPinned,
		Leaf:      proof.Leaf,
	}, nil
}

func (a commands) printVerdict(v verdict, asJSON bool) error {
	if err := term.Print(a.Streams, asJSON, v, PrintVerdict); err != nil {
		return err
	}
	switch {
	case !v.Verified:
		return term.Exit(term.ExitNo)
	case !v.Anchored:
		return term.Exit(term.ExitLoose)
	}

	return nil
}

func PrintVerdict(p *term.Printer, v verdict) {
	switch {
	case !v.Verified && v.Entry != nil:
		p.Printf("%s: entry %d: %s\n", term.Red.Of("NOT VERIFIED"), *v.Entry, v.Problem)
		if more := len(v.Problems) - 1; more > 0 {
			p.Printf(
				"  and %d more; the signatures hold: whoever runs the service wrote what must not happen\n",
				more,
			)
		} else if more == 0 {
			p.Printf("  the signatures hold: whoever runs the service wrote what must not happen\n")
		}

		return
	case !v.Verified:
		p.Printf("%s: %s\n", term.Red.Of("NOT VERIFIED"), v.Problem)
		return
	case v.Leaf != nil:
		p.Printf(
			"%s: the log %s of %d entries holds entry %d\n  %s\n",
			term.Green.Of("verified"),
			v.Log,
			v.Entries,
			*v.Entry,
			string(v.Leaf),
		)
	default:
		p.Printf("%s: all %d entries of the log %s\n", term.Green.Of("verified"), v.Entries, v.Log)
	}

	if a := v.Audit; a != nil {
		p.Printf(
			"  requests: %d, answers: %d, runs: %d; each as the rules allow\n",
			a.Requests,
			a.Votes,
			a.States[approval.Consumed]+a.GrantUses,
		)
	}

	if v.Redacted > 0 {
		p.Printf("  %d sealed values were redacted; their digests stand\n", v.Redacted)
	}
	if v.Since != nil {
		p.Printf("  begins with the %d entries of the older checkpoint\n", *v.Since)
	}
	p.Printf("  root %s, signed by %s\n", v.Root, v.PublicKey)
	if v.Handovers > 0 {
		p.Printf("  changes of the key: %d, each signed by the key before\n", v.Handovers)
	}
	printLoose(p, v)
}

// printLoose prints what is missing to prove the result to someone who doesn't trust the operator
// of the service.
func printLoose(p *term.Printer, v verdict) {
	if !v.KeyPinned {
		p.Printf(
			"%s: the key came with the file, so this says nothing about who signed: give --public-key\n",
			term.Yellow.Of("not pinned"),
		)
	}

	if v.Leaf == nil && v.Since == nil {
		p.Printf(
			"%s: nothing from outside says that this is the whole history: give --since a checkpoint that you kept, "+
				"or --witness\n",
			term.Yellow.Of("not anchored"),
		)
	}
}
