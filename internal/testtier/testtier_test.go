package testtier

import (
	"strconv"
	"testing"
)

func TestLongRunsAllRows(t *testing.T) {
	for env, want := range map[string][2]int{"": {100, 200}, "all": {300, 600}} {
		t.Setenv("ASSENT_ROWS", env)
		rows := map[string]int{}
		for i := range 600 {
			for _, table := range []string{"a", "b"} {
				if Row(table, strconv.Itoa(i)) {
					rows[table]++
					rows[strconv.Itoa(i)]++
				}
			}
		}
		if Count(300) != want[0] || Count(1) != 1 {
			t.Errorf("%q: %d of 300 cases, %d of 1", env, Count(300), Count(1))
		}
		for _, table := range []string{"a", "b"} {
			if n := rows[table]; n < want[1]*8/10 || n > want[1]*12/10 {
				t.Errorf("%q: %d of 600 rows of %s, want about %d", env, n, table, want[1])
			}
		}
		if distinct := len(rows) - 2; env == "" && distinct < 300 {
			t.Errorf("both tables run the same rows: %d distinct ones", distinct)
		}
	}
}
