package mcp

import (
	"cmp"
	"context"
	"fmt"
	"os"
	"slices"
	"time"

	"github.com/assent-dev/assent/mcp/catalog"
	"github.com/assent-dev/assent/mcp/pinfile"
)

// FilePins are the pins in a file, which people may change meanwhile.
type FilePins struct {
	File string
	// Record appends tools that were accepted without an operator to the ledger. If it is nil,
	// nothing is recorded.
	Record func(ctx context.Context, event, subject, actor string, facts map[string]any) error
}

// Pins implements [Pins].
func (p *FilePins) Pins(context.Context) (*catalog.Pins, error) { return pinfile.Read(p.File) }

// Version changes whenever the file changes.
func (p *FilePins) Version() string {
	is, err := os.Stat(p.File)
	if err != nil {
		return err.Error()
	}
	return fmt.Sprint(is.ModTime().UnixNano(), is.Size())
}

// Accept implements [Pins].
func (p *FilePins) Accept(ctx context.Context, j *catalog.Judgement) error {
	ctx, cancel := context.WithTimeout(ctx, lockTime)
	defer cancel()
	err := pinfile.Update(ctx, p.File, func(pins *catalog.Pins) error {
		j.Keep(pins)
		return nil
	})
	if err != nil || p.Record == nil {
		return err
	}
	for _, batch := range slices.Collect(slices.Chunk(j.Record, mostAccepted)) {
		if err := p.note(ctx, j.Alias, batch); err != nil {
			return err
		}
	}

	return nil
}

// note records the accepted definitions of a server.
func (p *FilePins) note(ctx context.Context, alias string, batch []catalog.Pin) error {
	tools := map[string]any{}
	for _, pin := range batch {
		tools[pin.Name] = pin.Digest
	}
	return p.Record(ctx, eventAccepted, "mcp/"+alias, byItself, map[string]any{
		"server": alias,
		"by":     string(cmp.Or(batch[0].By, catalog.ByFirstSight)),
		"tools":  tools,
	})
}

const (
	lockTime      = 10 * time.Second // how long another program may change the pins
	mostAccepted  = 100              // tools that one entry of the ledger names
	eventAccepted = "mcp_tools_accepted"
	byItself      = "server" // the actor of changes that no person requested
)
