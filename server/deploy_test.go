package server_test

import (
	"encoding/json"
	"maps"
	"os"
	"regexp"
	"slices"
	"strings"
	"testing"

	"github.com/assent-dev/assent/server"
)

// expressions returns the expressions of the dashboard and of the alerts.
func expressions(t *testing.T) (dashboard, alerts []string) {
	t.Helper()
	var board struct {
		Panels []struct{ Targets []struct{ Expr string } }
	}
	if err := json.Unmarshal(readDeployed(t, "grafana/assent.json"), &board); err != nil {
		t.Fatal(err)
	}
	for _, panel := range board.Panels {
		for _, target := range panel.Targets {
			dashboard = append(dashboard, target.Expr)
		}
	}
	rules := string(readDeployed(t, "prometheus/assent.rules.yaml"))
	for _, m := range regexp.MustCompile(`(?m)^ +expr: (.+)$`).FindAllStringSubmatch(rules, -1) {
		alerts = append(alerts, m[1])
	}
	if len(dashboard) < 20 || len(alerts) < 8 {
		t.Fatalf("%d expressions of the dashboard and %d alerts", len(dashboard), len(alerts))
	}

	return dashboard, alerts
}

// TestDashboardAndAlertsUseMetricsThatExist compares their names and labels with what the service registers, and
// checks that the dashboard shows every metric of the service.
func TestDashboardAndAlertsUseMetricsThatExist(t *testing.T) {
	known := server.MetricLabels(func() int { return 0 })
	used := map[string]bool{}
	name := regexp.MustCompile(`\b(assent_[a-z_]+)(?:\{([^}]*)\})?`)
	label := regexp.MustCompile(`([a-z_]+) *(?:=~|!=|!~|=)`)
	by := regexp.MustCompile(`by \(([^)]*)\)`)
	dashboard, alerts := expressions(t)
	for i, expr := range slices.Concat(dashboard, alerts) {
		var labels []string
		for _, m := range name.FindAllStringSubmatch(expr, -1) {
			metric := m[1]
			for _, suffix := range []string{"_bucket", "_count", "_sum"} {
				if base := strings.TrimSuffix(metric, suffix); slices.Contains(known[base], "le") {
					metric = base
				}
			}
			if known[metric] == nil {
				t.Errorf("%s: there is no metric %s", expr, m[1])
				continue
			}
			if i < len(dashboard) {
				used[metric] = true
			}
			wanted := []string{}
			for _, l := range label.FindAllStringSubmatch(m[2], -1) {
				wanted = append(wanted, l[1])
			}
			for _, l := range wanted {
				if !slices.Contains(known[metric], l) {
					t.Errorf("%s: %s has no label %s, only %v", expr, metric, l, known[metric])
				}
			}
			labels = append(labels, known[metric]...)
		}
		for _, m := range by.FindAllStringSubmatch(expr, -1) {
			for l := range strings.SplitSeq(m[1], ", ") {
				if !slices.Contains(labels, l) {
					t.Errorf("%s: no metric of it has the label %s", expr, l)
				}
			}
		}
	}
	for _, metric := range slices.Sorted(maps.Keys(known)) {
		if !used[metric] {
			t.Errorf("the dashboard does not show %s", metric)
		}
	}
}

func readDeployed(t *testing.T, name string) []byte {
	t.Helper()
	text, err := os.ReadFile("../deploy/" + name)
	if err != nil {
		t.Fatal(err)
	}
	return text
}
