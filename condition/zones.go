package condition

import (
	_ "embed"
	"encoding/binary"
	"errors"
	"time"
)

// zoneinfo is the IANA database 2025c, a copy of lib/time/zoneinfo.zip of Go. time.LoadLocation prefers
// the database of the machine, by which two machines could decide one call differently.
//
//go:embed zoneinfo.zip
var zoneinfo []byte

// zoneOf returns the zone with an exact name of the embedded database.
func zoneOf(name string) (*time.Location, error) {
	rules := zoneRules(name)
	if rules == nil || name == "Factory" { // the zone of a machine that nobody has set up
		return nil, errors.New("no zone has that name")
	}
	return time.LoadLocationFromTZData(name, rules)
}

// zoneRules returns a file of zoneinfo, or nil. It reads the central directory of the archive, whose files
// are not compressed. Package archive/zip would make the WebAssembly module a quarter of a megabyte larger.
func zoneRules(name string) []byte {
	number := func(at int) int { return int(binary.LittleEndian.Uint16(zoneinfo[at:])) }
	offset := func(at int) int { return int(binary.LittleEndian.Uint32(zoneinfo[at:])) }
	end := len(zoneinfo) - 22 // the record at the end, without a comment
	at := offset(end + 16)
	for range number(end + 10) {
		names := at + 46
		if string(zoneinfo[names:names+number(at+28)]) == name {
			local := offset(at + 42)
			from := local + 30 + number(local+26) + number(local+28)
			return zoneinfo[from : from+offset(at+24)]
		}
		at = names + number(at+28) + number(at+30) + number(at+32)
	}
	return nil
}
