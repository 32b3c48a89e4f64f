package main

import (
	"encoding/json"
	"strings"
)

// npmName is the package that people install. It depends on one package for
// each platform, of which npm installs the one that fits.
const npmName = "@assent-dev/cli"

func (t target) npmName() string { return npmName + "-" + t.npmOS + "-" + t.npmArch }

// npmPlatform writes the npm package with the binaries of a platform.
func (r *release) npmPlatform(t target, files []entry) error {
	var all []entry
	for _, f := range files {
		f.name = "bin/" + f.name
		all = append(all, f)
	}

	return r.npm(t.npmName(), map[string]any{
		"description":     "The binaries of " + npmName + " for " + t.npmOS + " " + t.npmArch,
		"os":              []string{t.npmOS},
		"cpu":             []string{t.npmArch},
		"preferUnplugged": true,
	}, all)
}

// launcher starts the binary that npm installed for this platform.
const launcher = `#!/usr/bin/env node
"use strict";
const { spawnSync } = require("node:child_process");
const platform = "NAME-" + process.platform + "-" + process.arch;
const file = "PROGRAM" + (process.platform === "win32" ? ".exe" : "");
let path;
try {
  path = require.resolve(platform + "/bin/" + file);
} catch {
  console.error("PROGRAM: the package " + platform + " is not installed. Either this platform has no binary, or npm left out optional dependencies (--omit=optional).");
  process.exit(2);
}
const ended = spawnSync(path, process.argv.slice(2), { stdio: "inherit" });
if (ended.error) {
  console.error("PROGRAM: " + ended.error.message);
  process.exit(2);
}
if (ended.signal) {
  process.kill(process.pid, ended.signal);
}
process.exit(ended.status === null ? 2 : ended.status);
`

// npmFront writes the package that people install.
func (r *release) npmFront(chosen []target) error {
	optional := map[string]string{}
	for _, t := range chosen {
		optional[t.npmName()] = r.version
	}
	bin := map[string]string{}
	readme, err := r.read("docs/guides/install.md", "README.md")
	if err != nil {
		return err
	}
	files := []entry{readme}
	for _, program := range programs {
		bin[program] = "bin/" + program + ".js"
		text := strings.NewReplacer("NAME", npmName, "PROGRAM", program).Replace(launcher)
		files = append(files, entry{name: bin[program], text: []byte(text), mode: 0o755})
	}

	return r.npm(npmName, map[string]any{
		"description":          "Decide when an AI agent must ask a person: the commands agf-validate and assent",
		"bin":                  bin,
		"engines":              map[string]string{"node": ">=18"},
		"optionalDependencies": optional,
	}, files)
}

// npm writes a package as npm pack does.
func (r *release) npm(name string, fields map[string]any, files []entry) error {
	licence, err := r.read("LICENSE", "")
	if err != nil {
		return err
	}
	fields["name"], fields["version"], fields["license"] = name, r.version, "Apache-2.0"
	fields["repository"] = map[string]string{"type": "git", "url": "git+https://github.com/assent-dev/assent.git"}
	manifest, err := json.MarshalIndent(fields, "", "  ")
	if err != nil {
		return err
	}
	all := []entry{{name: "package/package.json", text: append(manifest, '\n'), mode: 0o644}}
	for _, f := range append(files, licence) {
		f.name = "package/" + f.name
		all = append(all, f)
	}
	text, err := tarGz(all, r.time)
	if err != nil {
		return err
	}
	file := strings.NewReplacer("@", "", "/", "-").Replace(name)

	return r.write(file+"-"+r.version+".tgz", text)
}
