package catalog

import (
	"strings"
	"testing"
)

// TestItemsThatClientsWouldRefuse: official clients refuse a whole list
// for one of these.
func TestItemsThatClientsWouldRefuse(t *testing.T) {
	for list, items := range map[string]map[string]string{
		ListResources: {
			`{"uri":"a:b","name":"n","title":"t","mimeType":"text/plain","size":1,"_meta":{},"other":null,` +
				`"annotations":{"audience":["user"],"priority":0.5,"lastModified":"x"},"icons":[{"src":"a:b"}]}`: "",
			`{"uri":"ui://a/b","name":""}`:                                 "",
			`{"name":"n"}`:                                                 "uri: expected",
			`{"uri":"a:b"}`:                                                "name: expected",
			`{"uri":"/a/b","name":"n"}`:                                    "uri: expected a URI with a scheme",
			`{"uri":"a:b","name":1}`:                                       "name: expected",
			`{"uri":"a:b","name":"n","title":null}`:                        "title: expected no null",
			`{"uri":"a:b","name":"n","description":7}`:                     "description: expected",
			`{"uri":"a:b","name":"n","mimeType":null}`:                     "mimeType: expected no null",
			`{"uri":"a:b","name":"n","size":"1"}`:                          "size: expected a whole number",
			`{"uri":"a:b","name":"n","size":-1.5}`:                         "size: expected a whole number",
			`{"uri":"a:b","name":"n","size":1e30}`:                         "size: expected a whole number",
			`{"uri":"a:b","name":"n","size":2.0}`:                          "",
			`{"uri":"a:b","name":"n","annotations":null}`:                  "annotations: expected no null",
			`{"uri":"a:b","name":"n","annotations":{"audience":["all"]}}`:  "audience: expected user or assistant",
			`{"uri":"a:b","name":"n","annotations":{"audience":"user"}}`:   "audience: expected an array",
			`{"uri":"a:b","name":"n","annotations":{"priority":2}}`:        "priority: expected a number from 0 to 1",
			`{"uri":"a:b","name":"n","annotations":{"priority":null}}`:     "priority: expected no null",
			`{"uri":"a:b","name":"n","annotations":{"lastModified":true}}`: "lastModified: expected",
			`{"uri":"a:b","name":"n","_meta":[]}`:                          "_meta: expected",
			`{"uri":"a:b","name":"n","icons":[{}]}`:                        "src: expected",
			`{"uri":"a:b","uri":"c:d","name":"n"}`:                         "alike",
			`[]`:                                                           "expected an object",
		},
		ListTemplates: {
			`{"uriTemplate":"{+x}","name":"n"}`: "",
			`{"uri":"a:b","name":"n"}`:          "uriTemplate: expected",
		},
		ListPrompts: {
			`{"name":"n","arguments":[{"name":"a","required":true,"description":"d"}]}`: "",
			`{"name":"n","arguments":null}`:                                             "arguments: expected no null",
			`{"name":"n","arguments":{}}`:                                               "arguments: expected an array",
			`{"name":"n","arguments":[{"required":true}]}`:                              "name: expected",
			`{"name":"n","arguments":[{"name":"a","required":"x"}]}`:                    "required: expected",
			`{"name":"n","arguments":[{"name":"a","title":null}]}`:                      "title: expected no null",
			`{"name":"` + "\u200b" + `"}`:                                               "it can't be shown",
		},
	} {
		for text, want := range items {
			item, err := ReadItem(list, []byte(text))
			got := ""
			if err != nil {
				got = err.Error()
			}
			if want == "" && (got != "" || item.ID == "" || item.Text == nil) || !strings.Contains(got, want) {
				t.Errorf("%s: got %q, expected %q", text, got, want)
			}
		}
	}
}

// FuzzReadItem checks that an accepted item is read again as the same item,
// and that the text for clients is an object with its id.
func FuzzReadItem(f *testing.F) {
	f.Add(`{"uri":"a:b","name":"n","title":"t","size":1,"annotations":{"audience":["user"]},"icons":[{"src":"a:b"}]}`)
	f.Add(`{"uriTemplate":"a:{b}","name":"n"}`)
	f.Add(`{"name":"n","arguments":[{"name":"a","required":true}]}`)
	f.Fuzz(func(t *testing.T, text string) {
		for _, list := range []string{ListResources, ListTemplates, ListPrompts} {
			item, err := ReadItem(list, []byte(text))
			if err != nil {
				continue
			}
			again, err := ReadItem(list, item.Text)
			if err != nil || again.ID != item.ID {
				t.Errorf("%s: read again: %q, %v", item.Text, again.ID, err)
			}
		}
	})
}
