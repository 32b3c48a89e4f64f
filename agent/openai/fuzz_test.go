package openai

import (
	"bytes"
	"os"
	"path/filepath"
	"testing"

	"github.com/assent-dev/assent/agent"
	"github.com/assent-dev/assent/agent/content"
	"github.com/assent-dev/assent/agent/internal/replay"
	"github.com/assent-dev/assent/internal/must"
)

// seeds adds every recorded answer to the corpus: whole ones unchanged, streams as lines of
// events.
func seeds(f *testing.F) {
	files, err := filepath.Glob("testdata/*.json")
	if err != nil || len(files) == 0 {
		f.Fatal(err, files)
	}
	for _, file := range files {
		src := must.Get(os.ReadFile(file))(f)
		transcript := must.Get(replay.Parse(src))(f)
		for _, x := range transcript {
			f.Add([]byte(x.Response.Body))
			f.Add(bytes.Join(datas(x.Response), []byte("\n")))
		}
	}
}

func datas(r replay.Response) [][]byte {
	var out [][]byte
	for _, e := range r.SSE {
		o := read(e)
		if o.Has("data") {
			out = append(out, bytes.ReplaceAll(o.Raw("data"), []byte("\n"), nil))
		}
	}

	return out
}

func FuzzChat(f *testing.F) {
	seeds(f)
	f.Fuzz(func(t *testing.T, src []byte) {
		checkAnswer(t, &chatAnswer{}, &chatAnswer{}, src, func(ms []*content.Message) error {
			_, err := chatMessages(ms, "")
			return err
		})
	})
}

func FuzzResponses(f *testing.F) {
	seeds(f)
	api := responses{}
	f.Fuzz(func(t *testing.T, src []byte) {
		checkAnswer(t, api.answer(&agent.Options{}), api.answer(&agent.Options{}), src,
			func(ms []*content.Message) error {
				_, err := inputItems(ms, false, false)
				return err
			})
	})
}

// checkAnswer reads a text as a whole answer and as a stream. Every answer that can be read
// must be accepted when it is sent back, and an unfinished answer must contain no calls.
func checkAnswer(t *testing.T, whole, streamed answer, src []byte, send func([]*content.Message) error) {
	if updates, err := whole.whole(src); err == nil {
		if err := send(agent.Join(updates).Messages); err != nil {
			t.Errorf("%s can't be sent back: %v", src, err)
		}
	}
	var all []*agent.Update
	for _, line := range bytes.Split(src, []byte("\n")) {
		updates, over, err := streamed.event(line)
		all = append(all, updates...)
		if over || err != nil {
			break
		}
	}

	r := agent.Join(all)
	for call := range content.All[*content.FunctionCall](r.Messages) {
		if r.FinishReason == "" || isShort(r.FinishReason) && !call.InformationalOnly {
			t.Errorf("a call of an unfinished answer could run: %s", src)
		}
	}
}
