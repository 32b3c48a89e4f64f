package server

import (
	"context"
	"errors"
	"net/http"
	"runtime/debug"
	"strconv"
	"sync"
	"time"

	"github.com/prometheus/client_golang/prometheus"
	"github.com/prometheus/client_golang/prometheus/collectors"
	"github.com/prometheus/client_golang/prometheus/promhttp"

	"github.com/assent-dev/assent/approval"
	"github.com/assent-dev/assent/store"
)

// metrics are the Prometheus metrics. None of them contains the name of a tenant or a
// person, or an argument.
type metrics struct {
	handler  http.Handler
	registry *prometheus.Registry
	http     *prometheus.HistogramVec
	calls    *prometheus.CounterVec
	consumes *prometheus.CounterVec
	entries  prometheus.Counter
	watchers prometheus.Gauge
	polls    prometheus.Gauge
	sealedAt prometheus.Gauge

	sealing   sync.Mutex
	byUpdates int64 // entries sealed by updates that are counted
	open      *prometheus.GaugeVec
	dead      prometheus.Gauge
	oldest    prometheus.Gauge
	frozen    prometheus.Gauge
	degraded  *prometheus.GaugeVec
	refused   *prometheus.CounterVec
	waited    *prometheus.HistogramVec
	behind    *prometheus.GaugeVec

	measuring sync.Mutex                 // one at a time; guards the fields below
	measured  time.Time                  // when the figures of the store were last read
	start     time.Time                  // of this process; other processes have counted earlier votes
	counted   map[approval.VoteFact]bool // votes of the last minutes that are in waited
}

func newMetrics(cfg Config) *metrics {
	m := &metrics{
		start:   cfg.Now(),
		counted: map[approval.VoteFact]bool{},
		http: prometheus.NewHistogramVec(prometheus.HistogramOpts{
			Name:    "assent_http_seconds",
			Buckets: prometheus.ExponentialBuckets(0.0005, 2, 18),
			Help:    "Time to answer, by route; long polls and event streams include their waiting.",
		}, []string{"route", "status"}),
		calls: counter(
			"assent_calls_total",
			"Calls decided or presented to this process, by what became of them.",
			"outcome",
		),
		consumes: counter(
			"assent_consumes_total",
			"Permits presented to this process, by what became of them.",
			"result",
		),
		refused: counter(
			"assent_limited_total",
			"Exchanges refused since a share was used up: of what, and whose.",
			"share",
			"whose",
		),
		entries: prometheus.NewCounter(
			prometheus.CounterOpts{
				Name: "assent_sealed_entries_total",
				Help: "Ledger entries sealed by this process.",
			},
		),
		watchers: gauge("assent_watchers", "Event streams that are open."),
		polls:    gauge("assent_long_polls", "Requests that wait for a change."),
		sealedAt: gauge(
			"assent_sealed_timestamp_seconds",
			"When sealing last succeeded, in seconds of Unix time: alert when it is long ago.",
		),
		open: gauges(
			"assent_open_requests",
			"Requests that are open, by state; the same on every replica.",
			"state",
		),
		oldest: gauge(
			"assent_oldest_pending_seconds",
			"Age of the request that has waited longest for an answer, 0 when none waits; the same on every replica.",
		),
		frozen: gauge(
			"assent_frozen",
			"Freezes in force: of single agents, or of everything; the same on every replica.",
		),
		degraded: gauges(
			"assent_degraded",
			"1 while a part can't be used as it stands: its files are broken, or nobody can sign in.",
			"part",
		),
		behind: gauges(
			"assent_witness_behind_seconds",
			"How long ago a witness was last shown every ledger as it was; 0 while that goes well.",
			"witness",
		),
		dead: gauge(
			"assent_dead_deliveries",
			"Deliveries that were given up, at most 500 of each tenant are counted; the same on every replica.",
		),
		waited: prometheus.NewHistogramVec(
			prometheus.HistogramOpts{
				Name:    "assent_answer_seconds",
				Buckets: prometheus.ExponentialBuckets(1, 3, 12),
				Help: "Time from asking to a person's answer, through whatever channel, since this process " +
					"began; the same on every replica.",
			},
			[]string{"verdict"},
		),
	}
	alarms := prometheus.NewCounterFunc(prometheus.CounterOpts{
		Name: "assent_tampered_total",
		Help: "Times that this process met something in the database that the service did not write: alert on any.",
	}, func() float64 {
		return float64(cfg.Store.Integrity().Alarms)
	})
	stopped := counts(
		"assent_stopped_tenants",
		"Tenants whose ledger does not fit: nothing is signed for them, and nothing runs.",
		func() int { return len(cfg.Store.Integrity().Stopped) },
	)
	registry := prometheus.NewRegistry()
	registry.MustRegister(m.http, m.calls, m.consumes, m.entries, m.watchers, m.polls, m.sealedAt, m.open, m.dead,
		m.waited, m.oldest, m.frozen, m.degraded, m.behind, alarms, stopped, m.refused,
		buildInfo(cfg.Version), collectors.NewGoCollector(),
		collectors.NewProcessCollector(collectors.ProcessCollectorOpts{}))
	if count := cfg.UnusableAgents; count != nil {
		registry.MustRegister(counts(
			"assent_unusable_agents",
			"Agents whose file can't be used as it stands: the last good copy decides, or every call is denied.",
			count,
		))
	}

	if cfg.CandidateCounts != nil {
		registry.MustRegister(candidateFigures{cfg.CandidateCounts})
	}
	m.registry = registry
	m.handler = promhttp.HandlerFor(registry, promhttp.HandlerOpts{})
	return m
}

// buildInfo is always 1. Its labels describe the build.
func buildInfo(version string) prometheus.Collector {
	labels := prometheus.Labels{"version": version, "goversion": "", "revision": ""}
	if info, ok := debug.ReadBuildInfo(); ok {
		labels["goversion"] = info.GoVersion
		for _, s := range info.Settings {
			if s.Key == "vcs.revision" {
				labels["revision"] = s.Value
			}
		}
	}

	return prometheus.NewGaugeFunc(prometheus.GaugeOpts{
		Name:        "assent_build_info",
		Help:        "What runs.",
		ConstLabels: labels,
	}, func() float64 { return 1 })
}

func counter(name, help string, labels ...string) *prometheus.CounterVec {
	return prometheus.NewCounterVec(prometheus.CounterOpts{Name: name, Help: help}, labels)
}

func gauges(name, help, label string) *prometheus.GaugeVec {
	return prometheus.NewGaugeVec(prometheus.GaugeOpts{Name: name, Help: help}, []string{label})
}

// counts returns a gauge whose value is computed at each scrape.
func counts(name, help string, count func() int) prometheus.Collector {
	return prometheus.NewGaugeFunc(prometheus.GaugeOpts{Name: name, Help: help}, func() float64 {
		return float64(count())
	})
}

func gauge(name, help string) prometheus.Gauge {
	return prometheus.NewGauge(prometheus.GaugeOpts{Name: name, Help: help})
}

// MetricsHandler serves the metrics, for a separate listener. It requires no token.
func (s *Server) MetricsHandler() http.Handler {
	return http.HandlerFunc(func(w http.ResponseWriter, r *http.Request) {
		s.refresh(r.Context())
		s.metrics.handler.ServeHTTP(w, r)
	})
}

func (x infoOps) serveMetrics() error {
	x.MetricsHandler().ServeHTTP(x.w, x.r)
	return nil
}

// How old metrics from the store may be when they are shown, and the time limit for reading
// them. A client may scrape often.
const (
	figuresAge  = time.Second
	figuresTime = 2 * time.Second
)

// refresh updates the metrics that are computed from the store. If they can't be read they
// keep their values; the worker that also reads them logs the error.
func (s *Server) refresh(ctx context.Context) {
	s.metrics.degrade(s.health.degraded())
	s.metrics.measuring.Lock()
	defer s.metrics.measuring.Unlock()
	if s.cfg.Now().Sub(s.metrics.measured) < figuresAge {
		return
	}
	ctx, cancel := context.WithTimeout(ctx, figuresTime)
	defer cancel()
	_ = s.read(ctx)
}

// answered counts one exchange. The label is the route's pattern and never the path,
// because callers choose paths.
func (m *metrics) answered(pattern string, status int, took time.Duration) {
	if pattern == "" {
		pattern = "none"
	}
	m.http.WithLabelValues(pattern, strconv.Itoa(status)).Observe(took.Seconds())
}

// degrade sets the metrics of degraded parts.
func (m *metrics) degrade(parts map[string]bool) {
	for name, failing := range parts {
		value := 0.0
		if failing {
			value = 1
		}
		m.degraded.WithLabelValues(name).Set(value)
	}
}

func (m *metrics) limited(share, whose string) { m.refused.WithLabelValues(share, whose).Inc() }

func (m *metrics) called(outcome string) { m.calls.WithLabelValues(outcome).Inc() }

func (m *metrics) consumed(err error) {
	result := "consumed"
	if err != nil {
		result = string(problemOf(err).Code)
	}
	m.consumes.WithLabelValues(result).Inc()
}

// sealed counts the entries that were sealed in the background, and those that updates have
// sealed themselves since the store was opened.
func (m *metrics) sealed(n int, byUpdates int64, err error, now time.Time) {
	m.sealing.Lock()
	defer m.sealing.Unlock()
	m.entries.Add(float64(n) + float64(max(0, byUpdates-m.byUpdates)))
	m.byUpdates = max(m.byUpdates, byUpdates)
	if err == nil {
		m.sealedAt.Set(float64(now.UnixMilli()) / 1000)
	}
}

// measure reads the metrics from the store.
func (s *Server) measure(ctx context.Context) error {
	s.metrics.measuring.Lock()
	defer s.metrics.measuring.Unlock()
	return s.read(ctx)
}

// figures holds the metrics of all tenants together.
type figures struct {
	open   map[approval.State]int
	oldest time.Time // zero if nothing waits
	dead   int
	frozen int
	votes  []approval.VoteFact
}

// waits notes a request that has been waiting since then.
func (f *figures) waits(since time.Time) {
	if f.oldest.IsZero() || since.Before(f.oldest) {
		f.oldest = since
	}
}

// read reads the metrics from the store and sets all of them, or none if it fails.
func (s *Server) read(ctx context.Context) error {
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
	f := figures{open: map[approval.State]int{}}
	var errs []error
	for _, t := range tenants {
		errs = append(errs, s.add(ctx, &f, t, now))
	}
	if err := errors.Join(errs...); err != nil {
		return err
	}
	s.metrics.show(f, now)
	return nil
}

// add adds the metrics of one tenant.
func (s *Server) add(ctx context.Context, f *figures, tenant string, now time.Time) error {
	var errs []error
	for _, state := range []approval.State{approval.Pending, approval.Approved} {
		page, err := s.cfg.Store.Requests(ctx, tenant, approval.Filter{
			States: []approval.State{state},
			Limit:  1,
			Oldest: true,
		})
		errs, f.open[state] = append(errs, err), f.open[state]+page.Total
		if state == approval.Pending && len(page.Requests) > 0 {
			f.waits(page.Requests[0].Created)
		}
	}

	jobs, err := s.cfg.Store.Jobs(ctx, tenant, store.DeadEnd, 500)
	f.dead, errs = f.dead+len(jobs), append(errs, err)
	freezes, err := s.cfg.Store.Freezes(ctx, tenant)
	f.frozen, errs = f.frozen+len(freezes), append(errs, err)
	votes, err := s.cfg.Store.Votes(ctx, tenant, s.metrics.since(now), statsVotes)
	f.votes, errs = append(f.votes, votes...), append(errs, err)
	return errors.Join(errs...)
}

func (m *metrics) show(f figures, now time.Time) {
	m.answers(f.votes, now)
	for state, n := range f.open {
		m.open.WithLabelValues(string(state)).Set(float64(n))
	}
	age := 0.0
	if !f.oldest.IsZero() {
		age = max(0, now.Sub(f.oldest).Seconds())
	}
	m.oldest.Set(age)
	m.dead.Set(float64(f.dead))
	m.frozen.Set(float64(f.frozen))
	m.measured = now
}

// lag is the longest time between the date of a vote and its commit.
const lag = time.Minute

// since returns the time from which votes are read: at first the start of this process,
// then with an overlap.
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
