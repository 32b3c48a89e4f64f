package condition

import (
	"archive/zip"
	_ "embed"
	"errors"
	"io/fs"
	"strings"
	"sync"
	"time"
)

// zoneinfo is the IANA database 2025c, a copy of lib/time/zoneinfo.zip of Go. time.LoadLocation prefers
// the database of the machine, by which two machines could decide one call differently.
//
//go:embed zoneinfo.zip
var zoneinfo string

var zones = sync.OnceValue(func() fs.FS {
	archive, _ := zip.NewReader(strings.NewReader(zoneinfo), int64(len(zoneinfo))) // tests read it
	return archive
})

// zoneOf returns the zone with an exact name of the embedded database.
func zoneOf(name string) (*time.Location, error) {
	rules, err := fs.ReadFile(zones(), name)
	if err != nil || name == "Factory" { // the zone of a machine that nobody has set up
		return nil, errors.New("no zone has that name")
	}
	return time.LoadLocationFromTZData(name, rules)
}
