package repotest

import (
	"fmt"
	"os"
	"os/exec"
	"path/filepath"
	"regexp"
	"slices"
	"strings"
	"testing"
)

// checkReplace complains about a go.mod that only builds if other directories exist next to it.
func checkReplace(gomod string) []string {
	var out []string
	for i, line := range strings.Split(gomod, "\n") {
		if f := strings.Fields(line); len(f) > 0 && f[0] == "replace" {
			out = append(
				out,
				fmt.Sprintf("go.mod:%d: replace: whoever imports this module would build something else", i+1),
			)
		}
	}

	return out
}

// licence returns the name of the licence in a text, or an empty string if it is unknown.
func licence(text string) string {
	words := strings.Join(strings.Fields(text), " ")
	for _, known := range []struct{ name, phrase string }{
		{"Apache-2.0", "Apache License Version 2.0"},
		{"MPL-2.0", "Mozilla Public License Version 2.0"},
		{"MPL-2.0", "Mozilla Public License, version 2.0"},
		{"BSD", "Redistribution and use in source and binary forms, with or without modification, are permitted"},
		{"MIT", "Permission is hereby granted, free of charge, to any person obtaining a copy"},
		{
			"ISC",
			"Permission to use, copy, modify, and distribute this software for any purpose with or without fee is " +
				"hereby granted",
		},
	} {
		if strings.Contains(words, known.phrase) {
			return known.name
		}
	}

	return ""
}

// licensed is a module with its licence, and whether the product or only the tests contain it.
type licensed struct {
	path, licence string
	shipped       bool
}

// checkLicences complains about a licence that we may not ship, or may
// not even test with.
func checkLicences(modules []licensed) []string {
	var out []string
	for _, m := range modules {
		switch {
		case slices.Contains([]string{"MIT", "BSD", "ISC", "Apache-2.0"}, m.licence):
		case m.licence == "MPL-2.0" && !m.shipped:
		case m.licence == "":
			out = append(out, m.path+" has no licence that we know")
		default:
			out = append(out, fmt.Sprintf("%s is under %s, which may not be in the product", m.path, m.licence))
		}
	}

	return out
}

// builtModules returns the modules of all packages that are built or
// tested, with the licence texts of the module cache.
func builtModules() ([]licensed, error) {
	var out []licensed
	for _, folder := range modules() {
		shipped, err := modulesOf(folder, "-deps", "./...")
		if err != nil {
			return nil, err
		}
		all, err := modulesOf(folder, "-deps", "-test", "./...")
		if err != nil {
			return nil, err
		}
		for path, dir := range all {
			text, err := licenceText(dir)
			if err != nil {
				return nil, err
			}
			out = append(out, licensed{path: path, licence: licence(text), shipped: shipped[path] != ""})
		}
	}

	return out, nil
}

func modulesOf(folder string, args ...string) (map[string]string, error) {
	packages, err := listAll[listed](folder, "ImportPath,Module", args...)
	if err != nil {
		return nil, err
	}
	modules := map[string]string{}
	for _, p := range packages {
		if p.Module != nil && !p.Module.Main && p.Module.Path != modulePath {
			modules[p.Module.Path] = p.Module.Dir
		}
	}
	return modules, nil
}

func licenceText(dir string) (string, error) {
	for _, pattern := range []string{"LICENSE*", "LICENCE*", "COPYING*"} {
		found, err := filepath.Glob(filepath.Join(dir, pattern))
		if err != nil {
			return "", fmt.Errorf("find licence: %w", err)
		}
		if len(found) > 0 {
			text, err := os.ReadFile(found[0])
			return string(text), err
		}
	}

	return "", nil
}

// moduleRow is a line of a table in docs/dependencies.md that is about
// one module or tool.
var moduleRow = regexp.MustCompile("(?m)^\\| `([^`]+)`")

// checkDependencies complains unless docs/dependencies.md has a line
// for every direct module, and no line for others.
func checkDependencies(direct []string, page string) []string {
	var out []string
	var told []string
	product, _, _ := strings.Cut(page, "\n## Tools")
	for _, m := range moduleRow.FindAllStringSubmatch(product, -1) {
		told = append(told, m[1])
	}
	for _, m := range direct {
		if !slices.Contains(told, m) {
			out = append(out, "docs/dependencies.md has no line for "+m)
		}
	}
	for _, m := range told {
		if !slices.Contains(direct, m) {
			out = append(out, fmt.Sprintf("docs/dependencies.md has a line for %s, which no go.mod requires", m))
		}
	}

	return out
}

func directModules() ([]string, error) {
	var direct []string
	for _, folder := range modules() {
		all, err := listAll[module](folder, "Path,Main,Indirect", "-m", "all")
		if err != nil {
			return nil, err
		}
		for _, m := range all {
			if !m.Main && !m.Indirect && m.Path != modulePath && !slices.Contains(direct, m.Path) {
				direct = append(direct, m.Path)
			}
		}
	}
	return direct, nil
}

func read(name string) func() (string, error) {
	return func() (string, error) {
		text, err := os.ReadFile(filepath.Join(top, name))
		return string(text), err
	}
}

// mostEmbedded limits the modules of others that a program needs to decide calls.
const mostEmbedded = 6 // x/text comes with x/net, which maps the names of hosts

// checkEmbedded complains about packages with HTTP or a database, and about too many modules, among those
// that a program links which decides calls by itself.
func checkEmbedded(packages []listed) []string {
	var out, modules []string
	for _, p := range packages {
		if slices.Contains([]string{"net/http", "database/sql", "os/exec"}, p.ImportPath) {
			out = append(out, "schema, policy and resolve link "+p.ImportPath)
		}
		if p.Module != nil && p.Module.Path != modulePath && !slices.Contains(modules, p.Module.Path) {
			modules = append(modules, p.Module.Path)
		}
	}
	if len(modules) > mostEmbedded {
		out = append(out, fmt.Sprintf("schema, policy and resolve need %d modules, at most %d: %v",
			len(modules), mostEmbedded, modules))
	}

	return out
}

func TestEmbeddersNeedLittle(t *testing.T) {
	packages := must(t, func() ([]listed, error) {
		return listAll[listed](".", "ImportPath,Module", "-deps", "./schema", "./policy", "./resolve")
	})
	report(t, checkEmbedded(packages))
	if len(packages) < 50 {
		t.Errorf("only %d packages are listed", len(packages))
	}
}

// mostEntries limits the files and folders at the top level of the repository.
const mostEntries = 31

func TestTopLevelIsShort(t *testing.T) {
	out, err := exec.Command("git", "-C", top, "ls-files").Output()
	if err != nil {
		t.Fatal(err)
	}
	var entries []string
	for name := range strings.Lines(string(out)) {
		entry, _, _ := strings.Cut(strings.TrimSpace(name), "/")
		if !strings.HasPrefix(entry, ".") && !slices.Contains(entries, entry) {
			entries = append(entries, entry)
		}
	}
	if len(entries) > mostEntries || len(entries) == 0 {
		t.Errorf("the top level has %d entries, at most %d: %v", len(entries), mostEntries, entries)
	}
}

func TestNoReplace(t *testing.T) { report(t, checkReplace(must(t, read("go.mod")))) }

func TestLicences(t *testing.T) {
	report(t, checkLicences(must(t, builtModules)))
	if own := licence(must(t, read("LICENSE"))); own != "Apache-2.0" {
		t.Errorf("our own LICENSE reads as %q", own)
	}
}

func TestDependenciesPage(t *testing.T) {
	report(t, checkDependencies(must(t, directModules), must(t, read("docs/dependencies.md"))))
}

func TestModuleChecksFail(t *testing.T) {
	catches(t, checkReplace("module a\n\nreplace b => ../b\n"), "go.mod:3: replace")
	catches(t, checkLicences([]licensed{{path: "a", licence: licence("All rights reserved.")}}), "a has no licence")
	catches(t, checkLicences([]licensed{{
		path:    "a",
		licence: licence("Mozilla Public License Version 2.0"),
		shipped: true,
	}}), "MPL-2.0")
	report(t, checkLicences([]licensed{{path: "a", licence: "MPL-2.0"}, {path: "b", licence: "MIT", shipped: true}}))
	many := []listed{{ImportPath: "net/http"}}
	for _, name := range []string{"a", "b", "c", "d", "e", "f", "a"} {
		many = append(many, listed{ImportPath: name, Module: &module{Path: name}})
	}
	catches(t, checkEmbedded(many), "link net/http")
	catches(t, checkEmbedded(append(many[1:], listed{Module: &module{Path: "g"}})), "need 7 modules")
	page := "| `a` | what |\n| `b` | what |\n\n## Tools of CI\n| `c` | what |\n"
	catches(t, checkDependencies([]string{"a", "b", "d"}, page), "no line for d")
	catches(t, checkDependencies([]string{"a"}, page), "has a line for b")
	report(t, checkDependencies([]string{"a", "b"}, page))
}
