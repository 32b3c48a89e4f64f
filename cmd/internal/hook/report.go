package hook

import (
	"context"
	"errors"
	"time"

	"github.com/assent-dev/assent/approval"
	"github.com/assent-dev/assent/cmd/internal/term"
)

// toRecord is how long a product is held up by what is only recorded.
const toRecord = 3 * time.Second

// report tells the ledger what became of the call of an event: how it
// ended, or that it is about to run where it is only observed.
func (a command) report(ctx context.Context, p *product, f flags, e *event) error {
	ctx, cancel := context.WithTimeout(ctx, toRecord)
	defer cancel()
	desk, err := a.desk(ctx, p, f)
	if err != nil {
		return err
	}
	opened, key, err := e.reportKeys()
	if err == nil {
		err = desk.Report(ctx, &e.call, e.report(), opened, key)
	}

	return errors.Join(explained(err), desk.Close())
}

// report is what the event says of the call.
func (e *event) report() approval.Report {
	switch {
	case e.moment != after:
		return approval.Observed
	case e.failed:
		return approval.Failed
	}

	return approval.Returned
}

// reportKeys are the key by which the call was opened, and that of the
// report. A product that gives its calls no ids tells no two reports of
// one text apart: each is one of its own.
func (e *event) reportKeys() (opened, key string, err error) {
	if e.id == "" {
		return "", approval.NewKey(), nil
	}
	opened, err = e.key(0)

	return opened, opened + "-" + string(e.report()), err
}

// errTold says that the product has nothing to hear, and people what
// was told on standard error: the call has run.
var errTold = term.ExitWith(term.ExitNo, nil)

// tell says on standard error what could not be recorded, where nothing
// is held up. To some products any exit code but 0 is a no.
func (a command) tell(err error, observes bool) error {
	_ = put(a.Err, []byte("assent: not recorded. "+reason(err)+"\n")) // nobody else could be told
	if observes {
		return nil
	}

	return errTold
}
