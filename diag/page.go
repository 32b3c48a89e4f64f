package diag

import (
	"fmt"
	"io/fs"
	"strings"
)

// Pages reads the descriptions of rules, in the order of ids, from the files rules/ID.md of an
// embedded folder. It panics if one is missing or malformed, which is a bug.
func Pages(fsys fs.FS, ids ...string) []RuleInfo {
	var infos []RuleInfo
	for _, id := range ids {
		text, err := fs.ReadFile(fsys, "rules/"+id+".md")
		if err != nil {
			panic(fmt.Sprintf("rule %s is not described: %v", id, err))
		}
		infos = append(infos, Page(string(text)))
	}

	return infos
}

// Page parses the description of a rule. Between two lines of --- it has id, title, severity
// and spec, one per line. Then follows an explanation in Markdown. Examples, if they are not in
// separate files, are YAML blocks below the headings "Reported" and "Not reported". Page panics
// if the text is malformed.
func Page(text string) RuleInfo {
	info, err := readPage(text)
	if err != nil {
		panic(err.Error())
	}
	return info
}

func readPage(text string) (RuleInfo, error) {
	head, body, ok := strings.Cut(strings.TrimPrefix(text, "---\n"), "\n---\n")
	if !ok {
		return RuleInfo{}, fmt.Errorf(
			"the page of a rule does not begin with fields between lines of ---: %.60q",
			text,
		)
	}

	var info RuleInfo
	severity := ""
	fields := map[string]*string{
		"id":       &info.ID,
		"title":    &info.Title,
		"severity": &severity,
		"spec":     &info.Spec,
	}
	for line := range strings.SplitSeq(head, "\n") {
		name, value, _ := strings.Cut(line, ": ")
		if fields[name] == nil || value == "" {
			return info, fmt.Errorf("the page of rule %s has the line %q", info.ID, line)
		}
		*fields[name] = value
	}

	known, err := ParseSeverity(severity)
	if err != nil {
		return info, fmt.Errorf("the page of rule %s: %w", info.ID, err)
	}
	info.Severity = known

	body, info.Good = cutBlock(body, "\n## Not reported\n")
	body, info.Bad = cutBlock(body, "\n## Reported\n")
	info.Why = strings.Join(strings.Fields(body), " ")
	if info.ID == "" || info.Title == "" || info.Spec == "" || info.Why == "" {
		return info, fmt.Errorf("the page of rule %q is not complete", info.ID)
	}
	return info, nil
}

// cutBlock removes the section of a heading from the end of a text, and returns the content of
// its YAML block.
func cutBlock(text, heading string) (rest, yaml string) {
	rest, section, _ := strings.Cut(text, heading)
	_, yaml, _ = strings.Cut(section, "```yaml\n")
	yaml, _, _ = strings.Cut(yaml, "```")
	return rest, yaml
}
