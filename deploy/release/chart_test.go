package main

import (
	"bytes"
	"fmt"
	"os"
	"os/exec"
	"path/filepath"
	"strings"
	"testing"

	"go.yaml.in/yaml/v3"
	"helm.sh/helm/v3/pkg/chart/loader"
	"helm.sh/helm/v3/pkg/chartutil"
	"helm.sh/helm/v3/pkg/engine"
)

// rendered returns the documents of the chart by "Kind/name", as helm
// template prints them.
func rendered(t *testing.T, values map[string]any) map[string]map[string]any {
	t.Helper()
	chart, err := loader.Load("../helm/assent")
	if err != nil {
		t.Fatal(err)
	}
	if err := chart.Validate(); err != nil {
		t.Fatal(err)
	}
	options := chartutil.ReleaseOptions{Name: "approvals", Namespace: "agents"}
	all, err := chartutil.ToRenderValues(chart, values, options, nil)
	if err != nil {
		t.Fatal(err)
	}
	texts, err := engine.Engine{Strict: true}.Render(chart, all)
	if err != nil {
		t.Fatal(err)
	}
	out := map[string]map[string]any{}
	for name, text := range texts {
		if !strings.HasSuffix(name, ".yaml") {
			continue
		}
		decoder := yaml.NewDecoder(strings.NewReader(text))
		for {
			var doc map[string]any
			if err := decoder.Decode(&doc); err != nil {
				break
			}
			metadata := doc["metadata"].(map[string]any)
			out[fmt.Sprintf("%v/%v", doc["kind"], metadata["name"])] = doc
		}
	}

	return out
}

// at returns a part of a document by names and indexes.
func at(t *testing.T, doc any, path ...any) any {
	t.Helper()
	for _, step := range path {
		switch step := step.(type) {
		case string:
			doc = doc.(map[string]any)[step]
		case int:
			doc = doc.([]any)[step]
		}
		if doc == nil {
			t.Fatalf("there is no %v", path)
		}
	}

	return doc
}

func TestChartRenders(t *testing.T) {
	docs := rendered(t, nil)
	for _, want := range []string{
		"ConfigMap/approvals-serve", "Service/approvals", "Service/approvals-replicas", "StatefulSet/approvals",
		"PodDisruptionBudget/approvals", "NetworkPolicy/approvals",
	} {
		if docs[want] == nil {
			t.Errorf("the chart has no %s", want)
		}
	}
	if docs["ServiceMonitor/approvals"] != nil {
		t.Error("there is a ServiceMonitor, which needs the Prometheus operator, although nobody asked for it")
	}
	pod := at(t, docs["StatefulSet/approvals"], "spec", "template", "spec")
	if image := at(t, pod, "containers", 0, "image"); image != "registry.example.com/assent:0.3.0" {
		t.Errorf("image %v", image)
	}
	volumes := map[any]bool{}
	for _, v := range at(t, pod, "volumes").([]any) {
		volumes[at(t, v, "name")] = true
	}
	volumes["state"] = true // a claim of the stateful set
	for _, m := range at(t, pod, "containers", 0, "volumeMounts").([]any) {
		if !volumes[at(t, m, "name")] {
			t.Errorf("the container mounts %v, which is no volume", at(t, m, "name"))
		}
	}

	docs = rendered(t, map[string]any{"serviceMonitor": map[string]any{"enabled": true},
		"networkPolicy": map[string]any{"enabled": false}})
	if docs["ServiceMonitor/approvals"] == nil || docs["NetworkPolicy/approvals"] != nil {
		t.Error("the switches of the values change nothing")
	}
	docs = rendered(t, map[string]any{"policiesConfigMap": ""})
	if text := at(t, docs["ConfigMap/approvals-serve"], "data", "serve.yaml").(string); strings.Contains(text, "policies:") {
		t.Errorf("there are no policies, and the service would not start:\n%s", text)
	}
}

// TestChartConfigures checks that the binary accepts the configuration of the
// chart, with further fields of the user.
func TestChartConfigures(t *testing.T) {
	docs := rendered(t, map[string]any{"serve": map[string]any{"retention": "90d"}})
	text := at(t, docs["ConfigMap/approvals-serve"], "data", "serve.yaml").(string)
	dir := t.TempDir()
	text = strings.NewReplacer("/etc/assent/people/", dir+"/", "/etc/assent/", dir+"/", "/run/secrets/assent/", dir+"/",
		"/var/lib/assent/", dir+"/").Replace(text)
	write := func(name, text string) {
		t.Helper()
		path := filepath.Join(dir, name)
		if err := os.MkdirAll(filepath.Dir(path), 0o755); err != nil {
			t.Fatal(err)
		}
		if err := os.WriteFile(path, []byte(text), 0o600); err != nil {
			t.Fatal(err)
		}
	}
	write("serve.yaml", text)
	write("store.url", "postgres://assent:x@postgres/assent\n")
	write("people.yaml", "schema_version: \"1.0.0\"\npeople: [{id: ann, name: Ann, groups: [desk]}]\n")
	write("agents/desk.agf.yaml", `schema_version: "1.0.0"
metadata: {id: desk, name: Desk, version: "1.0.0", description: Trades.}
interface: {input: {type: object}, output: {type: object}}
execution_policy: {id: agf.react, config: {instructions: Be careful., model: any}}
`)
	write("policies/trades.policy.yaml", `schema_version: "1.0.0"
policy_ref: desk.trades
description: Who approves trades.
applies: implicit
rules:
  - {id: trades, match: {kinds: [tool]}, approval: true, require: {stages: [{group: desk, people: 1}]}}
`)
	assent := filepath.Join(dir, "assent")
	build := exec.Command("go", "build", "-trimpath", "-ldflags", "-s -w", "-o", assent, "./cmd/assent")
	build.Dir, build.Env = "../..", append(os.Environ(), "CGO_ENABLED=0")
	if out, err := build.CombinedOutput(); err != nil {
		t.Fatalf("%v\n%s", err, out)
	}
	out, err := exec.Command(assent, "serve", "--check", "--config", filepath.Join(dir, "serve.yaml")).CombinedOutput()
	if err != nil || !bytes.Contains(out, []byte("nothing is wrong")) {
		t.Errorf("%v\n%s\n%s", err, out, text)
	}
}
