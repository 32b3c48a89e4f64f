package value

import (
	"encoding/json"
	"fmt"
	"maps"
	"slices"
	"strconv"
	"unicode/utf8"
)

// FromGo converts a decoded Go value: nil, bool, string, every integer and float type,
// json.Number, json.RawMessage, []any, map[string]any (with sorted keys) and Value. As in
// encoding/json, a nil map, slice or raw message is null. It makes all the checks of Parse; the
// error is an *Error with a Path.
func FromGo(v any, lim Limits) (Value, error) {
	r := goReader{newBudget(lim)}
	out, err := r.value(v, r.lim.MaxDepth)
	if err != nil {
		return Value{}, err
	}
	return out, nil
}

// budget is what Limits leave for the rest of a Go value. Every value costs one byte, and
// strings, keys and raw messages cost their length. The budget also ends the traversal of
// values that share parts many times over.
type budget struct {
	lim    Limits
	bytes  int
	values int
}

func newBudget(lim Limits) budget {
	lim = lim.orDefault()
	return budget{lim, lim.MaxBytes, lim.MaxValues}
}

// spend subtracts from the budget. It returns false if a limit is exceeded.
func (b *budget) spend(values, bytes int) bool {
	b.values -= values
	b.bytes -= values + bytes
	return b.bytes|b.values >= 0
}

func (b *budget) over() *Error {
	if b.values < 0 {
		return goError(TooLarge, fmt.Sprintf("more than %d values", b.lim.MaxValues))
	}
	return goError(TooLarge, fmt.Sprintf("more than %d bytes", b.lim.MaxBytes))
}

type goReader struct{ budget }

func (r *goReader) value(v any, depth int) (Value, *Error) {
	switch v := v.(type) {
	case Value:
		return v, r.tree(v, depth)
	case json.RawMessage:
		if v != nil {
			return r.raw(v, depth)
		}
	case []any:
		if v != nil {
			return r.items(v, depth)
		}
	case map[string]any:
		if v != nil {
			return r.members(v, depth)
		}
	}

	if !r.spend(1, 0) {
		return Value{}, r.over()
	}
	switch v := v.(type) {
	case nil, []any, map[string]any, json.RawMessage:
		return Value{Kind: Null}, nil
	case bool:
		return Value{Kind: Bool, Bool: v}, nil
	case string:
		return Value{Kind: String, Text: v}, r.text(v, "the text")
	}

	n, err := goNumber(v)
	return Value{Kind: Number, Num: n}, err
}

func (r *goReader) text(s, name string) *Error {
	if !r.spend(0, len(s)) {
		return r.over()
	}
	if !validText(s) {
		return goError(InvalidUTF8, name+" is not valid UTF-8")
	}
	return nil
}

// validText is utf8.ValidString with a fast path for short ASCII.
func validText(s string) bool {
	if len(s) <= 16 {
		if first, last := ends(s); (first|last)&highs == 0 {
			return true
		}
	}
	return utf8.ValidString(s)
}

func (r *goReader) key(s string) *Error {
	if err := r.text(s, "key"); err != nil { // quoting the key allocates, so only if there is an error
		return r.text(s, "key "+quote(s))
	}
	return nil
}

func (r *goReader) raw(raw json.RawMessage, depth int) (Value, *Error) {
	if !r.spend(0, len(raw)) {
		return Value{}, r.over()
	}
	v, values, err := parse(raw, r.lim, depth)
	if err == nil && !r.spend(values, 0) {
		return Value{}, r.over()
	}
	return v, err
}

func (r *goReader) items(list []any, depth int) (Value, *Error) {
	if err := r.open(depth); err != nil {
		return Value{}, err
	}
	out := Value{Kind: Array}
	for i, e := range list {
		item, err := r.value(e, depth-1)
		if err != nil {
			return Value{}, err.at(strconv.Itoa(i))
		}
		out.Items = append(out.Items, item)
	}

	return out, nil
}

func (r *goReader) members(m map[string]any, depth int) (Value, *Error) {
	if err := r.open(depth); err != nil {
		return Value{}, err
	}
	out := Value{Kind: Object}
	for _, key := range slices.Sorted(maps.Keys(m)) {
		if err := r.key(key); err != nil {
			return Value{}, err
		}
		member, err := r.value(m[key], depth-1)
		if err != nil {
			return Value{}, err.at(key)
		}
		out.Members = append(out.Members, Member{key, member})
	}

	if err := r.distinct(out.Members); err != nil {
		return Value{}, err
	}
	return out, nil
}

// open accounts for an array or object and checks the depth.
func (r *goReader) open(depth int) *Error {
	if depth == 0 {
		return goError(TooDeep, overDepth(r.lim))
	}
	if !r.spend(1, 0) {
		return r.over()
	}
	return nil
}

// tree checks a Value, which may have been built by the caller.
func (r *goReader) tree(v Value, depth int) *Error {
	switch v.Kind {
	case Array, Object:
		if err := r.open(depth); err != nil {
			return err
		}
	case Null, Bool, Number, String:
		if !r.spend(1, 0) {
			return r.over()
		}
		return r.text(v.Text, "the text")
	default:
		return goError(UnsupportedType, "a Value of kind "+v.Kind.String()+" is no JSON")
	}

	for i, item := range v.Items {
		if err := r.tree(item, depth-1); err != nil {
			return err.at(strconv.Itoa(i))
		}
	}
	for _, m := range v.Members {
		if err := r.key(m.Key); err != nil {
			return err
		}
		if err := r.tree(m.Value, depth-1); err != nil {
			return err.at(m.Key)
		}
	}

	return r.distinct(v.Members)
}

// distinct returns an error if two members have equal keys.
func (r *goReader) distinct(members []Member) *Error {
	first, second, found := twins(len(members), func(i int) string { return members[i].Key }, r.lim.FoldKeys)
	if !found {
		return nil
	}
	code, detail := repetition(members[first].Key, members[second].Key)
	return goError(code, detail)
}

// goNumber converts a number, and returns an error for any type that is not JSON.
func goNumber(v any) (Num, *Error) {
	switch v := v.(type) {
	case int:
		return IntNum(int64(v)), nil
	case int8:
		return IntNum(int64(v)), nil
	case int16:
		return IntNum(int64(v)), nil
	case int32:
		return IntNum(int64(v)), nil
	case int64:
		return IntNum(v), nil
	case uint:
		return uintNum(uint64(v)), nil
	case uint8:
		return uintNum(uint64(v)), nil
	case uint16:
		return uintNum(uint64(v)), nil
	case uint32:
		return uintNum(uint64(v)), nil
	case uint64:
		return uintNum(v), nil
	case uintptr:
		return uintNum(uint64(v)), nil
	case float32:
		return goFloat(float64(v), 32)
	case float64:
		return goFloat(v, 64)
	case json.Number:
		return jsonNumber(string(v))
	}

	return Num{}, goError(UnsupportedType, fmt.Sprintf("a Go %T is no JSON value", v))
}

func goFloat(f float64, bitSize int) (Num, *Error) {
	n, ok := floatNum(f, bitSize)
	if !ok {
		return n, goError(NumberRange, fmt.Sprintf("%v is no JSON number, use a string or nil", f))
	}
	return n, nil
}

func jsonNumber(lex string) (Num, *Error) {
	n, end, fault := scanWhole(lex)
	if fault != "" {
		return n, goError(fault, numError(lex, end, fault).Detail+" in a json.Number")
	}
	return n, nil
}
