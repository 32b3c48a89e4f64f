package gateway

import (
	"slices"
	"strings"

	"github.com/assent-dev/assent/internal/durable"
	"github.com/assent-dev/assent/rap/internal/kept"
	"github.com/assent-dev/assent/store"
)

// OutlivesRestore reports whether a record may stay in a store that was filled from a backup. Calls
// on their way may have run since, and would run again; what a user allowed for a session may have
// been used up or ended. Calls that had ended stay, so that repetitions of them run nothing.
func OutlivesRestore(key []byte, r store.Record) (bool, error) {
	place, kind, _ := kept.CutKind(r.Room)
	switch {
	case kind == "grants":
		return false, nil
	case r.Due.IsZero():
		return true, nil
	case kind != "calls" || !strings.Contains(place, "gateway/"):
		return false, nil
	}
	sealing := durable.Sealing{Namespace: place, Key: key, Purpose: kept.Purpose}
	v, err := durable.NewVault[restored](sealing, kind)
	if err != nil {
		return false, err
	}
	d, err := v.Open(r)
	return err == nil && d.Body.ended(), err
}

// restored is what a record says of how far its call had come.
type restored struct {
	State durable.State `json:"state"`
	Phase string        `json:"phase"` // of an earlier version
}

func (r restored) ended() bool {
	return slices.Contains([]durable.State{durable.Ended, durable.Closed}, r.State) ||
		slices.Contains([]string{"done", "following", "delivered"}, r.Phase)
}
