package server

import (
	"context"
	"errors"
	"net/http"
	"strconv"
	"time"

	"github.com/prometheus/client_golang/prometheus"
	"github.com/prometheus/client_golang/prometheus/collectors"
	"github.com/prometheus/client_golang/prometheus/promhttp"

	"github.com/assent-dev/assent/approval"
	"github.com/assent-dev/assent/store"
)

// metrics are the figures for Prometheus. None of them names a tenant, a person or an argument.
type metrics struct {
	handler  http.Handler
	http     *prometheus.HistogramVec
	calls    *prometheus.CounterVec
	consumes *prometheus.CounterVec
	entries  prometheus.Counter
	watchers prometheus.Gauge
	polls    prometheus.Gauge
	sealedAt prometheus.Gauge
	open     *prometheus.GaugeVec
	dead     prometheus.Gauge
	waited   *prometheus.HistogramVec
	behind   *prometheus.GaugeVec
	start    time.Time                  // of this process; votes before it were measured by others
	counted  map[approval.VoteFact]bool // votes of the last minutes that are in waited
}

// newMetrics registers all figures. integrity says what the store found that does not fit.
func newMetrics(now time.Time, integrity func() store.Integrity) *metrics {
	m := &metrics{
		start: now, counted: map[approval.VoteFact]bool{},
		http: prometheus.NewHistogramVec(prometheus.HistogramOpts{Name: "assent_http_seconds", Buckets: prometheus.ExponentialBuckets(0.0005, 2, 18),
			Help: "Time to answer, by route; long polls and event streams include their waiting."}, []string{"route", "status"}),
		calls:    counter("assent_calls_total", "Calls decided or presented to this process, by what became of them.", "outcome"),
		consumes: counter("assent_consumes_total", "Permits presented to this process, by what became of them.", "result"),
		entries:  prometheus.NewCounter(prometheus.CounterOpts{Name: "assent_sealed_entries_total", Help: "Ledger entries sealed by this process."}),
		watchers: gauge("assent_watchers", "Event streams that are open."),
		polls:    gauge("assent_long_polls", "Requests that wait for a change."),
		sealedAt: gauge("assent_sealed_timestamp_seconds", "When sealing last succeeded, in seconds of Unix time: alert when it is long ago."),
		open:     prometheus.NewGaugeVec(prometheus.GaugeOpts{Name: "assent_open_requests", Help: "Requests that are open, by state; the same on every replica."}, []string{"state"}),
		dead:     gauge("assent_dead_deliveries", "Deliveries that were given up, at most 500 of each tenant are counted; the same on every replica."),
		waited: prometheus.NewHistogramVec(prometheus.HistogramOpts{Name: "assent_answer_seconds", Buckets: prometheus.ExponentialBuckets(1, 3, 12),
			Help: "Time from asking to a person's answer, through whatever channel, since this process began; the same on every replica."}, []string{"verdict"}),
	}
	m.behind = prometheus.NewGaugeVec(prometheus.GaugeOpts{Name: "assent_witness_behind_seconds",
		Help: "How long ago a witness was last shown every ledger as it was; 0 while that goes well."}, []string{"witness"})
	alarms := prometheus.NewCounterFunc(prometheus.CounterOpts{Name: "assent_tampered_total",
		Help: "Times that this process met something in the database that the service did not write: alert on any."}, func() float64 { return float64(integrity().Alarms) })
	stopped := prometheus.NewGaugeFunc(prometheus.GaugeOpts{Name: "assent_stopped_tenants",
		Help: "Tenants whose ledger does not fit: nothing is signed for them, and nothing runs."}, func() float64 { return float64(len(integrity().Stopped)) })
	registry := prometheus.NewRegistry()
	registry.MustRegister(m.http, m.calls, m.consumes, m.entries, m.watchers, m.polls, m.sealedAt, m.open, m.dead, m.waited, m.behind, alarms, stopped,
		collectors.NewGoCollector(), collectors.NewProcessCollector(collectors.ProcessCollectorOpts{}))
	m.handler = promhttp.HandlerFor(registry, promhttp.HandlerOpts{})
	return m
}

func counter(name, help, label string) *prometheus.CounterVec {
	return prometheus.NewCounterVec(prometheus.CounterOpts{Name: name, Help: help}, []string{label})
}

func gauge(name, help string) prometheus.Gauge {
	return prometheus.NewGauge(prometheus.GaugeOpts{Name: name, Help: help})
}

func (x *exchange) serveMetrics() error {
	x.metrics.handler.ServeHTTP(x.w, x.r)
	return nil
}

// answered counts one exchange. The label is the route's pattern, never the path, which callers choose.
func (m *metrics) answered(pattern string, status int, took time.Duration) {
	if pattern == "" {
		pattern = "none"
	}
	m.http.WithLabelValues(pattern, strconv.Itoa(status)).Observe(took.Seconds())
}

func (m *metrics) called(outcome string) { m.calls.WithLabelValues(outcome).Inc() }

func (m *metrics) consumed(err error) {
	result := "consumed"
	if err != nil {
		result = string(problemOf(err).Code)
	}
	m.consumes.WithLabelValues(result).Inc()
}

func (m *metrics) sealed(n int, err error, now time.Time) {
	m.entries.Add(float64(n))
	if err == nil {
		m.sealedAt.Set(float64(now.UnixMilli()) / 1000)
	}
}

// measure reads the figures that stand in the store. Only its worker calls it, so what it counted needs no lock.
func (s *Server) measure(ctx context.Context) error {
	if s.cfg.Witnesses != nil {
		for _, w := range s.cfg.Witnesses() {
			s.metrics.behind.WithLabelValues(w.Name).Set(w.Behind.Seconds())
		}
	}
	tenants, err := s.cfg.Store.Tenants(ctx)
	if err != nil {
		return err
	}
	now := s.cfg.Now()
	sum := map[approval.State]int{}
	dead := 0
	var errs []error
	var fresh []approval.VoteFact
	for _, t := range tenants {
		for _, state := range []approval.State{approval.Pending, approval.Approved} {
			page, err := s.cfg.Store.Requests(ctx, t, approval.Filter{States: []approval.State{state}, Limit: 1})
			errs, sum[state] = append(errs, err), sum[state]+page.Total
		}
		jobs, err := s.cfg.Store.Jobs(ctx, t, store.DeadEnd, 500)
		dead += len(jobs)
		votes, failed := s.cfg.Store.Votes(ctx, t, s.metrics.since(now), statsVotes)
		errs, fresh = append(errs, err, failed), append(fresh, votes...)
	}
	if err := errors.Join(errs...); err != nil {
		return err
	}
	s.metrics.answers(fresh, now)
	for state, n := range sum {
		s.metrics.open.WithLabelValues(string(state)).Set(float64(n))
	}
	s.metrics.dead.Set(float64(dead))
	return nil
}

// lag is how much later than its time a vote may show in the store: it is dated before it is committed.
const lag = time.Minute

// since is from when on votes are read: from the start of this process at first, then with an overlap.
func (m *metrics) since(now time.Time) time.Time {
	if from := now.Add(-lag); from.After(m.start) {
		return from
	}
	return m.start
}

// answers counts each vote once.
func (m *metrics) answers(votes []approval.VoteFact, now time.Time) {
	for _, v := range votes {
		if _, known := m.counted[v]; !known {
			m.counted[v] = true
			m.waited.WithLabelValues(string(v.Verdict)).Observe(v.Waited.Seconds())
		}
	}
	for v := range m.counted {
		if v.At.Before(now.Add(-2 * lag)) {
			delete(m.counted, v)
		}
	}
}
