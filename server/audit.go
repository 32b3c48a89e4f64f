package server

import (
	"errors"
	"fmt"
	"net/http"
	"time"

	"github.com/assent-dev/assent/approval"
	"github.com/assent-dev/assent/approval/ledger"
	"github.com/assent-dev/assent/server/feed"
	"github.com/assent-dev/assent/server/openapi"
	"github.com/assent-dev/assent/store"
)

// auditOps are the operations on the ledger.
type auditOps struct{ *exchange }

func (x auditOps) checkpoint() error {
	size, signed, err := x.cfg.Store.Checkpoint(x.r.Context(), x.tenant())
	if err != nil {
		return err
	}
	return x.answer(http.StatusOK, openapi.Checkpoint{
		Size:       size,
		Checkpoint: string(signed),
		PublicKey:  x.cfg.Signer.PublicKey(),
	})
}

func (x auditOps) proof() error {
	index, err := x.pathNumber("index")
	if err != nil {
		return err
	}
	ctx, tenant := x.r.Context(), x.tenant()
	size, signed, err := x.cfg.Store.Checkpoint(ctx, tenant)
	if err != nil {
		return err
	}
	if index >= size {
		return fail(openapi.CodeNotFound, fmt.Sprintf("the ledger has %d entries", size))
	}
	entries, err := x.cfg.Store.Entries(ctx, tenant, index, 1)
	if err != nil {
		return err
	}
	if len(entries) != 1 || entries[0].Index != index {
		return fmt.Errorf("the store has lost entry %d", index)
	}
	by, err := x.reader()
	if err != nil {
		return err
	}
	may, err := x.cfg.Service.Entries(ctx, tenant, by, feed.About(entries))
	if err != nil {
		return err
	}
	if !may[0] {
		return approval.ErrNotFound
	}
	hashes, err := ledger.ProveInclusion(size, index, x.cfg.Store.Hashes(ctx, tenant))
	if err != nil {
		return err
	}
	return x.answer(http.StatusOK, ledger.Proof{
		Index:      index,
		Leaf:       entries[0].Leaf,
		Openings:   entries[0].Openings,
		Hashes:     hashes,
		PublicKey:  x.cfg.Signer.PublicKey(),
		Checkpoint: signed,
	})
}

// exportBatch is the number of entries that are read at once, and exportWeight the memory
// that they may take, in bytes.
const (
	exportBatch  = 100
	exportWeight = 32 << 20
)

// export streams the ledger, with everything that was recorded before the call. The last
// line shows that the export is complete: on an error the connection is closed without it.
func (x auditOps) export() error {
	by, err := x.reader()
	if err != nil {
		return err
	}
	if !by.All() {
		return fail(
			openapi.CodeNotEligible,
			"the ledger is exported whole, by administrators and by those whom readers of people.yaml names",
		)
	}
	place, err := x.place(x.cfg.Shares.Streams, "streams")
	if err != nil {
		return err
	}
	defer place.Return()
	if err := x.take(exportWeight); err != nil {
		return err
	}
	ctx := x.r.Context()
	if err := x.sealTenant(ctx, x.tenant()); err != nil {
		// A log that was tampered with is no longer sealed. The part that was signed before
		// can still be exported, because the auditor needs it.
		if _, tampered := errors.AsType[*store.TamperedError](err); !tampered {
			return err
		}
	}
	size, signed, err := x.cfg.Store.Checkpoint(ctx, x.tenant())
	if err != nil {
		return err
	}
	if size == 0 {
		return fail(openapi.CodeNotFound, "the ledger has no entries yet")
	}
	x.w.Header().Set("Content-Type", "application/jsonl")
	x.w.Header().Set("Cache-Control", "no-store")
	if x.r.Method == http.MethodHead {
		return nil
	}
	handovers, err := x.cfg.Store.Handovers(ctx, x.tenant())
	if err != nil {
		return err
	}
	out, err := ledger.NewWriter(x.w, signed, x.cfg.Signer.PublicKey(), handovers...)
	if err != nil {
		return err
	}
	if err := x.record("exported", "", map[string]any{"size": size, "channel": "api"}); err != nil {
		return err
	}
	if err := x.exportAll(out, size); err != nil {
		if ctx.Err() == nil {
			x.cfg.Logger.Error("an export was cut off", "tenant", x.tenant(), "error", err)
		}
		panic(http.ErrAbortHandler)
	}

	return nil
}

func (x auditOps) exportAll(out *ledger.Writer, size int64) error {
	control := http.NewResponseController(x.w)
	for next := int64(0); next < size; {
		entries, err := x.inTurn(func() ([]ledger.SealedEntry, error) {
			return x.cfg.Store.Entries(x.r.Context(), x.tenant(), next, int(min(exportBatch, size-next)))
		})
		if err != nil {
			return err
		}
		if len(entries) == 0 {
			return fmt.Errorf("entry %d: %w", next, approval.ErrNotFound)
		}
		_ = control.SetWriteDeadline(time.Now().Add(answerTime)) // test recorders have no deadlines
		for _, e := range entries {
			if err := out.Write(e.Leaf, e.Openings); err != nil {
				return err
			}
		}
		next += int64(len(entries))
	}

	return out.Close()
}
