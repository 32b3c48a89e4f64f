package main

import (
	"crypto/sha256"
	"encoding/base64"
	"fmt"
	"strings"
)

// The wheel carries both binaries, as scripts that pip puts into PATH.
const wheelName = "assent-cli"

// wheel writes the wheel of a platform (PEP 427; the binary distribution
// format of the Python Packaging User Guide).
func (r *release) wheel(t target, files []entry) error {
	module := strings.ReplaceAll(wheelName, "-", "_")
	licence, err := r.read("LICENSE", "")
	if err != nil {
		return err
	}
	readme, err := r.read("docs/guides/install.md", "")
	if err != nil {
		return err
	}
	dist := module + "-" + r.version
	tags := strings.Split(t.wheel, ".")
	var wheel strings.Builder
	wheel.WriteString("Wheel-Version: 1.0\nGenerator: assent-release\nRoot-Is-Purelib: false\n")
	for _, tag := range tags {
		wheel.WriteString("Tag: py3-none-" + tag + "\n")
	}
	metadata := "Metadata-Version: 2.4\nName: " + wheelName + "\nVersion: " + r.version +
		"\nSummary: Decide when an AI agent must ask a person: the commands agf-validate and assent" +
		"\nLicense-Expression: Apache-2.0\nLicense-File: LICENSE\nRequires-Python: >=3.8" +
		"\nProject-URL: Source, https://github.com/assent-dev/assent\nDescription-Content-Type: text/markdown\n\n" +
		string(readme.text)

	var all []entry
	for _, f := range files {
		f.name = dist + ".data/scripts/" + f.name
		all = append(all, f)
	}
	licence.name = dist + ".dist-info/licenses/LICENSE"
	all = append(all, licence,
		entry{name: dist + ".dist-info/METADATA", text: []byte(metadata), mode: 0o644},
		entry{name: dist + ".dist-info/WHEEL", text: []byte(wheel.String()), mode: 0o644},
	)

	return r.writeWheel(dist, "py3-none-"+t.wheel, all)
}

// writeWheel adds RECORD, the list of the files with their digests, and writes the wheel.
func (r *release) writeWheel(dist, tags string, all []entry) error {
	var record strings.Builder
	for _, f := range all {
		sum := sha256.Sum256(f.text)
		fmt.Fprintf(&record, "%s,sha256=%s,%d\n", f.name, base64.RawURLEncoding.EncodeToString(sum[:]), len(f.text))
	}
	record.WriteString(dist + ".dist-info/RECORD,,\n")
	all = append(all, entry{name: dist + ".dist-info/RECORD", text: []byte(record.String()), mode: 0o644})
	text, err := zipped(all, r.time)
	if err != nil {
		return err
	}

	return r.write(dist+"-"+tags+".whl", text)
}
