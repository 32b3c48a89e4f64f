package hook

import (
	"context"
	"errors"
	"time"

	"github.com/assent-dev/assent/approval"
	"github.com/assent-dev/assent/cmd/internal/term"
)

// toRecord limits how long a product waits for an event to be recorded.
const toRecord = 3 * time.Second

// report records the call of an event in the ledger: how the call ended, or, with --observe, that
// it is about to run.
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

// report returns the outcome of the call that the event describes.
func (e *event) report() approval.Report {
	switch {
	case e.moment != after:
		return approval.Observed
	case e.blocked:
		return approval.NotRun
	case e.failed:
		return approval.Failed
	}

	return approval.Returned
}

// reportKeys returns the key with which the call was opened and the key of this report. If the
// product gives its calls no ids, two reports about the same text can't be told apart, so each
// report gets a key of its own.
func (e *event) reportKeys() (opened, key string, err error) {
	if opened, err = e.key(0); e.id == "" {
		return opened, approval.NewKey(), err
	}

	return opened, opened + "-" + string(e.report()), err
}

// errTold is the exit code for a failed recording after the call has run. The product needs no
// answer, and the message is on standard error.
var errTold = term.ExitWith(term.ExitNo, nil)

// tell writes to standard error that something could not be recorded. It returns nil if the hook
// only observes, because some products treat every exit code but 0 as a denial.
func (a command) tell(err error, observes bool) error {
	_ = put(a.Err, []byte("assent: not recorded. "+reason(err)+"\n")) // there is no other way to report it
	if observes {
		return nil
	}

	return errTold
}
