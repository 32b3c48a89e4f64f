package inbox_test

import (
	"bytes"
	"image/png"
	"os"
	"path/filepath"
	"testing"
	"time"

	"github.com/chromedp/chromedp"

	"github.com/assent-dev/assent/internal/golden"
	"github.com/assent-dev/assent/internal/must"
)

// The pictures in the README: what a person sees first.
const (
	picturesFolder = "../../docs/images"
	pictureWidth   = 1100
	pictureHeight  = 760
)

// TestReadmePictures takes the pictures for the README, and writes them with -update. Letters look
// slightly different on every machine, so it only checks that each picture exists and has the size
// of a page.
func TestReadmePictures(t *testing.T) {
	t.Parallel()
	browser := chromium(t)
	h := openArmed(t, time.Millisecond)
	h.fill()
	order := h.ask(tool("place_order", `{"side":"buy","quantity":1000,"symbol":"INIT"}`))
	h.ask(tool("pay", `{"iban":"DE0212","amount":1200,"to":{"name":"Erika","note":"rent"}}`))

	tab := h.tab(t, browser, "bob")
	tab.scheme("light")
	tab.size(pictureWidth, pictureHeight)
	for name, path := range map[string]string{"inbox": "/", "request": "/requests/" + order.ID} {
		tab.open(path)
		tab.armed()
		taken, err := chromedp.Run(tab.ctx, chromedp.CaptureScreenshot())
		must.Do(t, err)

		holdsPicture(t, filepath.Join(picturesFolder, name+".png"), taken)
	}
}

// holdsPicture compares the size of a stored picture with one that was just taken, or stores it.
func holdsPicture(t *testing.T, file string, taken []byte) {
	t.Helper()
	if golden.Update() {
		must.Do(t, os.WriteFile(file, taken, 0o644))
	}

	kept, err := os.ReadFile(file)
	must.Do(t, err)

	want, err := png.DecodeConfig(bytes.NewReader(taken))
	must.Do(t, err)

	got, err := png.DecodeConfig(bytes.NewReader(kept))
	if err != nil || got.Width != want.Width || got.Height != want.Height {
		t.Errorf("%s has %d by %d points, want %d by %d (%v): take it again with -update",
			file, got.Width, got.Height, want.Width, want.Height, err)
	}
}
