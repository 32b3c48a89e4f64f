package main

import (
	"encoding/json"
	"regexp"
	"testing"
)

// TestHookHasPeopleAnswerTheAgentsQuestions: the call runs with their
// answers in it, in the product's own form.
func TestHookHasPeopleAnswerTheAgentsQuestions(t *testing.T) {
	t.Parallel()
	flags := append(hookDir(t), "--wait", "0s")
	at := inboxOn(t, "hook", flags[:2]...)
	const questions = `"questions":[` +
		`{"question":"Which one?","header":"DB","options":[{"label":"Lite","description":"one file"},{"label":"PG"}]},` +
		`{"question":"Which too?","header":"More","multiSelect":true,"options":[{"label":"A"},{"label":"B"},{"label":"C"}]}]`
	asks := func(id string) string {
		return hookDocs()["claude-code"](toolCall{"AskUserQuestion", "{" + questions + "}", id})
	}
	asked := answers(t, "claude-code", asks("1"), flags...)
	answerIn(t, at, asked.why, "answer", "--field", "question_1=Lite",
		"--field", "question_2=A", "--field", "question_2=C")
	got := answers(t, "claude-code", asks("1"), flags...)
	var input struct {
		Questions []any
		Answers   map[string]string
	}
	if err := json.Unmarshal([]byte(got.args), &input); err != nil || got.word != "allow" ||
		len(input.Questions) != 2 || input.Answers["Which one?"] != "Lite" || input.Answers["Which too?"] != "A, C" {
		t.Errorf("an answered question: %+v (%v)", got, err)
	}

	asked = answers(t, "claude-code", asks("2"), flags...)
	answerIn(t, at, asked.why, "dismiss")
	want := said{"deny", "", "Not answered. A person dismissed the question. Do not ask it again."}
	if got := answers(t, "claude-code", asks("2"), flags...); got != want {
		t.Errorf("a dismissed question: %+v", got)
	}
}

// answerIn answers the question that an answer of a hook names.
func answerIn(t *testing.T, at []string, why, verb string, args ...string) {
	t.Helper()
	id := hookRequest(why)
	out, errOut, _ := ran("", append([]string{"show", id, "--json"}, at...)...)
	binding := regexp.MustCompile(`"binding": *"([^"]+)"`).FindStringSubmatch(out)
	if binding == nil {
		t.Fatalf("show %s (%s): %s%s", id, why, out, errOut)
	}
	args = append([]string{verb, id, "--yes", "--binding", binding[1]}, append(args, at...)...)
	if _, errOut, code := ran("", args...); code != 0 {
		t.Fatalf("%s: %s", verb, errOut)
	}
}
