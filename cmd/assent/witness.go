package main

import (
	"context"
	"fmt"
	"net/netip"
	"time"

	"github.com/assent-dev/assent/cmd/internal/config"
	"github.com/assent-dev/assent/internal/guard"
	"github.com/assent-dev/assent/server/witness"
)

// buildWitness creates the runner that submits the ledgers to witnesses.
func (a *app) buildWitness() error {
	cfg := witness.Config{
		Store:     a.store,
		PublicKey: a.key.Signer.PublicKey(),
		Log:       a.log,
		Now:       time.Now,
	}
	for _, c := range a.cfg.Witnesses {
		w, err := newWitness(c)
		if err != nil {
			return fmt.Errorf("witness %s: %w", c.Name, err)
		}
		cfg.Targets = append(cfg.Targets, witness.Target{
			Name:     c.Name,
			Witness:  w,
			Every:    c.Every,
			Required: c.Required,
		})
	}

	a.witness = witness.New(cfg)
	return nil
}

// askTime limits how long a start waits for witnesses.
const askTime = 10 * time.Second

// askWitnesses submits the ledgers once before any request is answered, so that a log that a
// witness contradicts is stopped before the first call. An unreachable witness is logged and
// doesn't prevent the start.
func (a *app) askWitnesses(ctx context.Context) {
	ctx, cancel := context.WithTimeout(ctx, askTime)
	defer cancel()
	_ = a.witness.Round(ctx)
}

func newWitness(c config.Witness) (witness.Witness, error) {
	if c.File != "" {
		return witness.File(c.File, time.Now), nil
	}
	r := witness.Remote{URL: c.URL + c.Assent, Guard: guard.Guard{Loopback: c.Loopback}}
	for _, text := range c.Networks {
		network, err := netip.ParsePrefix(text)
		if err != nil {
			return nil, fmt.Errorf("networks: %w", err)
		}
		r.Guard.Allow = append(r.Guard.Allow, network)
	}

	if c.TokenFile != "" {
		var err error
		if r.Token, err = readSecret(c.TokenFile); err != nil {
			return nil, fmt.Errorf("the token: %w", err)
		}
	}

	if c.Assent != "" {
		return witness.Assent(r)
	}
	return witness.URL(r)
}
