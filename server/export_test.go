package server

import (
	"regexp"
	"strings"
	"time"

	"github.com/prometheus/client_golang/prometheus"
)

// Routes lists the operations with their scopes, of which one is sufficient.
func Routes() map[string][]string {
	out := map[string][]string{}
	for _, r := range (&Server{}).table() {
		out[r.pattern] = nil
		for _, s := range r.scopes {
			out[r.pattern] = append(out[r.pattern], string(s))
		}
	}

	return out
}

// Queries lists the operations with their query parameters.
func Queries() map[string][]string {
	out := map[string][]string{}
	for _, r := range (&Server{}).table() {
		out[r.pattern] = r.query
	}
	return out
}

// BodyWeight returns the memory that is counted for a text.
func BodyWeight(text []byte) int64 { return bodyWeight(int64(len(text)), valuesIn(text)) }

// MetricLabels returns the labels of each metric of ours; histograms also have le.
func MetricLabels(unusable func() int) map[string][]string {
	m := newMetrics(Config{Now: time.Now, UnusableAgents: unusable})
	descriptions := make(chan *prometheus.Desc, 1000)
	m.registry.Describe(descriptions)
	close(descriptions)
	pattern := regexp.MustCompile(`fqName: "(assent_\w+)".*constLabels: \{([^}]*)\}, variableLabels: \{([^}]*)\}`)
	out := map[string][]string{}
	for d := range descriptions {
		found := pattern.FindStringSubmatch(d.String())
		if found == nil {
			continue // of Go and of the process
		}
		labels := []string{}
		for l := range strings.SplitSeq(found[2]+","+found[3], ",") {
			if l != "" {
				labels = append(labels, strings.Split(l, "=")[0])
			}
		}
		if found[1] == "assent_http_seconds" || found[1] == "assent_answer_seconds" { // the histograms
			labels = append(labels, "le")
		}
		out[found[1]] = labels
	}

	return out
}
