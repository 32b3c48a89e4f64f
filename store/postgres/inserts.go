package postgres

import (
	"fmt"
	"strings"

	"github.com/assent-dev/assent/store/internal/sqlstore"
)

// inserts collects many inserts of the same form, which become one statement over arrays,
// one for each column.
type inserts struct {
	sql     string
	columns []any // []string, []int64 or [][]byte
}

func (i *inserts) add(row []any) {
	for n, v := range row {
		switch v := v.(type) {
		case string:
			column, _ := i.columns[n].([]string)
			i.columns[n] = append(column, v)
		case int64:
			column, _ := i.columns[n].([]int64)
			i.columns[n] = append(column, v)
		case []byte:
			column, _ := i.columns[n].([][]byte)
			i.columns[n] = append(column, v)
		}
	}
}

// stmt keeps the order of the rows, from which they get their numbers.
func (i *inserts) stmt() sqlstore.Stmt {
	head, _, _ := strings.Cut(i.sql, "VALUES")
	var arrays, names []string
	for n, column := range i.columns {
		kind := "text"
		switch column.(type) {
		case []int64:
			kind = "bigint"
		case [][]byte:
			kind = "bytea"
		}

		arrays = append(arrays, fmt.Sprintf("$%d::%s[]", n+1, kind))
		names = append(names, fmt.Sprintf("c%d", n+1))
	}

	list := strings.Join(names, ", ")
	return sqlstore.Stmt{
		SQL: fmt.Sprintf(
			"%sSELECT %s FROM unnest(%s) WITH ORDINALITY AS rows(%s, n) ORDER BY n",
			head,
			list,
			strings.Join(arrays, ", "),
			list,
		),
		Args: i.columns,
	}
}
