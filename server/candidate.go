package server

import (
	"net/http"

	"github.com/prometheus/client_golang/prometheus"

	"github.com/assent-dev/assent/server/candidate"
	"github.com/assent-dev/assent/server/openapi"
)

// candidate answers with the decisions that would change if the candidate's files were
// used.
func (x adminOps) candidate() error {
	var c *candidate.Candidate
	if x.cfg.Candidate != nil {
		c = x.cfg.Candidate(x.tenant())
	}
	if c == nil {
		return fail(
			openapi.CodeNotFound,
			"this server compares with no candidate: start assent serve with --candidate DIR",
		)
	}

	state := c.State()
	out := openapi.Candidate{
		Since:    state.Since,
		Digest:   state.Digest,
		Problems: some(state.Problems),
		Dropped:  int64(state.Dropped),
		Agents:   []openapi.ComparedAgent{},
	}
	for _, one := range state.Compared {
		if actsFor(x.token, one.Agent) {
			out.Agents = append(out.Agents, comparedAgent(one))
		}
	}
	return x.answer(http.StatusOK, out)
}

func comparedAgent(one candidate.Compared) openapi.ComparedAgent {
	return openapi.ComparedAgent{
		Agent:       one.Agent,
		Since:       one.Since,
		NotCompared: one.Missed,
		Why:         one.Why,
		Report:      one.Report,
		Found:       some(one.Found),
	}
}

// candidateFigures collects the metrics of comparisons.
type candidateFigures struct {
	counts func() ([]candidate.Count, uint64)
}

func compared() *prometheus.Desc {
	return prometheus.NewDesc(
		"assent_candidate_calls_total",
		"Calls compared with a candidate, by what decided and by what the candidate would: none where it has no plan.",
		[]string{"live", "candidate"}, nil,
	)
}

func notCompared() *prometheus.Desc {
	return prometheus.NewDesc(
		"assent_candidate_dropped_total",
		"Calls that were not compared with a candidate, since too many waited or the comparison broke.",
		nil, nil,
	)
}

// Describe implements prometheus.Collector.
func (f candidateFigures) Describe(to chan<- *prometheus.Desc) {
	to <- compared()
	to <- notCompared()
}

// Collect implements prometheus.Collector.
func (f candidateFigures) Collect(to chan<- prometheus.Metric) {
	all, dropped := f.counts()
	for _, c := range all {
		to <- prometheus.MustNewConstMetric(
			compared(), prometheus.CounterValue, float64(c.Calls), c.Live, c.Candidate,
		)
	}
	to <- prometheus.MustNewConstMetric(notCompared(), prometheus.CounterValue, float64(dropped))
}
