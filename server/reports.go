package server

import (
	"net/http"

	"github.com/assent-dev/assent/approval"
)

// report records the outcome of a call that a runtime reports.
func (x requestOps) report() error {
	agent, err := x.agent()
	if err != nil {
		return err
	}
	key, err := x.idempotencyKey()
	if err != nil {
		return err
	}
	if key == "" {
		return bad("Idempotency-Key", "expected one: a report that is sent again must stay the same report")
	}
	f := object(x.body, "", "call", "report", "opened").must("call", "report")
	in := approval.ReportInput{
		Tenant: x.tenant(),
		Asker:  asker(x.token),
		Agent:  agent,
		Call:   f.call("call"),
		Report: approval.Report(f.text("report")),
		Opened: f.text("opened"),
		Key:    key,
	}
	if f.err != nil {
		return f.err
	}
	if err := x.cfg.Service.Report(x.r.Context(), in); err != nil {
		return err
	}
	x.w.WriteHeader(http.StatusNoContent)

	return nil
}
