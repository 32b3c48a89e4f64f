package server

import (
	"errors"
	"fmt"
	"net/http"

	"github.com/assent-dev/assent/approval"
	"github.com/assent-dev/assent/approval/ledger"
	"github.com/assent-dev/assent/server/administration"
	"github.com/assent-dev/assent/server/openapi"
	"github.com/assent-dev/assent/server/witness"
)

func (x adminOps) keeper() *witness.Keeper {
	return &witness.Keeper{Records: x.cfg.Store, Now: x.cfg.Now}
}

func (x adminOps) witnessed() error {
	log := x.query["log"]
	if log == "" {
		return bad("log", "expected the first line of its checkpoints, such as assent/default")
	}
	kept, err := x.keeper().Newest(x.r.Context(), x.tenant(), log)
	if err != nil {
		return err
	}
	return x.answer(http.StatusOK, shownKept(kept, witness.Taken))
}

func shownKept(k witness.Kept, reason witness.Reason) openapi.Witnessed {
	return openapi.Witnessed{
		Log:        k.Log,
		Size:       k.Size,
		Checkpoint: k.Checkpoint,
		PublicKey:  k.PublicKey,
		At:         k.At,
		Reason:     openapi.WitnessedReason(reason),
	}
}

// mostProof is more than the number of hashes in any proof.
const mostProof = 128

// showWitness keeps the checkpoint of another server, if it is consistent with the one that
// is kept.
func (x adminOps) showWitness() error {
	f := object(x.body, "", "checkpoint", "public_key", "since", "proof").must("checkpoint", "public_key")
	s := witness.Shown{
		Checkpoint: []byte(f.text("checkpoint")),
		PublicKey:  f.text("public_key"),
		Since:      int64(f.number("since")),
		Proof:      f.hashes("proof"),
	}
	if f.err != nil {
		return f.err
	}
	kept, reason, err := x.keeper().Show(x.r.Context(), x.tenant(), s)
	var wrong *witness.InputError
	if errors.As(err, &wrong) {
		return &approval.InputError{
			Field:    "checkpoint",
			Expected: "a signed note of a ledger, and its public_key: " + wrong.Error(),
		}
	}

	if err != nil {
		return err
	}
	if reason == witness.Contradicts || reason == witness.AnotherKey {
		x.cfg.Logger.Error(
			"a ledger that is witnessed here shows another history",
			"tenant",
			x.tenant(),
			"token",
			x.token.Name,
			"log",
			kept.Log,
			"kept",
			kept.Size,
			"reason",
			string(reason),
		)
	}

	return x.answer(http.StatusOK, shownKept(kept, reason))
}

// hashes reads a list of hashes.
func (f *fields) hashes(name string) []ledger.Hash {
	var out []ledger.Hash
	texts := f.texts(name)
	if len(texts) > mostProof {
		f.refuse(name, fmt.Sprintf("expected at most %d hashes", mostProof))
		return nil
	}
	for _, text := range texts {
		h, err := ledger.ParseHash(text)
		if err != nil {
			f.refuse(name, err.Error())
			return nil
		}
		out = append(out, h)
	}

	return out
}

// forgetWitnessed allows a log to start over after people have approved that. Until then it
// answers that they are asked.
func (x adminOps) forgetWitnessed() error {
	f := object(x.body, "", "log").must("log")
	log := f.text("log")
	if f.err != nil {
		return f.err
	}
	kept, err := x.keeper().Newest(x.r.Context(), x.tenant(), log)
	if err != nil {
		return err
	}
	act := administration.Forgetting(log, kept.PublicKey)
	if asked, err := x.act(administration.ForgetLog, act); asked || err != nil {
		return err
	}
	if err := x.keeper().Forget(x.r.Context(), x.tenant(), log); err != nil {
		return err
	}
	if err := x.record(approval.EventWitnessForgot, "", map[string]any{"log": log}); err != nil {
		return err
	}
	x.w.WriteHeader(http.StatusNoContent)
	return nil
}
